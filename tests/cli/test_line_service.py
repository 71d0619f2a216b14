from svc_proto.cli.line_service import LineService
from svc_proto.commands import Abort, Exit, Ready, Send
from svc_proto.engine.core import Engine
from svc_proto.facts import Accepted, Closed, ReadClosed, Received, Sent, Started, Stopping
from svc_proto.machines.line_buffer import MAX_LINE
from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.support.playbook import CH, LOCAL, PEER, Playbook, counting_entropy


class Echo(LineService):
    """Service that repeats each line; `heard` has the problems of closed clients, and the pauses of reading."""

    is_busy = True

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_line(self, line: bytes) -> None:
        self.send_line(line)

    def on_client_closed(self, problem: str) -> None:
        self.heard.append(problem)

    def set_read_paused(self, holding: bool) -> None:
        self.heard.append("paused" if holding else "writable")

    def on_stopping(self) -> None:
        pass


def begun() -> tuple[Echo, Playbook]:
    echo = Echo()
    book = Playbook(Engine(echo, entropy=counting_entropy()))
    book >> Started() << [Ready()]
    book >> Accepted(CH, PEER, LOCAL) << []
    return echo, book


def test_lines_are_delivered_and_output_is_flushed_before_the_exit() -> None:
    echo, book = begun()
    book >> Received(CH, b"a\r\n \nb\nc") << [Send(CH, b"a\n"), Send(CH, b"b\n")]
    book >> ReadClosed(CH) << []
    assert echo.heard == [""]
    echo.is_busy = False
    echo.close_if_done()
    book >> Sent(CH, 2) << []
    book >> Sent(CH, 2) << [Abort(CH)]
    book >> Closed(CH, "eof") << [Exit(0)]


def test_stop_without_output() -> None:
    _, book = begun()
    book >> Stopping(10.0)
    assert Abort(CH) in book.drain_commands()
    book >> Closed(CH, "reset") << [Exit(0)]


def test_slow_client_reads_on() -> None:
    echo, book = begun()
    size = DEFAULT_LIMITS.high_water + 10
    assert len((book >> Received(CH, b"x" * size + b"\n")).drain_commands()) == 2  # reading stops meanwhile
    book >> Sent(CH, size + 1)
    assert book.drain_commands()
    assert echo.heard == ["paused", "writable"]


def test_too_long_line() -> None:
    echo, book = begun()
    book >> Received(CH, b"x" * (MAX_LINE + 1)) << []
    assert echo.heard == [f"a line has more than {MAX_LINE} bytes"]
