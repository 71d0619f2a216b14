"""The phone uses the selected candidate and selects again.

tests/service_clients/test_candidate_prober.py covers the selection itself.
"""

from svc_proto.commands import Abort, Cancel, Command, Compute, Connect, Notify, Ready
from svc_proto.facts import Closed, FailureKind, ReadClosed, Started, Stopping
from svc_proto.machines.candidate_selection import Candidate
from svc_proto.phone.service import PhoneState
from svc_proto.wire.events import CloseWebSocket, RequestHead
from tests.phone.harness import STREAM, TOKEN, PhoneHarness, connects

LAN = Candidate("lan", 0, "ws://lan.example:8767")
PUBLIC = Candidate("public", 1, "wss://public.example:443")
S = PhoneState


def rig_of(*routes: Candidate, code: str | None = None) -> tuple[PhoneHarness, list[Connect]]:
    """Start a phone with these candidates; return its harness and its first probes."""
    rig = PhoneHarness(remote=routes[0].url, token=None if code else TOKEN, code=code, routes=routes)
    rig.book >> Started()
    ready, *probes = rig.book.drain_commands()
    assert ready == Ready()
    return rig, connects(probes)


def answer(rig: PhoneHarness, probe: Connect, status: int = 200, target: str = "/health") -> list[Command]:
    """Answer a probe and return the commands that follow."""
    end = rig.connected(probe)
    head, *_ = end.receive(rig.book.drain_commands())
    assert isinstance(head, RequestHead)
    assert (head.method, head.target) == ("GET", target)
    rig.book >> end.answer(status, b"{}")
    commands = rig.book.drain_commands()
    rig.book >> Closed(probe.ch) << []
    return commands


def routes_told(rig: PhoneHarness) -> list[str]:
    return [str(tell.fields["role"]) for tell in rig.new_notifications() if tell.event == "route"]


def test_phone_backs_off_when_no_candidate_answers() -> None:
    rig, (probe,) = rig_of(LAN, PUBLIC)
    rig.book.fail(probe)
    (following,) = connects(rig.book.drain_commands())
    rig.book.fail(following, FailureKind.TLS)
    assert rig.is_in(S.BACKING_OFF)
    rig.book << [Notify("offline", {"retry_in": rig.pause()})]
    problems = f"{LAN.url}: internal; {PUBLIC.url}: tls"
    assert rig.book.logs[-1].fields == {"problem": "no route answers", "detail": problems}
    assert 1.0 <= rig.pause() <= 1.25
    probe = rig.next_connect()
    assert probe.host == "lan.example"
    rig.book.fail(probe)
    (following,) = connects(rig.book.drain_commands())
    rig.book.fail(following).drain_commands()
    assert 2.0 <= rig.pause() <= 2.5


def test_selection_is_announced_and_cached_for_a_minute() -> None:
    rig, (probe,) = rig_of(PUBLIC, LAN)
    assert (probe.host, probe.port, probe.tls) == ("lan.example", 8767, False)
    (order,) = connects(answer(rig, probe))
    assert order.host == "lan.example"
    assert rig.new_notifications()[-1] == Notify("route", {"role": "lan", "url": LAN.url})
    rig.online(connect=order)
    rig.vanish()
    again = rig.next_connect()  # the socket at once, without a probe
    rig.online(connect=again)
    assert routes_told(rig) == ["lan"]
    for _ in range(2):
        rig.delivered()
        rig.book.after(29.0).drain_commands()
    rig.vanish()
    probe = rig.next_connect()
    (order,) = connects(answer(rig, probe))
    assert order.host == "lan.example"


def test_unusable_candidate_and_refusing_relay_are_probed_again() -> None:
    rig, (probe,) = rig_of(LAN, PUBLIC)
    (order,) = connects(answer(rig, probe))
    rig.book.fail(order, FailureKind.UNREACHABLE).drain_commands()
    probe = rig.next_connect()
    rig.book.fail(probe)
    (fallback,) = connects(rig.book.drain_commands())
    (order,) = connects(answer(rig, fallback))
    assert order.host == "public.example"
    rig.online(connect=order)
    assert routes_told(rig)[-1] == "public"
    rig, (probe,) = rig_of(LAN)
    (order,) = connects(answer(rig, probe))
    rig.opened(order)
    rig.vanish()
    probe = rig.next_connect()
    (order,) = connects(answer(rig, probe))
    rig.online(connect=order)
    rig.vanish()
    rig.online(connect=rig.next_connect())  # the socket at once: the relay has accepted a sign-in since


def online_on_the_lan() -> PhoneHarness:
    rig, (probe,) = rig_of(LAN, PUBLIC)
    (order,) = connects(answer(rig, probe))
    rig.online(connect=order)
    rig.open_keyboard()
    rig.new_notifications()
    return rig


def test_lifetime_and_pin_are_those_of_the_chosen_candidate() -> None:
    rig, (probe,) = rig_of(LAN, PUBLIC, code="ABC123")
    rig.book.fail(probe)
    (following,) = connects(rig.book.drain_commands())
    (order,) = connects(answer(rig, following))
    assert "ttl_seconds" not in rig.opened(order).payload  # with TLS the relay chooses
    rig.welcome()
    for result in ("pin", None):
        rig.book.answer(rig.book.order(Compute), result)
    assert rig.new_notifications()[-1].fields == {"url": PUBLIC.url, "pin": "pin"}


def test_network_change_moves_the_phone_to_another_candidate() -> None:
    rig = online_on_the_lan()
    rig.type("cellular")
    (probe,) = connects(rig.book.drain_commands())
    assert probe.host == "lan.example"
    rig.book.fail(probe)
    (following,) = connects(rig.book.drain_commands())
    answer(rig, following)
    rig.book >> rig.end.received_fact(CloseWebSocket(STREAM, 1000))
    rig.book.drain_commands()
    for fact in (ReadClosed(rig.end.ch), Closed(rig.end.ch)):
        rig.book >> fact
        rig.book.drain_commands()
    rig.book.fail(rig.next_connect())  # the better tier is probed again; the result of the worse one is cached
    (order,) = connects(rig.book.drain_commands())
    assert (order.host, order.tls) == ("public.example", True)
    rig.online(connect=order)
    assert routes_told(rig) == ["public"]


def test_connection_is_kept_with_the_same_route_or_none() -> None:
    rig = online_on_the_lan()
    rig.type("cellular")
    (probe,) = connects(rig.book.drain_commands())
    assert [command for command in answer(rig, probe) if not isinstance(command, Abort)] == []
    assert rig.is_in(S.ONLINE)
    rig = online_on_the_lan()
    rig.type("wifi")
    (probe,) = connects(rig.book.drain_commands())
    rig.book.fail(probe)
    (following,) = connects(rig.book.drain_commands())
    rig.book.fail(following) << []
    assert rig.is_in(S.ONLINE)


def test_network_change_ends_the_back_off() -> None:
    rig = online_on_the_lan()
    rig.vanish()
    rig.type("wifi")
    (probe,) = connects(rig.book.drain_commands())
    assert rig.is_in(S.CONNECTING)
    rig.type("cellular")
    commands = rig.book.drain_commands()
    assert Cancel(probe.op) in commands
    (again,) = connects(commands)
    (order,) = connects(answer(rig, again))
    rig.type("wifi")  # while the socket is being opened
    commands = rig.book.drain_commands()
    assert Cancel(order.op) in commands
    (again,) = connects(commands)
    (order,) = connects(answer(rig, again))
    rig.online(connect=order)


def test_network_change_with_one_address_only_ends_the_back_off() -> None:
    rig = PhoneHarness(token=TOKEN)
    order = rig.start()
    rig.open_keyboard()
    rig.type("wifi")
    assert connects(rig.book.drain_commands()) == []
    rig.online(connect=order)
    rig.type("wifi")
    assert connects(rig.book.drain_commands()) == []
    rig.vanish()
    pause = rig.pause()
    rig.type("cellular")
    (order,) = connects(rig.book.drain_commands())
    rig.book.after(pause) << []  # the pause has ended with the change
    rig.online(connect=order)


def test_before_the_first_connection_a_network_change_restarts_the_probes_and_a_stop_cancels_them() -> None:
    rig, (probe,) = rig_of(LAN)
    rig.open_keyboard()
    rig.type("wifi")
    commands = rig.book.drain_commands()
    assert Cancel(probe.op) in commands
    assert len(connects(commands)) == 1
    rig, (probe,) = rig_of(LAN)
    rig.book >> Stopping(5.0)
    assert Cancel(probe.op) in rig.book.drain_commands()


def test_route_is_used_for_attachments_and_dropped_with_its_connection() -> None:
    rig = online_on_the_lan()
    rig.type("show MEDIA:svc-relay://abc")
    (order,) = connects(rig.book.drain_commands())
    assert order.host == "lan.example"
    rig.type("cellular")
    (probe,) = connects(rig.book.drain_commands())
    rig.vanish()
    answer(rig, probe)
    assert rig.is_in(S.BACKING_OFF)
