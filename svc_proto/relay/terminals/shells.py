"""Launcher of shells on this host, with or without tmux (wire terminal 1.4).

tmux has a socket of its own for each service home, and a configuration of its own if that can be written.
"""

from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.commands import Compute, Level, TerminalSize, WriteFile
from svc_proto.engine.child_process import INHERITED, run_command
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.sync import shield
from svc_proto.facts import Failure
from svc_proto.machines.terminal import replay_text, tmux_name
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import as_text

__all__ = ["ShellLauncher"]

FALLBACKS = ("/bin/bash", "/bin/sh")
SOCKET_DIGITS = 12  # of the hash of the service home, whose path could be too long for a socket's name
REPLAY_LINES = 200  # wire terminal 1.4
MAX_BEGUN = 256  # session names; the oldest is dropped
KILL_TIMEOUT = 11.0  # s, a little more than the command's own timeout
LIST_FORMAT = "#{session_name} #{session_attached} #{session_windows} #{session_created}"
TMUX_CONF = b"""# Written by the relay at each start.
set -g escape-time 0
set -g default-terminal "tmux-256color"
set -ga terminal-features ",xterm-256color:RGB"
set -ga terminal-overrides ",xterm-256color:Tc"
set -g mouse on
set -g focus-events on
set -g set-clipboard on
setw -g aggressive-resize on
set -g history-limit 10000
set -g status off
"""


class ShellLauncher:
    """Choice of the shell, command and environment of a terminal, and control of its tmux session.

    `TerminalChannelHandler` starts the process. `prepare` looks for tmux once, at the start, if it is enabled.
    """

    def __init__(self, engine: Engine, config: RelayConfig) -> None:
        self._engine = engine
        self._config = config
        self._conf: str | None = None
        self.tmux: str | None = None
        self.prefix = f"{config.brand.name}-"
        self._socket = f"{config.brand.scheme}-{sha256_hex(config.home)[:SOCKET_DIGITS]}"
        self.begun: ExpiringMap[str, bool] = ExpiringMap(MAX_BEGUN)  # tmux sessions, some of which may have ended
        self.inherit = (*INHERITED, *config.terminal_env)  # environment of the shells, and of tmux, which passes it on

    def prepare(self) -> Flow[None]:
        """Find tmux, if it is enabled, and write its configuration file; if that fails, tmux reads the user's own.

        Log a configured shell that is not usable, which `choose` then skips.
        """
        engine, shell = self._engine, self._config.terminal_shell
        if shell is not None:
            usable = yield from run_operation(engine, Compute(engine.new_op(), "executable", (shell,)))
            if usable is not True:
                engine.log(Level.WARNING, "configured shell not usable", shell=shell)
        if not self._config.terminal_tmux:
            return
        found = yield from run_operation(engine, Compute(engine.new_op(), "which", ("tmux",)))
        if not isinstance(found, str):
            return
        self.tmux = found
        written = yield from run_operation(engine, WriteFile(engine.new_op(), "tmux.conf", TMUX_CONF))
        self._conf = None if isinstance(written, Failure) else written

    def choose(self, requested: object) -> Flow[str | None]:
        """Return the first usable shell: the requested, the configured, the user's, bash or sh; None without any."""
        engine = self._engine
        for shell in (as_text(requested), self._config.terminal_shell, self._config.user_shell, *FALLBACKS):
            if shell is None or not shell.startswith("/"):
                continue
            usable = yield from run_operation(engine, Compute(engine.new_op(), "executable", (shell,)))
            if usable is True:
                return shell
        return None

    def session_name(self, name: str) -> str:
        """Return the name of the tmux session for a client's session name."""
        return tmux_name(self.prefix, name)

    def argv(self, name: str, shell: str, *, made: bool = False, login: bool = True) -> tuple[str, ...]:
        """Return the command for the pseudo-terminal: tmux, or the shell itself if there is no tmux.

        Only with `login` the shell reads a profile. `made`: the tmux session exists already, and the command only
        attaches to it, since `new-session -A` would recreate a session that is killed before its client starts.
        """
        if self.tmux is None:
            return (shell, _mode(login=login))
        if made:
            return self._tmux(*self._options(), "attach-session", "-t", f"={self.session_name(name)}")
        # By default tmux would start the shell that was the user's when its server began.
        return self._tmux(
            *self._options(), "new-session", "-A", "-s", self.session_name(name), shell, _mode(login=login)
        )

    def env(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return variables to add to the child's environment; the first is the terminal type, which tmux replaces."""
        marker = f"{self._config.brand.name.upper()}_RELAY_TERMINAL"
        return (("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), (marker, name))

    def create_session(self, name: str, shell: str, size: TerminalSize, *, login: bool = True) -> Flow[bool]:
        """Create the tmux session without a client; return False if it exists, or if tmux fails."""
        self.begun.put(self.session_name(name), True, None)
        environment = [word for variable in self.env(name)[1:] for word in ("-e", "=".join(variable))]
        place = ("-s", self.session_name(name), "-x", str(size.cols), "-y", str(size.rows))
        words = ("new-session", "-d", *place, *environment, shell, _mode(login=login))
        return (yield from self._succeeds(*self._options(), *words))

    def has_session(self, name: str) -> Flow[bool]:
        """Report whether the tmux session exists; False if tmux fails."""
        return (yield from self._succeeds("has-session", "-t", f"={self.session_name(name)}"))

    def kill_session(self, name: str) -> Flow[bool]:
        """End the tmux session, even if the caller is cancelled; return False if it is missing or tmux fails."""
        self.begun.discard(self.session_name(name))
        killing = self._succeeds("kill-session", "-t", f"={self.session_name(name)}")
        return (yield from shield(self._engine, killing, within=KILL_TIMEOUT)) is True

    def capture(self, name: str) -> Flow[str]:
        """Return the screen of a tmux session and up to `REPLAY_LINES` lines above it as text; empty if unavailable."""
        target = f"={self.session_name(name)}:"
        return replay_text((yield from self._output("capture-pane", "-p", "-S", f"-{REPLAY_LINES}", "-t", target)))

    def list_sessions(self) -> Flow[str]:
        """Return one line for each tmux session, in `LIST_FORMAT`; empty without any, and if tmux fails."""
        return (yield from self._output("list-sessions", "-F", LIST_FORMAT)).decode("utf-8", "replace")

    def _options(self) -> tuple[str, ...]:
        return ("-u",) if self._conf is None else ("-f", self._conf, "-u")

    def _tmux(self, *arguments: str) -> tuple[str, ...]:
        return (self.tmux or "tmux", "-L", self._socket, *arguments)

    def _succeeds(self, *arguments: str) -> Flow[bool]:
        finished = yield from run_command(self._engine, self._tmux(*arguments), inherit=self.inherit)
        return not isinstance(finished, Failure) and finished.status == 0

    def _output(self, *arguments: str) -> Flow[bytes]:
        finished = yield from run_command(self._engine, self._tmux(*arguments), inherit=self.inherit)
        if isinstance(finished, Failure) or finished.status != 0:
            return b""
        return finished.output


def _mode(*, login: bool) -> str:
    return "-l" if login else "-i"
