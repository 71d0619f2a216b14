"""Resource accounting of relay and API: checks of tables, counts and limits, and the sizes of tables."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.local_secret_rules import check_ends
from svc_proto.api.service import Api
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.engine.core import Engine
from svc_proto.engine.http2_channel import Http2Channel
from svc_proto.engine.http_channel import HttpChannel
from svc_proto.engine.websocket import WebSocketConnection, WebSocketConnectionState
from svc_proto.machines.terminal import MAX_TERMINALS
from svc_proto.relay.media.upload_registry import QUOTA
from svc_proto.relay.service import Relay
from svc_proto.relay.terminals.tui_channel import MAX_GATEWAYS
from svc_proto.relay.websocket.client_connection import ClientConnection, ClientState

if TYPE_CHECKING:
    from fuzz.simulation.deployment import Deployment

RECHECK = 3600.0  # s: delay at most until a step of the wall clock is detected
LATE = 5.0  # s after which a due event has happened
TABLES = (dict, list, set, deque)
OURS = "svc_proto."


def check_relay(relay: Relay, *, clock_was_set: bool) -> None:
    """Check that no command, medium or session is overdue, and that the tables of phones and uploads are consistent.

    Sessions are exempt after the clock was set. The terminals of a client, the gateways of a session and the stored
    bytes of a device must be within their limits.
    """
    engine = relay.engine
    due = {
        "a command": relay.bridge.next_deadline(),
        "a medium": relay.media.registry.next_expiry(),
        "a session": None if clock_was_set else relay.sessions.next_expiry(),
    }
    for what, when in due.items():
        now = engine.now.wall if what == "a session" else engine.now.mono
        if when is not None and when + LATE < now:
            _wrong(f"{what} was due {now - when:.0f} s ago")
    phones = relay.phones
    if {phones._active, phones._most_recent} - {None, *phones._phones}:
        _wrong(f"{phones._active} is the active phone, {phones._most_recent} the newest one, of {[*phones._phones]}")
    if phones._device_ids != {phone.socket: name for name, phone in phones._phones.items()}:
        _wrong(f"the phones of sockets are {phones._device_ids}, and there are {[*phones._phones]}")
    if phones._device_ids.keys() - relay.clients.keys():
        _wrong(f"the sockets of phones are {[*phones._device_ids]}, and open are {[*relay.clients]}")
    _check_limits(relay)
    media = relay.media
    if media.uploads._owned.keys() - {entry.token for entry in media.registry._entries.values()}:
        _wrong("an upload is kept whose token is over")
    kept = uploads_kept(relay)
    for owner, size in kept.items():
        if media.uploads._used.get(owner, 0) < size:
            _wrong(f"{media.uploads._used.get(owner, 0)} bytes are counted of a device, and {size} are kept")


def _check_limits(relay: Relay) -> None:
    gateways: Counter[str] = Counter()
    for client in relay.clients.values():
        if client.terminals is not None and len(client.terminals.held) > MAX_TERMINALS:
            _wrong(f"{len(client.terminals.held)} terminals are one client's, of {MAX_TERMINALS} at most")
        if client.tui is not None and client.tui.busy and client.session is not None:
            gateways[client.session.token_hash] += 1
    if max(gateways.values(), default=0) > MAX_GATEWAYS:
        _wrong(f"{max(gateways.values())} gateways are one session's, of {MAX_GATEWAYS} at most")
    most = QUOTA * relay.media.max_size
    if max(relay.media.uploads._used.values(), default=0) > most:
        _wrong(f"{max(relay.media.uploads._used.values())} bytes are one device's, of {most} at most")


def uploads_kept(relay: Relay) -> dict[str, int]:
    """Return the stored bytes of uploads, by owner."""
    kept: Counter[str] = Counter()
    for upload in relay.media.uploads._owned.values():
        kept[upload.owner] += upload.size
    return dict(kept)


def check_api(api: Api) -> None:
    """Check that the API's slots, queues and known runs agree with its live and ended runs."""
    runs = api.runs.registry
    held = [run.id for run in runs._live.values() if run.has_slot]
    if runs._slots != len(held):
        _wrong(f"{runs._slots} slots are taken, and the runs that have one are {held}")
    if runs.cap and runs._slots > runs.cap:
        _wrong(f"{runs._slots} runs are under way, of {runs.cap} at most")
    lines = [run for line in runs._queues.values() for run in line]
    if any(run.id not in runs._live for run in (*lines, *runs._waiting.values())):
        _wrong("a run that is over waits for its turn")
    if api.runs._runs.keys() ^ {*runs._live, *(run.id for run in runs._ended.values())}:
        _wrong("runs are known that are forgotten, or forgotten that are known")


def check_windows(engine: Engine) -> None:
    """Check the flow control of HTTP/2.

    The used part of a connection's window must be what its streams have still to return.
    """
    for channel in engine._channels.values():
        if isinstance(channel, Http2Channel) and not channel.conn._over:
            window = channel.conn._h2._inbound_flow_control_window_manager
            missing = window.max_window_size - window.current_window_size - window._bytes_processed
            owed = sum(stream.window_debt for stream in channel.conn._streams.values())
            if missing != owed:
                _wrong(f"{missing} bytes of a connection's window are taken, and {owed} wait on its streams")


class ResourceAccounting:
    """Accounting checks of one deployment."""

    def __init__(self) -> None:
        self._closings = {"relay": ClosingSockets(), "api": ClosingSockets()}

    def check(self, world: Deployment) -> None:
        """Check tables, HTTP/2 windows and closing WebSockets of the relay and of the API, each if it runs."""
        now = world.sim.now
        if world.relay.alive and world.relay.ready:
            relay = world.relay_service
            check_ends(relay.engine, relay)
            check_relay(relay, clock_was_set=any(when >= now - RECHECK for when, _ in world.wall.steps[1:]))
            check_windows(relay.engine)
            self._closings["relay"].check(relay.engine, now)
        if world.api.alive and world.api.ready:
            api = world.api_service
            check_api(api)
            check_windows(api.engine)
            self._closings["api"].check(api.engine, now)


class ClosingSockets:
    """Check of closing WebSockets: they end in time, and no child process runs for them."""

    def __init__(self) -> None:
        self._since: dict[WebSocketConnection, float] = {}

    def check(self, engine: Engine, now: float) -> None:
        """Check that no WebSocket has been closing for too long, or has a child process after its end."""
        since, self._since = self._since, {}
        for channel in engine._channels.values():
            stream_channels = channel.stream_channels.values() if isinstance(channel, Http2Channel) else (channel,)
            for fast_path in stream_channels:
                socket = fast_path.socket if isinstance(fast_path, HttpChannel) else None
                if socket is None or socket.state is not WebSocketConnectionState.CLOSING:
                    continue
                if has_processes_of(socket._handler):
                    violated(Invariant.AFTER_END, "a shell, or a gateway, runs for a socket that is over")
                self._since[socket] = begun = since.get(socket, now)
                if now > begun + fast_path.limits.close_timeout + LATE:
                    _wrong(f"a socket is being closed for {now - begun:.0f} s")


def has_processes_of(handler: object) -> bool:
    """Report whether a client connection that has ended still has child processes."""
    if not isinstance(handler, ClientConnection) or handler.state is not ClientState.ENDED:
        return False
    return bool(handler.terminals is not None and handler.terminals.held) or bool(handler.tui and handler.tui.busy)


def table_sizes(*roots: object) -> dict[str, int]:
    """Return the number of entries of each reachable table, and of flags that are set, by class and attribute."""
    counts: Counter[str] = Counter()
    seen: dict[int, object] = {}
    left: list[object] = [*roots]
    while left:
        thing = left.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing
        if isinstance(thing, dict):
            left += thing.keys()
            left += thing.values()
        elif isinstance(thing, list | tuple | set | frozenset | deque):
            left += thing
        elif type(thing).__module__.startswith(OURS):
            for name, value in _members(thing):
                if isinstance(value, ExpiringMap):
                    counts[f"{type(thing).__name__}.{name}"] += len(value)
                    left += value.values()
                    continue
                if isinstance(value, TABLES):
                    counts[f"{type(thing).__name__}.{name}"] += len(value)
                elif isinstance(value, bool) and value:
                    counts[f"{type(thing).__name__}.{name}"] += 1
                left.append(value)
    return dict(counts)


def _members(thing: object) -> list[tuple[str, object]]:
    names = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    return [
        *getattr(thing, "__dict__", {}).items(),
        *((name, getattr(thing, name)) for name in names if hasattr(thing, name)),
    ]


def _wrong(detail: str) -> None:
    violated(Invariant.ACCOUNTING, detail)
