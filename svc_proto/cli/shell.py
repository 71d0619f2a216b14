"""Terminal on the relay's host, shown on the terminal of a desktop (wire terminal 1).

Keyboard and screen are one channel; the escape key detaches, or ends the terminal of a requested command. A terminal
without a command is attached again after a lost connection, with pauses that double from 1 to 30 s.
"""

import codecs
from collections import deque
from typing import cast

from attrs import evolve, field, frozen

from svc_proto.cli.desktop_connection import RelayUnreachableError
from svc_proto.cli.desktop_sessions import candidates_of, select_url, sign_in
from svc_proto.cli.error_text import sanitize_line
from svc_proto.cli.errors import CliError
from svc_proto.cli.exec_output import ExecOutput, typed_line
from svc_proto.cli.input_parsing import strip_escapes
from svc_proto.cli.one_shot_service import INTERRUPTED, OneShotService, announce_progress
from svc_proto.cli.session_store import StoredSession
from svc_proto.commands import Compute, Notify, TerminalSize
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task, run_operation, sleep
from svc_proto.engine.sync import Condition
from svc_proto.facts import Accepted, Failure
from svc_proto.schema.envelope import Envelope
from svc_proto.service_clients.candidate_prober import CandidateProber
from svc_proto.service_clients.relay_connection import RelayConnection
from svc_proto.wire.limits import DEFAULT_LIMITS

__all__ = ["ShellService", "ShellResult", "ShellRequest"]

ATTACH_TIMEOUT = 30.0  # s, wire terminal 1.3
START_TIMEOUT = 10.0  # s without output, before a command has started
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # s between two attempts to reconnect
A_DAY = 86_400.0  # s: upper bound of all waits here
CTRL_C = 3
REPEATED_INTERRUPT_TIMEOUT = 2.0  # s between two Ctrl-C that end a command which survives the first
END_OF_INPUT = "\x04"
PROGRESS_INTERVAL = 1.0  # s: a terminal that is only being set up ignores its input
RESTARTS = ("server shutdown", "ws closed during flush")  # reasons after which the relay may come back
QUIET = ("eof", "client detach", "client kill")  # reasons that are no failure (wire terminal 1.5)
NO_WRITE_TIMEOUT = evolve(DEFAULT_LIMITS, write_timeout=A_DAY)  # a pager may leave its output unread for an hour
EXEC_TERMINAL_SIZE = TerminalSize(250, 200)  # without a screen: wide enough that nothing wraps


@frozen(kw_only=True)
class ShellRequest:
    """The terminal to attach. `escape` is the key that detaches or, with a `command`, ends it; None for none."""

    session: StoredSession = field(repr=False)
    name: str = "default"
    shell: str | None = None
    command: str | None = None
    escape: int | None = 0x1D  # Ctrl-]
    keyboard: bool = True  # a person types, or standard input is sent
    person: bool = True  # at a terminal


@frozen
class ShellResult:
    """Exit status of `svc-relay shell`, and a line for the user."""

    status: int
    note: str = ""


class ShellService(OneShotService[ShellResult]):
    """Service that attaches a terminal of the relay's host.

    `Notify("raw")` requests the program to pass keys on unchanged.
    """

    def __init__(self, order: ShellRequest, *, watched: bool = False) -> None:
        super().__init__(self._run_session, watched=watched)
        self._order = order
        self._screen: _LocalTerminalChannel | None = None
        self._link: RelayConnection | None = None
        self._events: deque[tuple[str, str]] = deque()
        self._keys = codecs.getincrementaldecoder("utf-8")("replace")
        self._attach_id = ""
        self._attached = False
        self._ever = False
        self._input_over = self._typed = False
        self._ending: Task | None = None  # sends the end of input
        self._exec: ExecOutput | None = None
        self._last_output = 0.0  # monotonic time in s
        self._last_ctrl_c = -A_DAY
        self._reattached = False  # this and the next as the relay reported at the last attach
        self._tmux = False
        self._status: int | None = None  # of the shell, if the relay reports it

    def bind(self, engine: Engine) -> None:
        """Store the engine, and create the conditions that the flow waits for."""
        super().bind(engine)
        self.engine = engine
        self._bell, self._drained = Condition(engine), Condition(engine)

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Return the channel of keyboard and screen; None for any later one."""
        if self._screen is not None:
            return None
        self._screen = _LocalTerminalChannel(self, fact)
        self._update_reading()
        return self._screen

    # --- the course of the session ---

    def _run_session(self, engine: Engine) -> Flow[ShellResult]:
        order = self._order
        routes = CandidateProber(engine, candidates_of(order.session))
        nonce = "svc" + engine.entropy(6).hex()
        if order.command is not None:
            typed_line(order.command, nonce, tmux=True, keyboard=False)  # refused before any connection is made
        yield from self._connect(routes, anew=False)
        if order.command is not None:
            self._exec, self._last_output = ExecOutput(nonce), engine.now.mono
            self._type(typed_line(order.command, nonce, tmux=self._tmux, keyboard=order.keyboard))
        watcher = engine.spawn(self._watch_size()) if order.person else None
        try:
            return (yield from self._serve(routes))
        finally:
            for task in (watcher, self._ending):
                if task is not None:
                    task.cancel()

    def _serve(self, routes: CandidateProber) -> Flow[ShellResult]:
        while True:
            kind, text = yield from self._event(self._start_timeout())
            if kind == "" and self._start_timeout() <= 0:
                yield from self._close()
                raise CliError(f"the shell on the relay's host has not started the command: {self._last_words()}")
            if kind == "ended":
                return (yield from self._ended(text))
            if kind == "nothing":
                yield from self._close("detach" if self._reattached else "kill")
                return ShellResult(0, "[nothing to type: standard input is empty]")
            if kind == "interrupt":
                yield from self._close()
                status = None if self._exec is None else self._exec.status
                return ShellResult(INTERRUPTED if status is None else status)
            if kind == "detach":
                yield from self._close()
                yield from self._flushed()
                again = f"svc-relay shell --session {self._order.name}"
                return ShellResult(0, f"[detached from {self._order.name}; {again} comes back to it]")
            if kind == "lost":
                yield from self._reconnect(routes, text)

    def _start_timeout(self) -> float:
        """Return the seconds left for a requested command to start; a day if no command is waited for."""
        if self._exec is None or self._exec.begun:
            return A_DAY
        return self._last_output + START_TIMEOUT - self.engine.now.mono

    def _last_words(self) -> str:
        words = "" if self._exec is None else sanitize_line(strip_escapes(self._exec.unmarked))
        return f"its last output was {words!r}" if words else "it printed nothing"

    def _reconnect(self, routes: CandidateProber, why: str) -> Flow[None]:
        if self._exec is not None:
            raise CliError(f"the connection was lost while the command ran: {why}")
        pause = FIRST_PAUSE
        while True:
            self._show(f"\r\n[{why}; trying again in {pause:.0f} s]\r\n")
            yield from sleep(self.engine, pause)
            try:
                yield from self._connect(routes, anew=True)
            except RelayUnreachableError as error:
                why, pause = str(error), min(pause * 2, LONGEST_PAUSE)
            else:
                return

    def _connect(self, routes: CandidateProber, *, anew: bool) -> Flow[None]:
        engine, order = self.engine, self._order
        if anew and len(candidates_of(order.session)) > 1:
            chosen = yield from routes.select(anew=True)
            if chosen is None:
                raise RelayUnreachableError("no route to the relay answers")
            url = chosen.url
        else:
            url = yield from select_url(engine, order.session, routes)
        announce_progress(engine, f"connecting to {url}")
        link, _ = yield from sign_in(engine, order.session, url)
        self._link = link
        link.on_envelope, link.on_lost, link.on_drained = self._on_envelope, self._lost, self._update_reading
        size = yield from self._size()
        payload: dict[str, object] = {"session_name": order.name, "cols": size.cols, "rows": size.rows}
        shell = "/bin/sh" if order.command is not None else order.shell
        if shell is not None:
            payload["shell"] = shell
        if order.command is not None:
            payload["login"] = (
                False  # as over ssh: the commands of a profile may wait for input, fail, or start another shell
            )
        self._attach_id = link.send("terminal", "terminal.attach", payload)
        kind, text = yield from self._event(ATTACH_TIMEOUT)
        if kind == "lost":
            raise RelayUnreachableError(text)
        if kind != "attached":
            link.close()
            raise CliError(f"the relay gives no terminal: {text or 'no answer'}")
        if self._ever and not self._reattached:
            self._show("[the old shell is gone: this is a new one]\r\n")
        self._attached = self._ever = True
        engine.emit(Notify("raw", {}))
        self._update_reading()
        if self._input_over:
            self._end_input()

    def _ended(self, reason: str) -> Flow[ShellResult]:
        yield from self._close("")
        words = self._last_words()
        if self._exec is not None:
            self._show(self._lines(self._exec.rest()))
        yield from self._flushed()
        if self._exec is not None:
            if not self._exec.begun:
                raise CliError(f"the shell on the relay's host ended before the command: {words}")
            if self._exec.status is None:
                raise CliError(f"the command ended without a word of its status: {sanitize_line(reason)}")
            return ShellResult(self._exec.status)
        if reason != "eof":
            return ShellResult(0 if reason in QUIET else 1, f"[{sanitize_line(reason)}]")
        status = self._status or 0
        return ShellResult(status, f"[the shell has ended with status {status}]" if status else "[the shell has ended]")

    def _watch_size(self) -> Flow[None]:
        while True:
            found = yield from run_operation(
                self.engine, Compute(self.engine.new_op(), "terminal.resized"), within=A_DAY
            )
            if not isinstance(found, Failure) and self._attached and self._link is not None:
                size = _as_size(found)
                payload = {"session_name": self._order.name, "cols": size.cols, "rows": size.rows}
                self._link.send("terminal", "terminal.resize", payload)
            elif isinstance(found, Failure):
                yield from sleep(self.engine, 1.0)

    def _size(self) -> Flow[TerminalSize]:
        if not self._order.person:
            return EXEC_TERMINAL_SIZE
        return _as_size((yield from run_operation(self.engine, Compute(self.engine.new_op(), "terminal.size"))))

    # --- events ---

    def _event(self, within: float = A_DAY) -> Flow[tuple[str, str]]:
        if not self._events:
            yield from self._bell.wait(self.engine.now.mono + within)
        return self._events.popleft() if self._events else ("", "")

    def _notify(self, kind: str, text: str = "") -> None:
        self._events.append((kind, text))
        self._bell.notify_all()

    def _on_envelope(self, envelope: Envelope) -> None:
        payload = envelope.payload
        match (envelope.channel, envelope.type):
            case ("terminal", "terminal.output"):
                self._output(payload.text("data"))
            case ("terminal", "terminal.attached"):
                self._reattached = payload.get("reattach") is True
                self._tmux = payload.get("tmux_available") is True
                self._notify("attached")
            case ("terminal", "terminal.detached"):
                self._attached = False
                self._status = payload.integer("exit_status", 0, 255)
                if (reason := payload.text("reason")) in RESTARTS and self._link is not None:
                    self._link.close()
                    self._lost(reason)
                else:
                    self._notify("ended", sanitize_line(reason))
            case ("terminal" | "system", "terminal.error" | "error") if envelope.id == self._attach_id:
                self._notify("refused", sanitize_line(payload.text("message")))

    def _output(self, data: str) -> None:
        if self._exec is None:
            self._show(data)
            return
        was_over, self._last_output = self._is_over, self.engine.now.mono
        self._show(self._lines(self._exec.feed(data)))
        if self._is_over and not was_over and self._tmux:
            self._type(self._exec.answer)

    @property
    def _is_over(self) -> bool:
        """Report whether the requested command has ended, so that it reads no more input."""
        return self._exec is not None and self._exec.status is not None

    def _lost(self, why: str) -> None:
        self._attached, self._link = False, None
        self._update_reading()
        self._notify("lost", f"connection lost: {sanitize_line(why)}")

    def typed(self, data: bytes) -> None:
        """Handle typed keys, or bytes of standard input: send them to the relay, detach, or interrupt.

        While no terminal is attached, exit at Ctrl-C and the escape key, and drop other keys. After the end of a
        requested command, drop keys that do not interrupt.
        """
        escape = self._order.escape if self._order.person else None
        if not self._attached:
            if CTRL_C in data or (escape is not None and escape in data):
                self.engine.exit(INTERRUPTED)  # the user gives up while there is no connection
        elif self._exec is not None and self._ends_command(data, escape):
            self._notify("interrupt")
        elif escape is not None and escape in data:
            self._type(self._keys.decode(data[: data.index(escape)]))
            self._notify("detach")
        elif not self._is_over:
            self._typed = True
            self._type(self._keys.decode(data))

    def _ends_command(self, data: bytes, escape: int | None) -> bool:
        """Report whether these keys end the client's command.

        The escape key does. A person's Ctrl-C does if it comes twice in a row, or while the requested command does not
        run.
        """
        if escape is not None and escape in data:
            return True
        if CTRL_C not in data or not self._order.person:
            return False
        now, last = self.engine.now.mono, self._last_ctrl_c
        self._last_ctrl_c = now
        runs = self._exec is not None and self._exec.begun and not self._is_over
        return not runs or data.count(CTRL_C) > 1 or now - last <= REPEATED_INTERRUPT_TIMEOUT

    def on_stopping(self) -> None:
        """Handle Ctrl-C in cooked mode: exit, after ending a command's terminal if it is connected."""
        if self._order.command is None or self._link is None:
            super().on_stopping()
            return
        self.engine.spawn(self._close(), on_done=lambda nothing: self.engine.exit(INTERRUPTED))

    def typed_all(self) -> None:
        """Handle the end of standard input: while a terminal is attached, send the rest of the input and its end.

        A terminal without a command into which nothing was typed is ended instead, or left if it existed before. After
        the end of a requested command, send nothing.
        """
        self._input_over = True
        if self._attached and not self._is_over:
            self._type(self._keys.decode(b"", True))
            self._end_input()

    def _end_input(self) -> None:
        if self._exec is None and not self._typed:
            self._notify("nothing")
        elif self._ending is None:
            self._ending = self.engine.spawn(self._send_end())

    def _send_end(self) -> Flow[None]:
        while True:
            if self._attached and not self._is_over:
                self._type(END_OF_INPUT)
            yield from sleep(self.engine, PROGRESS_INTERVAL)

    def screen_gone(self) -> None:
        """Exit after standard output was closed, unless stopping."""
        if not self.engine.stopping:
            self.engine.exit(1, "the terminal cannot be shown any more: standard output is closed")

    def screen_writable(self, writable: bool) -> None:
        """Pause or resume the relay's output for the screen."""
        if self._link is not None:
            self._link.set_read_paused(not writable)

    def screen_empty(self) -> None:
        """Wake the flows that wait until all output is on the screen."""
        self._drained.notify_all()

    def _type(self, text: str) -> None:
        if text and self._link is not None:
            self._link.send("terminal", "terminal.input", {"session_name": self._order.name, "data": text})
            self._update_reading()

    def _show(self, text: str) -> None:
        if text and self._screen is not None and not self._screen.gone:
            self._screen.write(text.encode("utf-8", "replace"))

    def _lines(self, text: str) -> str:
        """Return output with CRLF line ends if a person's terminal, which is in raw mode, shows it; else unchanged."""
        return text.replace("\n", "\r\n") if self._order.person else text

    def _update_reading(self) -> None:
        """Update whether keys are read: while they can be sent, and between connections for a person's Ctrl-C."""
        screen = self._screen
        if screen is None or screen.gone:
            return
        ready = self._attached and self._link is not None and self._link.writable
        wanted = self._order.keyboard and (ready or (self._ever and not self._attached and self._order.person))
        screen.set_read_paused(not wanted)

    def _close(self, how: str | None = None) -> Flow[None]:
        """Send the message `terminal.<how>`, unless `how` is empty, and close the connection.

        With None, a command's terminal is killed, because it is never resumed, and any other one is detached.
        """
        link, self._link = self._link, None
        assert link is not None  # a terminal ends, and keys detach, only while there is a connection
        if how is None:
            how = "detach" if self._order.command is None else "kill"
        if how:
            link.send("terminal", f"terminal.{how}", {"session_name": self._order.name})
        yield from link.finish()

    def _flushed(self) -> Flow[None]:
        while self._screen is not None and not self._screen.gone and self._screen.credit.unsent:
            yield from self._drained.wait(self.engine.now.mono + A_DAY)


class _LocalTerminalChannel(Channel):
    """Channel of this program's standard input and output."""

    __slots__ = ("_service",)

    def __init__(self, service: ShellService, fact: Accepted) -> None:
        super().__init__(service.engine, fact.ch, NO_WRITE_TIMEOUT)
        self._service = service

    def received(self, data: bytes) -> None:
        self._service.typed(data)

    def read_closed(self) -> None:
        self._service.typed_all()

    def write(self, data: bytes) -> None:
        super().write(data)
        if self.credit.blocked:
            self._service.screen_writable(False)

    def reads_while_unsent(self) -> bool:
        return True

    def writable(self) -> None:
        self._service.screen_writable(True)

    def all_sent(self) -> None:
        self._service.screen_empty()

    def closed(self, why: str) -> None:
        super().closed(why)
        self._service.screen_gone()

    def stop(self) -> None:
        self.abort()


def _as_size(found: object) -> TerminalSize:
    if isinstance(found, tuple) and len(found) == 2:
        cols, rows = cast("tuple[int, int]", found)
        return TerminalSize(max(cols, 1), max(rows, 1))
    return TerminalSize(80, 24)
