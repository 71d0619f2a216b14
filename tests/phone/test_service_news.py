import pytest

from svc_proto.commands import Compute, Connect
from svc_proto.facts import FailureKind, Started
from svc_proto.phone.service import PhoneState
from tests.phone.harness import PhoneHarness, SentEnvelope

WHERE = ("relay.example", 443)
PIN = "sha256/" + "A" * 43 + "="


def notice(title: str, text: str | None, number: int, posted_at: int) -> SentEnvelope:
    key = f"0|com.example.mail|{number}|null|10123"
    said = {"package_name": "com.example.mail", "title": title, "text": text, "sub_text": None}
    return SentEnvelope("notifications", "notification.posted", {**said, "posted_at": posted_at, "key": key})


def test_last_fifty_notifications_wait_for_a_relay_and_later_ones_go_to_it() -> None:
    rig = PhoneHarness(notices=tuple(f"n{number}" for number in range(49)))
    connect = rig.start()
    rig.open_keyboard()
    rig.type("notify a")
    rig.type("notify b")
    rig.opened(connect)
    rig.welcome()
    told = rig.sent_envelopes()[1:]
    assert [said.payload["title"] for said in told] == [*(f"n{number}" for number in range(1, 49)), "a", "b"]
    now = int(rig.book.now.wall * 1000)
    for line, title, text, number in (("Ann: Are you: there?", "Ann", "Are you: there?", 51), ("Hi", "Hi", None, 52)):
        rig.type(f"notify {line}")
        assert rig.sent_envelopes() == [notice(title, text, number, now)]


def online(rig: PhoneHarness, connect: Connect) -> Compute:
    """Authenticate over TLS and return the computation of the pin."""
    rig.opened(connect)
    rig.welcome()
    return rig.book.order(Compute)


def test_the_first_connection_over_tls_pins_the_key() -> None:
    rig = PhoneHarness(remote="wss://relay.example")
    seen = online(rig, rig.start())
    assert (seen.name, seen.args) == ("tls.seen", WHERE)
    rig.book.answer(seen, PIN)
    (expect,) = rig.book.drain_commands()
    assert isinstance(expect, Compute)
    assert (expect.name, expect.args) == ("tls.expect", (*WHERE, PIN))
    rig.book.answer(expect, None)
    (told,) = rig.new_notifications()[-1:]
    assert (told.event, told.fields) == ("pinned", {"url": "wss://relay.example", "pin": PIN})
    rig.book.drain_commands()
    rig.vanish()
    connect = rig.next_connect()
    rig.opened(connect)
    rig.welcome()
    assert not [command for command in rig.book.drain_commands() if isinstance(command, Compute)]  # once


def test_pin_of_a_host_without_pins_or_without_tls() -> None:
    rig = PhoneHarness(remote="wss://relay.example")
    rig.book.fail(online(rig, rig.start()), FailureKind.NOT_FOUND) << []
    rig = PhoneHarness(remote="ws://relay.example", pin=PIN)
    assert rig.start().host == "relay.example"


def test_configured_pin_applies_to_the_first_connection() -> None:
    rig = PhoneHarness(remote="wss://relay.example", pin=PIN)
    rig.book >> Started()
    _, expect = rig.book.drain_commands()
    assert isinstance(expect, Compute)
    assert (expect.name, expect.args) == ("tls.expect", (*WHERE, PIN))
    rig.book.answer(expect, None)
    (connect,) = rig.book.drain_commands()
    assert isinstance(connect, Connect)
    rig.online(connect=connect)
    assert rig.is_in(PhoneState.ONLINE)


@pytest.mark.parametrize(("kind", "detail"), [(FailureKind.TLS, True), (FailureKind.UNREACHABLE, False)])
def test_certificate_errors_are_logged(kind: FailureKind, detail: bool) -> None:
    rig = PhoneHarness(remote="wss://relay.example", pin=None)
    rig.book.fail(rig.start(), kind)
    rig.book.drain_commands()
    (record,) = [each for each in rig.book.logs if each.event == "not connected"]
    assert ("detail" in record.fields) is detail
