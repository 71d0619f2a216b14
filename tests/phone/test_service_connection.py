import pytest

from svc_proto.commands import Abort, Cancel, CloseWrite, Connect, Exit, Level, Notify, Ready
from svc_proto.engine.core import Engine
from svc_proto.facts import Accepted, ChannelId, Closed, FailureKind, ReadClosed, Received, Started, Stopping
from svc_proto.phone.service import Phone, PhoneConfig, PhoneState
from svc_proto.wire.events import WebSocketClosed
from tests.phone.harness import STREAM, PhoneHarness, opened_phone
from tests.phone.safety.scripted_backend import ScriptedBackend
from tests.support.playbook import LOCAL, PEER, Playbook, SendMatcher

S = PhoneState


def test_pauses_double_with_jitter_and_begin_anew_after_a_success() -> None:
    rig = PhoneHarness()
    connect = rig.start()
    for base in (1.0, 2.0, 4.0, 8.0, 16.0, 30.0):
        rig.book.fail(connect, FailureKind.UNREACHABLE)
        rig.book << [Notify("offline", {"retry_in": rig.pause()})]
        assert base <= rig.pause() <= base * 1.25
        connect = rig.next_connect()
    rig.opened(connect)
    rig.vanish()  # before the sign-in was answered, which is no success
    assert 30.0 <= rig.pause() <= 37.5
    rig.online(connect=rig.next_connect())
    rig.vanish()
    assert 1.0 <= rig.pause() <= 1.25
    warnings = [(log.event, dict(log.fields)) for log in rig.book.logs if log.level is Level.WARNING]
    assert warnings == [("not connected", {"problem": "unreachable"})] * 6 + [("connection lost", {"code": 1006})] * 2


@pytest.mark.parametrize(("byte", "seconds"), [(0, 1.0), (128, 1.125), (255, 1.2490234375)])
def test_the_jitter_is_from_the_entropy(byte: int, seconds: float) -> None:
    phone = Phone(PhoneConfig(remote="ws://h", code="ABC123"), ScriptedBackend())
    book = Playbook(Engine(phone, entropy=lambda n: bytes([byte]) * n))
    book >> Started()
    book.fail(book.order(Connect)) << [Notify("offline", {"retry_in": seconds})]


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        (b"7", 7.0),
        (b"0", 1.0),
        (b"99999999999999999999", 3600.0),
        *((retry_after, 300.0) for retry_after in (b"soon", b"-5", b"", None)),
    ],
)
def test_refused_upgrade_and_too_many_attempts(retry_after: bytes | None, seconds: float) -> None:
    rig = PhoneHarness()
    refuse(rig, 503)
    assert 1.0 <= rig.pause() <= 1.25
    rig = PhoneHarness()
    refuse(rig, 429, () if retry_after is None else ((b"retry-after", retry_after),))
    assert rig.pause() == seconds
    assert (rig.book.logs[-1].event, rig.book.logs[-1].fields) == ("not connected", {"status": 429})
    rig.next_connect()


def refuse(rig: PhoneHarness, status: int, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    rig.asked(rig.start())
    rig.book >> rig.end.answer(status, b"no", *headers)
    assert Abort(rig.end.ch) in rig.book.drain_commands()
    assert rig.is_in(S.BACKING_OFF)


def test_silent_relay_is_disconnected_and_a_listener_is_refused() -> None:
    rig = PhoneHarness()
    rig.online()
    rig.book.after(50.0)
    assert Abort(rig.end.ch) in rig.book.drain_commands()
    rig = PhoneHarness()
    rig.book.fail(rig.start())
    rig.book.drain_commands()
    rig.book >> Accepted(ChannelId(2), PEER, LOCAL) << [Abort(ChannelId(2))]


def test_a_bug_while_connecting_ends_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = PhoneHarness()

    def broken(*args: object, **more: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("svc_proto.engine.http_client.parse_url", broken)
    rig.book >> Started() << [Ready(), Exit(70, "internal error, reference bug-1")]


def test_stop_without_a_connection() -> None:
    rig = PhoneHarness()
    connect = rig.start()
    rig.book >> Stopping(10.0) << [Cancel(connect.op), Exit(0)]
    assert rig.is_in(S.STOPPED)
    rig = PhoneHarness()
    rig.book.fail(rig.start())
    rig.book.drain_commands()
    rig.book >> Stopping(10.0) << [Exit(0)]
    rig = PhoneHarness()
    rig.book >> Stopping(10.0) << [Exit(0)]


def test_stopped_while_waiting_for_the_upgrade() -> None:
    rig = PhoneHarness()
    rig.asked(rig.start())
    commands = (rig.book >> Stopping(10.0)).drain_commands()
    assert Abort(rig.end.ch) in commands
    assert rig.book.core.handle(Closed(rig.end.ch), rig.book.now) == [Exit(0)]


@pytest.mark.parametrize("signed_in", [False, True])
def test_stopped_while_online(signed_in: bool) -> None:
    rig = PhoneHarness()
    if signed_in:
        rig.online()
    else:
        rig.opened()
    rig.book >> Stopping(10.0) << [SendMatcher(rig.end.ch)]
    assert rig.is_in(S.STOPPED)
    assert rig.end.receive(rig.book.drain_commands()) == [WebSocketClosed(STREAM, 1001, "going away")]
    rig.book >> Received(rig.end.ch, rig.end.conn.data_to_send()) << [CloseWrite(rig.end.ch)]
    rig.book >> ReadClosed(rig.end.ch) << []
    rig.book >> Closed(rig.end.ch) << [Exit(0)]


def test_stopped_after_a_refusal_the_reason_stays() -> None:
    rig = opened_phone()
    rig.message("system", "auth.fail", {"reason": "no"})
    rig.book.drain_commands()
    rig.book >> Stopping(10.0)
    rig.book.drain_commands()
    assert rig.is_in(S.GIVEN_UP)
    assert Exit(1, "the relay refused: no") in (rig.book >> Closed(rig.end.ch)).drain_commands()
