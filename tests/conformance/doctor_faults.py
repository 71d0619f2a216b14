"""Planted faults of the `doctor` suite: real programs, files and networks, and the codes that must be reported."""

import json
import os
import re
import signal
import time
from collections.abc import Callable

from attrs import frozen

from tests.conformance.doctor_host import MODEL, NAME, DoctorHost, HostSetup, settings_with
from tests.runtimes.certificates import make_certificate

DAY = 86_400.0  # s
HTTPS = f"https://{NAME}/"
UPGRADE = 'proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";'
FORWARDED = (
    "proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Proto $scheme;"
    " proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"
)
NGINX = """
daemon off; master_process off; error_log stderr; pid {folder}/nginx.pid;
events {{}}
http {{ access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen {address}:443 ssl; ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
    proxy_read_timeout 1h;
    location / {{ proxy_pass http://127.0.0.1:8642; {forwarded} }}
    location ~ ^/(ws|health|sessions|pairing|bridge|media) {{ proxy_pass http://127.0.0.1:8767; {upgrade} {forwarded} }}
}} }}
"""
BEHIND = settings_with(
    RELAY_HOST="127.0.0.1",
    API_SERVER_HOST="127.0.0.1",
    RELAY_TRUST_PROXY_HEADERS="1",
    RELAY_LOCAL_TRUST="secret",
    SVC_PUBLIC_URL=HTTPS,
)


def reach_by_name(address: str = "192.168.1.20") -> str:
    """Return the shell command that makes a host resolve its public name to `address`."""
    hosts = f"cp /etc/hosts $FOLDER/hosts; echo '{address} {NAME}' >> $FOLDER/hosts"
    return f"{hosts}; mount --bind $FOLDER/hosts /etc/hosts"


LAN = HostSetup()
PROXIED = HostSetup(commands=(reach_by_name(),), settings=BEHIND)
UNTRUSTED = HostSetup(
    commands=(reach_by_name(),),
    settings={name: text for name, text in BEHIND.items() if name != "RELAY_TRUST_PROXY_HEADERS"},
)
SAME = {"API_SERVER_KEY": "a" * 24, "SVC_DASHBOARD_PASSWORD": "a" * 8}
WEAK = HostSetup(settings=settings_with(SVC_DASHBOARD_HOST="0.0.0.0", **SAME))
PLAIN = settings_with(SVC_PUBLIC_URL=f"http://{NAME}:8767", RELAY_LOCAL_TRUST="secret")
PARTS = HostSetup(servers=("servers.relay", "servers.api"), settings=settings_with(API_SERVER_HOST="0.0.0.0"))


@frozen
class PlantedFault:
    """A fault: how it is planted and removed, and the codes that must be reported, all of them and no others."""

    name: str
    codes: str  # separated by blanks
    inject: Callable[[DoctorHost], object] = lambda host: None
    undo: Callable[[DoctorHost], object] = lambda host: None
    setup: HostSetup = LAN


def nginx(host: DoctorHost, *, upgrade: str = UPGRADE, name: str = NAME) -> None:
    """Run nginx with a certificate for `name` on this host, as a proxy of its servers."""
    make_certificate(host.folder, name)
    address = host.setup.interfaces[0][1].partition("/")[0]
    text = NGINX.format(folder=host.folder, address=address, upgrade=upgrade, forwarded=FORWARDED)
    (host.folder / "nginx.conf").write_text(text)
    host.shell("nginx -p $FOLDER -c $FOLDER/nginx.conf >$FOLDER/nginx.log 2>&1 &")
    host.shell("until test -s $FOLDER/nginx.pid; do sleep 0.05; done")  # within the limit of a command


def _stop_nginx(host: DoctorHost) -> None:
    host.shell("kill $(cat $FOLDER/nginx.pid); while test -e $FOLDER/nginx.pid; do sleep 0.05; done")


def _set(**changes: str | None) -> Callable[[DoctorHost], None]:
    """Return a function that writes the `.env` of a host with changed settings; None removes a setting."""

    def inject(host: DoctorHost) -> None:
        settings = {**host.setup.settings, **changes}
        host.write_settings({name: value for name, value in settings.items() if value is not None})

    return inject


def _model(name: str, **changes: str | None) -> Callable[[DoctorHost], None]:
    return _set(SVC_MODEL_BASE_URL=MODEL.format(name), **changes)


def _certificate(days: float, *, other_key: bool = False) -> Callable[[DoctorHost], None]:
    """Return a function that configures a certificate of the dashboard, valid for `days`.

    With `other_key`, the configured key does not belong to it.
    """

    def inject(host: DoctorHost) -> None:
        cert, key = make_certificate(host.folder, NAME, days)
        if other_key:
            (host.folder / "other").mkdir(exist_ok=True)
            key = make_certificate(host.folder / "other")[1]
        _set(SVC_DASHBOARD_SSL_CERT=str(cert), SVC_DASHBOARD_SSL_KEY=str(key))(host)

    return inject


def _age(name: str, days: float) -> Callable[[DoctorHost], None]:
    """Return a function that creates a file of the home, if it is missing, and dates it `days` days back."""

    def inject(host: DoctorHost) -> None:
        (host.home / name).touch()
        os.utime(host.home / name, (time.time() - days * DAY,) * 2)

    return inject


def _remove(name: str) -> Callable[[DoctorHost], None]:
    return lambda host: (host.home / name).unlink()


def _shell(command: str) -> Callable[[DoctorHost], object]:
    return lambda host: host.shell(command)


def _set_up(**settings: str) -> HostSetup:
    return HostSetup(settings=settings_with(**settings))


def _small_disk(size: str) -> HostSetup:
    return HostSetup(commands=(f"mount -t tmpfs -o size={size},mode=700 none $FOLDER/svc",))


def _other_version(host: DoctorHost) -> None:
    path = host.home / "run" / "api.json"
    (host.folder / "api.json").write_bytes(path.read_bytes())
    path.write_text(re.sub(r'"version": ?"1\.', '"version": "0.', path.read_text()))


def _own_version(host: DoctorHost) -> None:
    (host.home / "run/api.json").write_bytes((host.folder / "api.json").read_bytes())


def _phone(*options: str, ttl: str = "7d") -> Callable[[DoctorHost], None]:
    """Return a function that pairs a reference phone, started with `options` on a host."""

    def inject(host: DoctorHost) -> None:
        invite = json.loads(host.svc("pair", "--json", "--ttl", ttl).stdout)
        relay = ("--remote", "ws://127.0.0.1:8767", "--code", invite["relay"]["code"])
        host.start("clients.phone", *relay, "--name", f"Phone {options}", "--device-id", f"{options}", *options,
                   "--no-view", until="paired")  # fmt: skip
        time.sleep(1.0)  # its first status

    return inject


def _end_phones(host: DoctorHost) -> None:
    host.end_last()
    host.svc("revoke", "Phone", "--yes")


FAULTS: tuple[PlantedFault, ...] = (
    PlantedFault("a model without an address", "model_url_missing", _set(SVC_MODEL_BASE_URL=None)),
    PlantedFault("a dead model", "model_unreachable", _set(SVC_MODEL_BASE_URL="http://127.0.0.1:9/v1")),
    PlantedFault("a model that needs a key", "model_key_refused", _model("locked")),
    PlantedFault("a broken model server", "model_odd_answer", _model("odd")),
    PlantedFault("a model server of two, no name", "model_name_missing", _model("two", SVC_MODEL=None)),
    PlantedFault("a misspelt model", "model_name_unknown", _set(SVC_MODEL="lama3.2")),
    PlantedFault("a model without tools", "model_without_tools", _model("no-tools")),
    PlantedFault("a small context", "model_context_small", _model("small")),
    PlantedFault("a context that is not there", "model_context_false", _set(SVC_MODEL_CONTEXT="200000")),
    PlantedFault("a clock that differs", "clock_off", _model("late")),
    PlantedFault("a clock that went back", "clock_behind", _age("notes", -1.0), _remove("notes")),
    PlantedFault("other names", "brand_differs", _set(SVC_BRAND="hermes")),
    PlantedFault("a broken .env", "env_unreadable", lambda host: host.write_settings(host.setup.settings, "A='\n")),
    PlantedFault("a misspelt variable", "env_unknown", _set(RELAY_HSOT="0.0.0.0")),
    PlantedFault(
        "a wrong config.yaml",
        "config_wrong",
        lambda host: (host.home / "config.yaml").write_text("tts: 5\n"),
        _remove("config.yaml"),
    ),
    PlantedFault("a shell that is not there", "path_missing", _set(RELAY_TERMINAL_SHELL="/nope/sh")),
    PlantedFault(
        "secrets for all users",
        "home_readable",
        _shell("chmod 755 $FOLDER/svc; chmod 644 $FOLDER/svc/.env"),
        _shell("chmod 700 $FOLDER/svc"),
    ),
    PlantedFault("no backup for 40 days", "backup_missing", _age("notes", 40.0), _remove("notes")),
    PlantedFault("a backup of 40 days", "backup_old", _age("run/last-backup", 40.0), _remove("run/last-backup")),
    PlantedFault("an expired certificate", "certificate_expired", _certificate(-2.0)),
    PlantedFault("a certificate that expires", "certificate_expires", _certificate(5.0)),
    PlantedFault("the key of another certificate", "certificate_unusable", _certificate(20.0, other_key=True)),
    PlantedFault("another version runs", "version_differs", _other_version, _own_version),
    PlantedFault(
        "a home that became read-only",
        "home_not_writable",
        _shell("mount --bind $FOLDER/svc $FOLDER/svc; mount -o remount,bind,ro $FOLDER/svc"),
        _shell("umount $FOLDER/svc"),
    ),
    PlantedFault("an address without a server", "public_unreachable", _set(SVC_PUBLIC_URL="https://192.0.2.99:1/")),
    PlantedFault("a phone with the store's app", "phone_store_build", _phone("--store-build"), _end_phones),
    PlantedFault("a session that ends", "session_expires", _phone(ttl="1d"), _end_phones),
    PlantedFault("weak credentials", "key_weak password_weak", setup=WEAK),
    PlantedFault("no network", "no_address", setup=HostSetup(interfaces=())),
    PlantedFault("a VPN alone", "poor_address", setup=HostSetup(interfaces=(("tun0", "10.5.0.2/24"),), gateway="")),
    PlantedFault(
        "servers for this host alone",
        "relay_local_only",
        setup=_set_up(RELAY_HOST="127.0.0.1", API_SERVER_HOST="127.0.0.1"),
    ),
    PlantedFault("an API for this host alone", "api_local_only", setup=_set_up(API_SERVER_HOST="127.0.0.1")),
    PlantedFault("a silent API", "server_silent route_dead", lambda host: host.end_last(signal.SIGSTOP), setup=PARTS),
    PlantedFault("a dead API", "api_down", lambda host: host.end_last(), setup=PARTS),
    PlantedFault("a dead relay", "relay_down", setup=HostSetup(servers=("servers.api",))),
    PlantedFault(
        "a port in use",
        "port_taken",
        lambda host: host.start("http.server", "8642", until="Serving"),
        setup=HostSetup(servers=("servers.relay",)),
    ),
    PlantedFault(
        "a broken database",
        "relay_down database_broken",
        lambda host: (host.home / "svc.db").write_bytes(b"no database" * 100),
        setup=HostSetup(servers=()),
    ),
    PlantedFault("a full disk", "disk_full", setup=_small_disk("20m")),
    PlantedFault("a disk that is nearly full", "disk_low", setup=_small_disk("200m")),
    PlantedFault(
        "a proxy without WebSockets",
        "public_websocket",
        lambda host: nginx(host, upgrade=""),
        _stop_nginx,
        setup=PROXIED,
    ),
    PlantedFault(
        "a certificate of another name",
        "public_unreachable",
        lambda host: nginx(host, name="other.example"),
        _stop_nginx,
        setup=PROXIED,
    ),
    PlantedFault("a proxy that is not trusted", "proxy_not_trusted", nginx, setup=UNTRUSTED),
    PlantedFault(
        "a public address in plain text, of the relay alone",
        "public_plain public_unreachable",
        setup=HostSetup(commands=(reach_by_name(),), settings=PLAIN),
    ),
)
