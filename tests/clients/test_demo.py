import signal
from pathlib import Path

import pytest

from clients.demo import main
from clients.demo_program import Demo
from svc_proto.commands import Connect, Connected, Exit, Notify
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Address, Closed, FailureKind, Started, Stopping
from tests.engine.test_http_client import calling
from tests.phone.harness import RelayEnd
from tests.servers.conftest import Failing
from tests.servers.program_process import running
from tests.support.playbook import Playbook, counting_entropy


def test_the_demonstration(runtime: str, tmp_path: Path) -> None:
    with running(tmp_path, "clients.demo", runtime=runtime) as demo:
        demo.line(r"^relay on 127\.0\.0\.1:\d+$")
        demo.line(r"^POST /pairing/register  200 +\d+\.\d\d ms ")
        demo.line(r"^WS   /ws +101 +\d+\.\d\d ms  paired: session [0-9a-f]{8}…$")
        demo.line(r"^GET  /ping +200 +\d+\.\d\d ms  \{\"pong\":true")
        demo.line(r"^GET  /screen +200 +\d+\.\d\d ms  \d+ bytes$")
        demo.line(r"^POST /tap_text +200 +\d+\.\d\d ms  .*Clicked 'Mail'")
        demo.line(r"^GET  /current_app +200 +\d+\.\d\d ms  \{\"package\":\"com\.example\.mail\"\}$")
        demo.line(r"^activity: method=GET path=/ping .*executed")
        demo.line(r"^activity: method=POST path=/tap_text .*executed")
        demo.line(r"^POST /api/sessions +201 ")
        demo.line(r"^chat: /phone current_app$")
        demo.line(r"^event: tool.completed +tool_name='phone_current_app' .*com\.example\.mail")
        demo.line(r"^event: done$")
        demo.line(r"^event: assistant.completed +.*MEDIA:svc-relay://")
        demo.line(r"^GET  /media/… +200 .* \d+ bytes$")
        assert demo.wait() == 0
        assert not [line for line in demo.seen if "WARNING" in line or "ERROR" in line or "error" in line]


def test_bad_options(failing: Failing) -> None:
    assert failing(main, "--runtime", "twisted")[0] == 2
    assert failing(main, "stray")[0] == 2


def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    with running(tmp_path, "clients.demo") as demo:
        demo.line("^relay on ")
        assert demo.stop(signal.SIGINT) == 0


# --- when something is not as it should be ------------------------------------------------------------------------


def started() -> tuple[Playbook, Connect]:
    book = Playbook(
        Engine(Demo("ws://127.0.0.1:8767", "ABC123", api_url="http://127.0.0.1:8642"), entropy=counting_entropy())
    )
    book >> Started()
    connect = book.order(Connect)
    return book, connect


def texts(book: Playbook) -> list[object]:
    return [
        command.fields["text"]
        for command in book.drain_commands()
        if isinstance(command, Notify) and "text" in command.fields
    ]


def answered(book: Playbook, connect: Connect, status: int, body: bytes) -> None:
    end = RelayEnd(connect.ch)
    book.answer(connect, Connected(Address("127.0.0.1", 8767)))
    end.receive(book.drain_commands())
    book >> end.answer(status, body)


def test_a_failed_fetch_of_a_picture_shows_no_token() -> None:
    def fetch_picture(engine: Engine) -> Flow[object]:
        demo = Demo("ws://127.0.0.1:8767", "ABC123", api_url="http://127.0.0.1:8642")
        demo.engine = engine
        return (yield from demo._call("GET", "/media/secret-token", None, name="/media/…"))

    book, _ = calling(fetch_picture)
    book >> Started()
    book.fail(book.order(Connect), FailureKind.UNREACHABLE)
    (shown,) = texts(book)
    assert str(shown).startswith("GET /media/…: ")


@pytest.mark.parametrize(("status", "body"), [(403, b'{"ok":false}'), (200, b"["), (200, b"[]")])
def test_a_relay_that_refuses(status: int, body: bytes) -> None:
    book, connect = started()
    answered(book, connect, status, body)
    assert Exit(1) in book.drain_commands()


def test_a_phone_that_does_not_pair() -> None:
    book, connect = started()
    answered(book, connect, 200, b"{}")
    book.drain_commands()
    book.after(20.0)
    assert "the phone did not pair in time" in texts(book)
    assert Exit(1) in book.drain_commands()


def test_a_stop_in_the_middle() -> None:
    book, connect = started()
    answered(book, connect, 200, b"{}")
    book.drain_commands()
    book >> Closed(connect.ch)
    book.drain_commands()
    book >> Stopping(5.0)
    assert Exit(0) in book.drain_commands()
