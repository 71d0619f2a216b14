import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.machines.line_buffer import LineBuffer


@pytest.mark.parametrize("pieces", [(b"", b"12345"), (b"123", b"45"), (b"", b"12345\n"), (b"123", b"45\n")])
def test_a_line_over_the_limit_is_an_error(pieces: tuple[bytes, bytes]) -> None:
    lines = LineBuffer(limit=4)
    assert lines.feed(pieces[0]) == []
    with pytest.raises(RemoteProtocolError):
        lines.feed(pieces[1])


LIMIT = 8


class LinesAgainstAModel(RuleBasedStateMachine):
    """Line buffer beside a model: `fed` is the input, `told` the returned lines. After an error, all begins anew."""

    def __init__(self) -> None:
        super().__init__()
        self._begin()

    def _begin(self) -> None:
        self.lines = LineBuffer(limit=LIMIT)
        self.fed = b""
        self.told: list[bytes] = []

    @rule(
        piece=st.one_of(st.sampled_from((b"a", b"bcd", b"\n", b"\r", b"\r\n", b"e\nf")), st.binary(max_size=2 * LIMIT))
    )
    def feed(self, piece: bytes) -> None:
        self._feed(piece)

    @rule(beyond=st.integers(-1, 1), ended=st.booleans())
    def feed_up_to_the_limit(self, beyond: int, ended: bool) -> None:
        rest = self.fed.split(b"\n")[-1]
        self._feed(b"x" * max(0, LIMIT - len(rest) + beyond) + b"\n" * ended)

    def _feed(self, piece: bytes) -> None:
        # Wire terminal-voice 2.3: "stdout read by line"; a line at the limit is still one.
        self.fed += piece
        if any(len(line) > LIMIT for line in self.fed.split(b"\n")):
            with pytest.raises(RemoteProtocolError):
                self.lines.feed(piece)
            self._begin()
        else:
            self.told += self.lines.feed(piece)

    @invariant()
    def every_line_is_told_once_and_whole(self) -> None:
        assert self.told == [line.removesuffix(b"\r") for line in self.fed.split(b"\n")[:-1]]


TestLinesAgainstAModel = LinesAgainstAModel.TestCase
TestLinesAgainstAModel.settings = settings(max_examples=25, stateful_step_count=20)
