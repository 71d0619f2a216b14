from threading import Event

import pytest
from zeroconf import IPVersion, ServiceBrowser, ServiceListener, Zeroconf

from runtimes.net import mdns
from runtimes.net.mdns import ServiceAnnouncement

HERE = "127.0.0.1"
PATIENCE = 20.0  # s


class Listener(ServiceListener):
    """Listener that records whether the dashboard of the test is found by mDNS, and whether it is removed again."""

    def __init__(self) -> None:
        self.found = Event()
        self.gone = Event()
        self.name = ""

    def add_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        if name.startswith("svc dashboard of test"):
            self.name = name
            self.found.set()

    def update_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        """Ignore changes."""

    def remove_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        if name == self.name:
            self.gone.set()


@pytest.mark.parametrize(("tls", "kind"), [(False, "_http._tcp.local."), (True, "_https._tcp.local.")])
def test_a_browser_finds_the_server_until_it_stops(tls: bool, kind: str) -> None:
    listener = Listener()
    announcement = ServiceAnnouncement("svc dashboard of test.example", 9119, [HERE], tls=tls, properties={"path": "/"})
    with Zeroconf(interfaces=[HERE], ip_version=IPVersion.V4Only) as browser, ServiceBrowser(browser, kind, listener):
        announcement.start()
        assert listener.found.wait(PATIENCE)
        info = browser.get_service_info(kind, listener.name, timeout=5_000)
        assert info is not None
        assert info.port == 9119
        assert HERE in info.parsed_addresses()  # other programs of this host may add addresses to its name
        assert info.properties == {b"path": b"/"}
        assert listener.name == f"svc dashboard of test-example.{kind}"
        announcement.close()
        assert listener.gone.wait(PATIENCE)


def test_two_servers_of_one_name() -> None:
    first, second = (ServiceAnnouncement("svc dashboard of twins", port, [HERE]) for port in (9119, 9120))
    for announcement in (first, second):
        announcement.start()
        assert announcement.announced.wait(PATIENCE)
    for announcement in (first, second):
        announcement.close()


def test_a_network_that_cannot_be_used_is_reported() -> None:
    problems: list[str] = []
    announcement = ServiceAnnouncement("svc", 9119, ["192.0.2.1"], on_problem=problems.append)
    announcement.start()
    announcement.close()
    assert len(problems) == 1
    assert not announcement.announced.is_set()


def test_addresses_of_the_local_network(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"address": address, "up": address != "10.0.0.2", "point_to_point": address == "10.8.0.2"}
        for address in ("127.0.0.1", "192.168.1.9", "10.8.0.2", "10.0.0.2", "8.8.8.8", "fe80::1%eth0")
    ]
    monkeypatch.setattr(mdns, "list_network_addresses", lambda: rows)
    assert mdns.find_lan_addresses() == ["192.168.1.9"]


def test_the_package_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mdns.can_announce()
    monkeypatch.setattr(mdns, "find_spec", lambda name: None)
    assert not mdns.can_announce()
