import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.cli.errors import CliError
from svc_proto.cli.exec_output import MAX_TYPED, ExecOutput, typed_line

NONCE = "svc0123"


@pytest.mark.parametrize(
    ("command", "output", "status"),
    [
        ("echo hi", "hi\n", 0),
        ("printf noeol; exit 3", "noeol", 3),
        ("echo 'it''s' \"$((1+1))\" \\\\", "its 2 \\\n", 0),
        ("true", "", 0),
        ("(", None, 2),
        ("kill -9 $$", None, 137),
    ],
)
def test_a_real_shell(command: str, output: str | None, status: int) -> None:
    line = typed_line(command, NONCE, tmux=False).replace("stty -onlcr; ", "").rstrip("\r")
    said = subprocess.run(["sh", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    reader = ExecOutput(NONCE)
    shown = "".join(reader.feed(sign) for sign in "$ " + line + "\r\n" + said.stdout)
    assert reader.status == status
    assert output is None or shown == output
    assert reader.feed("$ exit\n") == reader.rest() == ""


def test_command_without_keyboard_has_no_input() -> None:
    line = typed_line("cat; echo over", NONCE, tmux=False, keyboard=False).replace("stty -onlcr; ", "").rstrip("\r")
    said = subprocess.run(["sh", "-c", line], input=b"not for it", capture_output=True, check=False, timeout=10)
    assert said.stdout.startswith(f"{NONCE}B\nover\n".encode())
    assert "/dev/null" not in typed_line("cat", NONCE, tmux=False)


def test_too_long_line() -> None:
    room = MAX_TYPED - len(typed_line("", NONCE, tmux=False).removesuffix("; exit\r"))
    longest = "\udcff" + "x" * (room - 1)
    assert longest in typed_line(longest, NONCE, tmux=False)
    with pytest.raises(CliError, match="no more than a terminal's line holds"):
        typed_line("x" * (room + 1), NONCE, tmux=False)


def test_within_tmux_the_command_has_the_clients_terminal() -> None:
    line = typed_line("echo 'a'", NONCE, tmux=True)
    assert line.startswith("tmux set lock-command 'trap : INT HUP; stty -onlcr; printf ")
    assert line.endswith(f"; tmux lock-client; tmux wait-for {NONCE}; exit\r")
    assert NONCE + "B" not in line


@pytest.mark.parametrize("typed", ["{answer}", "left over\n\\n\n{answer}not read", "", "no end of the line"])
def test_tmux_terminal_is_kept_until_the_second_mark_is_answered(typed: str) -> None:
    line = typed_line("echo hi", NONCE, tmux=True).removeprefix("tmux set lock-command 'trap : INT HUP; stty -onlcr; ")
    loop = line[line.index("; a=;") : line.index("; tmux -S ")].replace("'\\''", "'")
    command = ["sh", "-c", f"printf mark{loop}; printf over; cat"]
    answer = typed.format(answer=ExecOutput(NONCE).answer)
    said = subprocess.run(command, input=answer, capture_output=True, text=True, check=True, timeout=10)
    assert said.stdout == "markover" + ("not read" if "not read" in typed else "")


@given(st.text(alphabet="ab\n svc0123BE.", max_size=200), st.integers(1, 70))
def test_output_cut_anywhere(text: str, size: int) -> None:
    whole = f"prompt {NONCE}B\n{text}{NONCE}E7.\nmore"
    reader = ExecOutput(NONCE)
    shown = "".join(reader.feed(whole[at : at + size]) for at in range(0, len(whole), size))
    assert (shown, reader.status) == (text, 7)


def test_output_without_its_end() -> None:
    reader = ExecOutput(NONCE)
    assert reader.feed("x" * 1000) == reader.rest() == ""
    assert reader.feed(f"{NONCE}B\nabc\n") == "abc\n"  # at once: a program may wait for input
    assert reader.feed(f"svc, {NONCE}E12x {NONCE}E12") == f"svc, {NONCE}E12x "
    assert reader.rest() == f"{NONCE}E12"
    assert reader.status is None


@pytest.mark.parametrize("command", ["x" * 4000, "'" * 1000, "a\nb", "a\rb", "a\0b"])
def test_invalid_commands(command: str) -> None:
    with pytest.raises(CliError, match="--exec takes") as caught:
        typed_line(command, NONCE, tmux=True)
    assert caught.value.code == 2
