"""Interface to a supervisor such as systemd: inherited sockets, and notifications of readiness and health.

`sd_notify(3)` and `sd_listen_fds(3)`, which other supervisors implement, too. `svc_proto.cli.readiness_watch` decides
when to notify.
"""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress

from runtimes.host.host import Program
from runtimes.net.listener import Listener, plain_address
from runtimes.service_home.server_registry import ROLES
from svc_proto.commands import Notify
from svc_proto.engine.core import Engine

__all__ = ["inherited_address", "inherited_socket", "readiness_programs"]

SD_LISTEN_FDS_START = 3  # the descriptor of the first socket
NOTIFY_MESSAGES = {
    "ready": b"READY=1\nSTATUS=%s",
    "alive": b"WATCHDOG=1",
    "stopping": b"STOPPING=1\nSTATUS=Requests under way are answered.",
}


def readiness_programs(
    programs: Sequence[Program], url_of: Callable[[Listener], str], env: Mapping[str, str]
) -> list[Program]:
    """Return the program that notifies a supervisor of these servers, in a list; empty without a supervisor."""
    named, every, process = (env.get(name, "") for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"))
    if not named.startswith(("/", "@")):
        return []
    from svc_proto.cli.readiness_watch import ReadinessWatch

    plain = [[listener for listener in program.all_listeners if listener.tls is None][-1:] for program in programs]
    urls = [url_of(listener) for listeners in plain for listener in listeners]
    watchdog = int(every) / 1e6 if every.isdecimal() and int(every) and process in ("", str(os.getpid())) else None
    roles = [program.claim.role for program in programs if program.claim is not None]
    status = f"{', '.join(role for role in ROLES if role in roles)}: svc status".encode()
    address = f"\0{named[1:]}" if named.startswith("@") else named

    def send_notification(news: Notify) -> None:
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
            to.sendto(NOTIFY_MESSAGES[news.event].replace(b"%s", status), address)

    return [Program(core=Engine(ReadinessWatch(urls, watchdog), entropy=os.urandom), on_notify=send_notification)]


def inherited_socket(env: Mapping[str, str], role: str) -> socket.socket | None:
    """Return the inherited listening socket of this server (`FileDescriptorName=relay`, for example), or None.

    Raises `OSError` for a descriptor that is not a socket.
    """
    fd = _descriptor(env, role)
    if fd is None:
        return None
    os.set_inheritable(fd, False)
    return socket.socket(fileno=fd)


def inherited_address(env: Mapping[str, str], role: str) -> dict[str, object]:
    """Return `host` and `port` of the inherited socket of this server as options; empty without one.

    The address determines the required security, so it overrides a setting of another address.
    """
    fd = _descriptor(env, role)
    if fd is None:
        return {}
    try:
        with closing(socket.socket(fileno=os.dup(fd))) as sock:
            if sock.family not in (socket.AF_INET, socket.AF_INET6):
                return {}
            address = plain_address(sock.getsockname())
    except OSError:
        return {}  # `inherited_socket` reports the error
    return {"host": address.host, "port": address.port}


def _descriptor(env: Mapping[str, str], role: str) -> int | None:
    names = env.get("LISTEN_FDNAMES", "").split(":")
    return (
        SD_LISTEN_FDS_START + names.index(role) if env.get("LISTEN_PID") == str(os.getpid()) and role in names else None
    )
