"""Announcement of a server by multicast DNS (RFC 6762 and 6763), with the optional package zeroconf.

The announcement has a thread of its own, since zeroconf brings an asyncio loop and the servers run on any loop.
"""

import socket
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from ipaddress import ip_address
from threading import Event, Thread

from runtimes.host.compute import list_network_addresses

__all__ = ["ServiceAnnouncement", "can_announce", "find_lan_addresses"]

MAX_LABEL = 63  # bytes of an instance name, RFC 6763 section 4.1.1
GOODBYE_TIMEOUT = 2.0  # s for the goodbye records


def can_announce() -> bool:
    """Report whether zeroconf is installed."""
    return find_spec("zeroconf") is not None


def find_lan_addresses() -> list[str]:
    """Return the private IPv4 addresses of the interfaces that are up, without loopback and tunnels."""
    rows = [row for row in list_network_addresses() if row["up"] and not row["point_to_point"]]
    found = [ip_address(str(row["address"]).partition("%")[0]) for row in rows]
    return [str(each) for each in found if each.version == 4 and each.is_private and not each.is_loopback]


class ServiceAnnouncement:
    """Announcement of one HTTP server in the local network, from `start` until `close`.

    The name gets a number if another host has announced it. `on_problem` receives the reason of a failure.
    """

    def __init__(
        self,
        name: str,
        port: int,
        addresses: Sequence[str],
        *,
        tls: bool = False,
        properties: Mapping[str, str] | None = None,
        on_problem: Callable[[str], None] = lambda problem: None,
    ) -> None:
        self._kind = f"_{'https' if tls else 'http'}._tcp.local."
        label = name.replace(".", "-").encode("utf-8")[:MAX_LABEL].decode("utf-8", "ignore")
        self._name = f"{label}.{self._kind}"
        self._port = port
        self._addresses = list(addresses)
        self._properties = dict(properties or {})
        self._on_problem = on_problem
        self._is_over = Event()
        self._thread = Thread(target=self._run, name="mdns", daemon=True)
        self.announced = Event()

    def start(self) -> None:
        """Start the thread; probing for the name takes about a second."""
        self._thread.start()

    def close(self) -> None:
        """Begin to withdraw the announcement, and wait up to `GOODBYE_TIMEOUT` s until that is done."""
        self._is_over.set()
        self._thread.join(GOODBYE_TIMEOUT)

    def _run(self) -> None:
        from zeroconf import Error, IPVersion, ServiceInfo, Zeroconf  # noqa: PLC0415, RUF100 - an extra

        info = ServiceInfo(
            self._kind,
            self._name,
            port=self._port,
            parsed_addresses=self._addresses,
            properties=self._properties,
            server=f"{socket.gethostname().partition('.')[0]}.local.",
        )
        try:
            for address in self._addresses:  # zeroconf leaves sockets open if an address is not of this host
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                    probe.bind((address, 0))
            with Zeroconf(interfaces=self._addresses, ip_version=IPVersion.V4Only) as network:
                network.register_service(info, allow_name_change=True)
                self.announced.set()
                self._is_over.wait()
        except (Error, OSError) as error:
            self._on_problem(str(error) or type(error).__name__)
