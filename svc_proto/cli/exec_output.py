"""One command in a terminal: what to type, and what of the screen is its output, with its exit status.

A terminal carries no exit status, so the command is typed between two marks, which the shell prints in a spelling that
its echo of the typed line does not have. tmux would draw the output as a screen; so there the command is what "locks"
the tmux client: it has that client's terminal to itself, and its output comes byte for byte there too. When it is over
tmux takes the terminal back, and throws away what nobody has read of it by then (`tcflush`); so the second mark is
answered, and the terminal kept until the answer has come.

Ctrl-C ends the command and not the shell around it, which tells the status then (`trap : INT`; the command itself gets
the signal as ever). The same for a terminal that is hung up (`HUP`): the shell lives on to end what waits in tmux.
"""

from __future__ import annotations

import re

from svc_proto.cli.errors import USAGE_ERROR, CliError

__all__ = ["ExecOutput", "typed_line"]

MAX_TYPED = 4_000  # bytes: a terminal takes lines of 4095
MAX_ENDS = 9  # times that its input may end before a terminal waits no more for the answer
KEPT = 64  # characters at the end that may be the beginning of a mark


def typed_line(command: str, nonce: str, *, tmux: bool, keyboard: bool = True) -> str:
    """What to type into a POSIX shell. Raises `CliError`, code 2, for what no line can hold.

    Without a `keyboard` the command has no input: what reads would else wait for ever for what nobody types.
    """
    if "\n" in command or "\r" in command or "\x00" in command:
        raise CliError("--exec takes one line: put the rest into a script", code=USAGE_ERROR)
    marks = (f"printf '%s%s\\n' {nonce} B", f"printf '%s%s%s.\\n' {nonce} E $?")
    streams = "2>&1" if keyboard else "</dev/null 2>&1"
    line = f"trap : INT HUP; stty -onlcr; {marks[0]}; sh -c {_quoted(command)} {streams}; {marks[1]}"
    if tmux:
        line += f'; a=; n=0; until [ "$a" = {nonce} ] || [ $n = {MAX_ENDS} ]; do read -r a || n=$((n+1)); done'
        locking = f'{_quoted(line + "; tmux -S ")}"${{TMUX%%,*}}"{_quoted(" wait-for -S " + nonce)}'
        line = f"tmux set lock-command {locking}; tmux lock-client; tmux wait-for {nonce}"
    if len(line.encode("utf-8", "replace")) > MAX_TYPED:
        raise CliError(
            "--exec takes no more than a terminal's line holds: put the command into a script", code=USAGE_ERROR
        )
    return f"{line}; exit\r"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


class ExecOutput:
    """Takes what the terminal shows; gives what the command wrote."""

    def __init__(self, nonce: str) -> None:
        self.answer = f"{nonce}\n"  # to be typed under tmux, once the status is known
        self._begin = f"{nonce}B\n"
        self._end = re.compile(rf"{re.escape(nonce)}E([0-9]{{1,3}})\.")
        self._ends = f"{nonce}E"
        self._pending = ""
        self._begun = False
        self.status: int | None = None

    @property
    def begun(self) -> bool:
        """Whether the command runs, or did."""
        return self._begun

    def feed(self, text: str) -> str:
        """The next piece of output."""
        if self.status is not None:
            return ""
        self._pending += text
        if not self._begun:
            before, mark, after = self._pending.partition(self._begin)
            if not mark:
                self._pending = before[-KEPT:]
                return ""
            self._begun, self._pending = True, after
        end = self._end.search(self._pending)
        if end is not None:
            self.status = int(end[1])
            shown, self._pending = self._pending[: end.start()], ""
            return shown
        cut = self._whole()
        shown, self._pending = self._pending[:cut], self._pending[cut:]
        return shown

    def _whole(self) -> int:
        """Where what may be the beginning of the second mark begins: everything before is shown at once."""
        text, mark = self._pending, self._ends
        for at in range(max(len(text) - KEPT, 0), len(text)):
            tail = text[at:]
            if mark.startswith(tail) or (tail.startswith(mark) and tail.removeprefix(mark).isdigit()):
                return at
        return len(text)

    def rest(self) -> str:
        """What is left when the terminal has ended without the second mark."""
        shown, self._pending = self._pending if self._begun else "", ""
        return shown
