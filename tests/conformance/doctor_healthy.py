"""Healthy hosts of the `doctor` suite: `svc doctor` finds no error and no warning there."""

from collections.abc import Callable

from attrs import frozen

from tests.conformance.doctor_faults import BEHIND, LAN, PROXIED, nginx, reach_by_name
from tests.conformance.doctor_host import DoctorHost, HostSetup, settings_with

OTHER = {"RELAY_PORT": "8768", "API_SERVER_PORT": "8643", "SVC_DASHBOARD_PORT": "9120"}
POSTGRESQL = (
    "mkdir $FOLDER/pg; chown 65534 $FOLDER/pg; chmod 711 $FOLDER $FOLDER/..; cd $FOLDER/pg;"
    " run='setpriv --reuid=65534 --clear-groups';"
    " $run initdb -D data -U svc --auth=trust --no-sync --no-instructions -E UTF8 --locale=C >/dev/null;"
    ' $run pg_ctl -D data -w -l log -o "-c listen_addresses=127.0.0.1 -c unix_socket_directories=" start >/dev/null'
)
READ_ONLY = "mount -t tmpfs -o size=2g,mode=700 none $FOLDER/svc; mount -o remount,bind,ro /"
LATIN_1 = "mkdir $FOLDER/locales; localedef -i en_US -f ISO-8859-1 $FOLDER/locales/en_US.ISO-8859-1"
CONTAINER = HostSetup(
    interfaces=(("eth0", "172.17.0.2/16"),),
    gateway="172.17.0.1",
    commands=("mount -t tmpfs none /run; touch /run/.containerenv", reach_by_name("172.17.0.2")),
    settings=BEHIND,
)


@frozen
class HealthyHost:
    """A healthy host: its set-up, and the function that prepares it after the start."""

    name: str
    setup: HostSetup
    prepare: Callable[[DoctorHost], object] = lambda host: None


def _start_other_home(host: DoctorHost) -> None:
    home = host.folder / "other"
    home.mkdir(0o700)
    host.start("servers", env={"SVC_HOME": str(home), "API_SERVER_KEY": "sk-of-the-other-home-0123", **OTHER})


HEALTHY: tuple[HealthyHost, ...] = (
    HealthyHost("LAN", LAN),
    HealthyHost(
        "VPN with the default route",
        HostSetup(interfaces=(("tun0", "10.5.0.2/24"), ("wlan0", "192.168.1.20/24")), gateway="10.5.0.1"),
    ),
    HealthyHost("container with a public address", CONTAINER, nginx),
    HealthyHost("behind a proxy", PROXIED, nginx),
    HealthyHost(
        "IPv6 only",
        HostSetup(
            interfaces=(("wlan0", "fd00::20/64"),),
            gateway="",
            settings=settings_with(RELAY_HOST="::", API_SERVER_HOST="::"),
        ),
    ),
    HealthyHost("no default route", HostSetup(interfaces=(("wlan0", "192.168.50.1/24"),), gateway="")),
    HealthyHost("two homes", HostSetup(), _start_other_home),
    HealthyHost(
        "Latin-1 locale",
        HostSetup(
            commands=(LATIN_1,), env={"LOCPATH": "{folder}/locales", "LC_ALL": "en_US.ISO-8859-1", "PYTHONUTF8": "0"}
        ),
    ),
    HealthyHost("read-only disk, writable home", HostSetup(commands=(READ_ONLY,))),
    HealthyHost(
        "PostgreSQL",
        HostSetup(
            commands=(POSTGRESQL,), settings=settings_with(SVC_DATABASE_URL="postgresql://svc@127.0.0.1/postgres")
        ),
    ),
    HealthyHost("relay alone", HostSetup(servers=("servers.relay",), settings={})),
)
