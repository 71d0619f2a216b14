import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.errors import Refused
from svc_proto.commands import TerminalSize
from svc_proto.machines import terminal


@pytest.mark.parametrize(
    ("payload", "size"),
    [
        ({}, (80, 24)),
        ({"cols": None, "rows": 0}, (80, 24)),
        ({"cols": 97, "rows": 31}, (97, 31)),
        ({"cols": "97", "rows": 31.9}, (97, 31)),
        ({"cols": -5, "rows": 65_535}, (1, 65_535)),
    ],
)
def test_sizes(payload: dict[str, object], size: tuple[int, int]) -> None:
    assert terminal.parse_terminal_size(payload) == TerminalSize(*size)


@pytest.mark.parametrize("cols", [65_536, "wide", True, [], float("nan"), float("inf"), 10**30])
def test_invalid_sizes(cols: object) -> None:
    with pytest.raises(Refused, match="cols"):
        terminal.parse_terminal_size({"cols": cols})


@pytest.mark.parametrize(
    ("name", "session"),
    [
        ("default", "svc-default"),
        ("hermes-abc-tab1", "svc-hermes-abc-tab1"),
        ("a.b:c d", "svc-a_b_c_d"),
        ("_.x._", "svc-x"),
        ("..", "svc-default"),
        ("=evil*", "svc-evil"),
        ("größe", "svc-gr_e-d353a267"),
        ("gro\u0308ße", "svc-gr_e-d353a267"),  # the same name, decomposed
        ("日本", "svc-cf2abf0c"),
        ("中国", "svc-f0e95216"),
        ("\U0001f600", "svc-f0443a34"),
    ],
)
def test_tmux_names(name: str, session: str) -> None:
    assert terminal.tmux_name("svc-", name) == session


def test_the_tmux_listing() -> None:
    text = "svc-work 1 2 1790000000\nother 1 1 1\nsvc-a 0 1 1790000001\nsvc-broken x 1 1\nshort\n"
    assert terminal.parse_tmux_list(text, "svc-") == [
        {"name": "a", "tmux_name": "svc-a", "attached": 0, "windows": 1, "created_at": 1790000001},
        {"name": "work", "tmux_name": "svc-work", "attached": 1, "windows": 2, "created_at": 1790000000},
    ]


@pytest.mark.parametrize(
    ("screen", "text"),
    [
        (b"", ""),
        (b" \n\n", ""),
        (b"$ \n", "$ \n"),
        ("é".encode() * terminal.MAX_REPLAY, "é" * (terminal.MAX_REPLAY // 2)),
        ("é".encode() * terminal.MAX_REPLAY + b"!", "é" * (terminal.MAX_REPLAY // 2 - 1) + "!"),
    ],
)
def test_replayed_screen(screen: bytes, text: str) -> None:
    assert terminal.replay_text(screen) == text


def test_output_is_due_soon_and_an_incomplete_character_is_replaced() -> None:
    buffer = terminal.OutputBuffer()
    assert [buffer.feed(b"a", 10.0), buffer.feed(b"b", 10.01)] == [10.0 + terminal.FLUSH_AFTER] * 2
    assert buffer.feed(b"x" * (terminal.FLUSH_AT - 3), 10.011) == 10.0 + terminal.FLUSH_AFTER
    assert buffer.feed(b"x", 10.012) == 10.012
    assert [buffer.drain(), buffer.drain(final=True)] == [b"ab" + b"x" * (terminal.FLUSH_AT - 2), b""]
    assert buffer.feed(b"a", 11.0) == 11.0 + terminal.FLUSH_AFTER
    buffer = terminal.OutputBuffer()
    buffer.feed("é".encode()[:1], 0.0)
    assert buffer.drain() == b""
    assert buffer.drain(final=True) == "\ufffd".encode()


@given(st.text(), st.lists(st.integers(1, 5)))
def test_no_character_is_ever_cut(text: str, sizes: list[int]) -> None:
    data, buffer, said = text.encode("utf-8", "replace"), terminal.OutputBuffer(), b""
    for size in [*sizes, len(data) + 1]:
        buffer.feed(data[:size], 0.0)
        data = data[size:]
        said += buffer.drain()
    assert said + buffer.drain(final=True) == text.encode("utf-8", "replace")


@given(st.lists(st.tuples(st.sampled_from("aé€😀"), st.integers(1, 4)), max_size=20))
def test_incomplete_characters_of_tmux_are_skipped(cuts: list[tuple[str, int]]) -> None:
    buffer, said = terminal.OutputBuffer(tmux=True), b""
    for letter, size in cuts:
        buffer.feed(letter.encode()[:size], 0.0)
        said += buffer.drain()
    whole = [letter for letter, size in cuts if size >= len(letter.encode())]
    assert said + buffer.drain(final=True) == "".join(whole).encode()


@pytest.mark.parametrize(("ended", "told"), [(None, None), (0, 0), (255, 255), (-1, 129), (-15, 143)])
def test_shell_exit_status(ended: int | None, told: int | None) -> None:
    assert terminal.shell_status(ended) == told
