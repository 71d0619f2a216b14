from typing import Any

import pytest

from svc_proto.commands import Abort, Cancel, Command, Connect, Notify
from svc_proto.facts import Closed, FailureKind, Stopping
from svc_proto.phone.preferences import MIB, Preferences
from svc_proto.wire.events import Headers, RequestHead, ResponseData, ResponseEnd, ResponseHead
from tests.phone.harness import STREAM, TOKEN, PhoneHarness, RelayEnd, connects, with_keyboard

PNG = b"\x89PNG"
SMALL = Preferences(max_inbound_mb=5, cache_cap_mb=50)


def show(rig: PhoneHarness, text: str = "MEDIA:svc-relay://abc") -> list[Connect]:
    """Show a chat text and return the fetches that begin."""
    rig.type(f"show {text}")
    return connects(rig.book.drain_commands())


def connected(rig: PhoneHarness, order: Connect) -> tuple[RelayEnd, RequestHead]:
    end = rig.connected(order)
    (head, *_) = end.receive(rig.book.drain_commands())
    assert isinstance(head, RequestHead)
    return end, head


def answer(rig: PhoneHarness, order: Connect, status: int = 200, body: bytes = PNG) -> list[Command]:
    """Answer a fetch and return the commands that follow."""
    end, _ = connected(rig, order)
    rig.book >> end.answer(status, body, (b"content-type", b"image/png"))
    commands = rig.book.drain_commands()
    rig.book >> Closed(end.ch)
    return commands + rig.book.drain_commands()


def cards(rig: PhoneHarness) -> list[tuple[object, ...]]:
    """Return number, state, message and offered tap of each new attachment notification."""
    found = [tell.fields for tell in rig.new_notifications() if tell.event == "attachment"]
    return [(each["number"], each["state"], each["message"], each["tap"]) for each in found]


def test_a_token_is_fetched() -> None:
    rig = PhoneHarness(token="an earlier one")
    rig.online()
    rig.open_keyboard()
    (order,) = show(rig)
    (card,) = [tell.fields for tell in rig.new_notifications() if tell.event == "attachment"]
    assert card == {"number": 1, "state": "LOADING", "message": "", "tap": False, "size": 0, "content_type": ""}
    end, head = connected(rig, order)
    assert (head.method, head.target) == ("GET", "/media/abc")
    assert head.headers.get(b"authorization") == b"Bearer " + TOKEN.encode()
    fields = Headers(((b"content-type", b"image/png"), (b"transfer-encoding", b"chunked")))
    rig.book >> end.received_fact(ResponseHead(STREAM, 200, fields), ResponseData(STREAM, PNG), ResponseEnd(STREAM))
    told = [command for command in rig.book.drain_commands() if isinstance(command, Notify)]
    assert told == [
        Notify(
            "attachment",
            {"number": 1, "state": "READY", "message": "", "tap": False, "size": 4, "content_type": "image/png"},
        )
    ]
    assert rig.phone.attachments.body(1) == PNG
    assert rig.phone.attachments.body(2) is None


def test_several_in_one_text() -> None:
    rig = with_keyboard()
    orders = show(rig, " ".join(f"MEDIA:svc-relay://t{number}" for number in range(6)))
    assert len(orders) == 4  # simultaneous
    (fifth,) = connects(answer(rig, orders[0]))
    assert connected(rig, fifth)[1].target == "/media/t4"
    rig.book.fail(orders[1], FailureKind.UNREACHABLE)
    (sixth,) = connects(rig.book.drain_commands())
    assert connected(rig, sixth)[1].target == "/media/t5"


def test_card_of_a_refused_fetch_offers_a_tap() -> None:
    rig = with_keyboard()
    (order,) = show(rig)
    answer(rig, order, 404, b"{}")
    assert cards(rig)[-1] == (1, "unavailable card", "file not found", True)
    assert rig.phone.attachments.body(1) is None
    rig.type("tap 1")
    (order,) = connects(rig.book.drain_commands())
    assert cards(rig) == [(1, "LOADING", "", False)]
    answer(rig, order)
    assert cards(rig) == [(1, "READY", "", False)]
    rig.type("tap 1")
    assert rig.new_notifications()[0].fields["text"] == "there is nothing to fetch under 1"
    rig.book.drain_commands()
    rig.type("cellular")
    rig.book.drain_commands()
    assert show(rig) == []  # from now on


def test_relay_that_is_unreachable_or_too_slow() -> None:
    rig = with_keyboard()
    (order,) = show(rig)
    rig.book.fail(order, FailureKind.UNREACHABLE).drain_commands()
    assert cards(rig)[-1] == (1, "unavailable card", "relay offline", True)
    rig = with_keyboard()
    (order,) = show(rig)
    for _ in range(6):
        rig.book.after(20.0).drain_commands()
        rig.delivered()
        rig.book.drain_commands()
    assert cards(rig)[-1] == (1, "unavailable card", "relay offline", True)
    assert order.host == "127.0.0.1"


def test_too_large_attachment() -> None:
    rig = with_keyboard(preferences=SMALL)
    (order,) = show(rig)
    end, _ = connected(rig, order)
    rig.book >> end.received_fact(ResponseHead(STREAM, 200, Headers(((b"content-length", b"%d" % (5 * MIB + 1)),))))
    assert Abort(end.ch) in rig.book.drain_commands()
    assert cards(rig)[-1] == (1, "FAILED", "file too large", False)
    rig = with_keyboard(preferences=SMALL)
    (order,) = show(rig)
    end, _ = connected(rig, order)
    rig.book >> end.received_fact(
        ResponseHead(STREAM, 200, Headers(((b"transfer-encoding", b"chunked"),))), ResponseData(STREAM, bytes(5 * MIB))
    )
    rig.book.drain_commands()
    assert cards(rig) == [(1, "LOADING", "", False)]
    rig.book >> end.received_fact(ResponseData(STREAM, b"!"))
    assert Abort(end.ch) in rig.book.drain_commands()
    assert cards(rig) == [(1, "FAILED", "file too large", False)]


def test_large_attachments_and_the_cap_of_the_cache() -> None:
    rig = with_keyboard()
    (order,) = show(rig)
    answer(rig, order, body=bytes(9 * MIB))
    assert cards(rig)[-1][1] == "READY"
    rig = with_keyboard(preferences=Preferences(max_inbound_mb=30, cache_cap_mb=50))
    for _ in range(2):
        (order,) = show(rig)
        rig.book.after(1.0).drain_commands()
        answer(rig, order, body=bytes(26 * MIB))
    attachments = rig.phone.attachments
    assert [attachments.body(number) is not None for number in (1, 2)] == [False, True]


def test_attachment_waits_for_the_first_welcome() -> None:
    rig = with_keyboard(online=False)
    assert show(rig) == []
    rig = PhoneHarness(token=TOKEN)
    connect = rig.start()
    rig.open_keyboard()
    assert show(rig) == []
    rig.opened(connect)
    rig.welcome()
    assert len(connects(rig.book.drain_commands())) == 1
    rig = PhoneHarness(token=TOKEN, texts=("MEDIA:svc-relay://abc", "nothing", "MEDIA:/tmp/x"))
    rig.opened()
    assert [number for number, *_ in cards(rig)] == [1, 2]
    rig.welcome()
    assert len(connects(rig.book.drain_commands())) == 2


def test_stop_cancels_the_fetch() -> None:
    rig = with_keyboard()
    (ready,) = show(rig, "MEDIA:svc-relay://a")
    answer(rig, ready)
    (order,) = show(rig, "MEDIA:svc-relay://b")
    rig.book >> Stopping(5.0)
    assert Cancel(order.op) in rig.book.drain_commands()


def test_remembered_attachments_are_limited() -> None:
    rig = with_keyboard()
    orders = show(rig)
    show(rig, " ".join(["MEDIA:svc-relay://x"] * 60))
    rig.type("show " + " ".join(["MEDIA:svc-relay://y"] * 39))
    assert Cancel(orders[0].op) not in rig.book.drain_commands()
    rig.type("show " + " ".join(["MEDIA:svc-relay://z"] * 9))
    assert Cancel(orders[0].op) in rig.book.drain_commands()
    rig.type("tap 1")
    assert rig.new_notifications()[-1].fields["text"] == "there is nothing to fetch under 1"
    rig.book.drain_commands()


def test_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object, **named: object) -> Any:
        yield from ()
        raise ValueError

    monkeypatch.setattr("svc_proto.service_clients.service_client.fetch", broken)
    rig = with_keyboard()
    rig.book.logs.bugs = True
    show(rig)
    assert cards(rig)[-1] == (1, "unavailable card", "relay offline", True)
    assert [log.event for log in rig.book.logs] == ["bug"]
