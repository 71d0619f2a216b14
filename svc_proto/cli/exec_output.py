"""Execution of a command in a terminal: the line to type, and the output and exit status in what the terminal shows.

The typed line prints a mark before and after the command's output; the second mark carries the exit status. In tmux the
command runs as the client's lock command, so that its output is not drawn as a screen, and the line then waits until
the nonce is typed as the reply to the second mark. The shell survives Ctrl-C and a hang-up, and reports the status.
"""

import re

from svc_proto.cli.errors import USAGE_ERROR, CliError

__all__ = ["ExecOutput", "typed_line"]

MAX_TYPED = 4_000  # bytes: a terminal takes lines of 4095
MAX_ENDS = 9  # ends of input after which a terminal stops waiting for the answer
KEPT = 64  # characters at the end that may be the beginning of a mark


def typed_line(command: str, nonce: str, *, tmux: bool, keyboard: bool = True) -> str:
    """Return the line to type into a POSIX shell that runs the command between two marks with this nonce.

    Without a `keyboard` the command has no input. Raises `CliError`, code 2, if the command has a line break or NUL, or
    if the line is longer than `MAX_TYPED` bytes.
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
    """Filter of a terminal's output for the part between the two marks; `status` is the exit status or None."""

    def __init__(self, nonce: str) -> None:
        self.answer = f"{nonce}\n"  # to be typed under tmux, once the status is known
        self._begin = f"{nonce}B\n"
        self._end = re.compile(rf"{re.escape(nonce)}E([0-9]{{1,3}})\.")
        self._ends = f"{nonce}E"
        self._pending = ""
        self.begun = False  # the command has started
        self.status: int | None = None

    @property
    def unmarked(self) -> str:
        """Return the last line of output before the command has started; empty after its start."""
        return "" if self.begun else self._pending.rstrip().rpartition("\n")[2]

    def feed(self, text: str) -> str:
        """Read the next piece of the terminal's output; return the text that surely belongs to the command's output."""
        if self.status is not None:
            return ""
        self._pending += text
        if not self.begun:
            before, mark, after = self._pending.partition(self._begin)
            if not mark:
                self._pending = before[-KEPT:]
                return ""
            self.begun, self._pending = True, after
        end = self._end.search(self._pending)
        if end is not None:
            self.status = int(end[1])
            shown, self._pending = self._pending[: end.start()], ""
            return shown
        cut = self._whole()
        shown, self._pending = self._pending[:cut], self._pending[cut:]
        return shown

    def _whole(self) -> int:
        """Return the length of the pending text that is surely output: the second mark may begin only behind it."""
        text, mark = self._pending, self._ends
        for at in range(max(len(text) - KEPT, 0), len(text)):
            tail = text[at:]
            if mark.startswith(tail) or (tail.startswith(mark) and tail.removeprefix(mark).isdigit()):
                return at
        return len(text)

    def rest(self) -> str:
        """Return the remaining output when the terminal has ended without the second mark."""
        shown, self._pending = self._pending if self.begun else "", ""
        return shown
