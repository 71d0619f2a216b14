"""Texts of the service files: units of systemd, an agent of launchd."""

import plistlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

__all__ = ["LABEL", "MARK", "UNIT", "UnitSpec", "launchd_agent", "systemd_service", "systemd_socket"]

UNIT = "svc"
LABEL = "local.svc-relay"  # for launchd
MARK = "# Written by `svc service install`; `svc service remove` takes it away."
# Restrictions that do not affect shells on this host; the others are in HARDENED, for `--hardened`.
SYSTEM = """\
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictRealtime=yes
"""
HARDENED = """\
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths={home}
PrivateDevices=yes
PrivateTmp=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
"""
SERVICE = """\
{mark}
[Unit]
Description=svc-relay: a relay and an agent API for phones
Documentation=man:systemd.service(5)
Wants=network-online.target
After=network-online.target
# A start that keeps failing (a full disk, a home that cannot be used) ends after about half a minute.
StartLimitIntervalSec=300
StartLimitBurst=10
{sockets}
[Service]
Type=notify
NotifyAccess=main
{account}{environment}ExecStart={command}
Restart=on-failure
RestartSec=2
WatchdogSec=60
TimeoutStopSec=30
# Shells in tmux outlive a new start of the servers, as they do without systemd.
KillMode=process
UMask=0077
LimitNOFILE=65536
{hardening}
[Install]
WantedBy={target}
"""
SOCKET = """\
{mark}
[Unit]
Description=the {role} of svc-relay

[Socket]
ListenStream={address}
FileDescriptorName={role}
Service={unit}.service
NoDelay=yes

[Install]
WantedBy=sockets.target
"""


@frozen(kw_only=True)
class UnitSpec:
    """Contents of the service files: command, environment, user, restrictions and sockets of the servers."""

    command: Sequence[str]  # absolute paths
    environment: Mapping[str, str]
    home: Path
    user: str | None = None  # None: the systemd of the user runs it, otherwise that of the system, as this user
    hardened: bool = False
    sockets: Mapping[str, str] = {}  # `address:port` by role: opened by systemd


def systemd_service(wanted: UnitSpec) -> str:
    """Return the text of `svc.service` (systemd.service(5), systemd.exec(5))."""
    names = " ".join(f"{UNIT}-{role}.socket" for role in wanted.sockets)
    hardening = "" if wanted.user is None else SYSTEM
    if wanted.hardened:
        hardening += HARDENED.format(home=_quoted(str(wanted.home)))
    return SERVICE.format(
        mark=MARK,
        sockets=f"Requires={names}\nAfter={names}\n" if names else "",
        account="" if wanted.user is None else f"User={wanted.user}\n",
        environment="".join(f"Environment={_quoted(f'{name}={text}')}\n" for name, text in wanted.environment.items()),
        command=" ".join(_quoted(word, expanded=True) for word in wanted.command),
        hardening=hardening,
        target="default.target" if wanted.user is None else "multi-user.target",
    )


def systemd_socket(role: str, address: str) -> str:
    """Return the text of a socket unit such as `svc-relay.socket`."""
    return SOCKET.format(mark=MARK, role=role, address=address, unit=UNIT)


def launchd_agent(wanted: UnitSpec, log: Path) -> bytes:
    """Return the contents of `local.svc-relay.plist` (launchd.plist(5))."""
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(wanted.command),
            "EnvironmentVariables": dict(wanted.environment),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 5,
            "ExitTimeOut": 30,
            "Umask": 0o077,
            "StandardErrorPath": str(log),
            "SoftResourceLimits": {"NumberOfFiles": 65_536},
        }
    )


def _quoted(word: str, *, expanded: bool = False) -> str:
    """Escape a word of a unit file, so that systemd reads it as one literal word; `expanded` also escapes `$`."""
    plain = word.replace("\\", "\\\\").replace("%", "%%")
    plain = plain.replace("$", "$$") if expanded else plain
    if re.fullmatch(r"[A-Za-z0-9_@%$+=:,./\\-]+", plain):
        return plain
    return '"' + plain.replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
