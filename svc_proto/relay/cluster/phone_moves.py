"""Move of phones from a stopping node to the other nodes.

A stopping node announces its phones (`leaving`) and closes the sockets of all its clients a few at a time. Every node
delays commands for an announced phone until it is connected again or `MOVE_TIMEOUT` has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.sync import Condition
from svc_proto.machines.bridge_commands import BridgeCommands
from svc_proto.machines.inbox import NotificationBuffer
from svc_proto.machines.phone_registry import ConnectedPhone, PhoneRegistry
from svc_proto.relay.change_notifier import ChangeNotifier
from svc_proto.schema.json_object import JsonObject

if TYPE_CHECKING:
    from svc_proto.relay.websocket.client_connection import ClientConnection

__all__ = ["MOVE_TIMEOUT", "PhoneMoves"]

SPREAD = 0.5  # s over which a stopping node closes the sockets of its clients
TICK = 0.02  # s between two looks at the pending commands
MOVE_TIMEOUT = 5.0  # s for which a command waits for a phone that changes its node
CLOSE_MARGIN = 0.5  # s before the end of the grace, when the last sockets are closed


class PhoneMovesPort(Protocol):
    """Members of the relay that `PhoneMoves` uses."""

    engine: Engine
    phones: PhoneRegistry
    bridge: BridgeCommands
    clients: dict[int, ClientConnection]


class RemotePhonesPort(PhoneMovesPort, Protocol):
    """Members of the relay that the coordinator of a cluster uses for the phones of other nodes."""

    changes: ChangeNotifier
    notifications: NotificationBuffer

    def register_phone(
        self, socket: int, *, device_id: str, name: str, surface: str, form_factor: str, session_prefix: str | None
    ) -> int | None:
        """Register a phone; return the number of the phone that it replaces, if any."""

    def remove_phone(self, socket: int) -> None:
        """Unregister a phone; pending commands to it fail at once."""


class PhoneMoves:
    """Phones that move from a stopping node to another one, for which commands are held back."""

    def __init__(self, relay: PhoneMovesPort) -> None:
        self._relay = relay
        self._phones: dict[str, tuple[ConnectedPhone, float]] = {}  # and the end of the wait, by device id
        self._arrived = Condition(relay.engine)

    def __len__(self) -> int:
        return len(self._phones)

    def begin(self, phone: ConnectedPhone) -> None:
        """Hold back commands for a phone from now on, for at most `MOVE_TIMEOUT`."""
        self._phones[phone.device_id] = phone, self._relay.engine.now.mono + MOVE_TIMEOUT

    def end(self, device_id: str) -> None:
        """Stop holding back commands for a phone, which is connected again."""
        if self._phones.pop(device_id, None) is not None:
            self._arrived.notify_all()

    def state(self) -> dict[str, object]:
        """Return the phones recorded as moving as `{"leaving": [...]}`, for another node; empty without any."""
        rows = [{"device_id": name, "aliases": phone.aliases} for name, (phone, _) in self._phones.items()]
        return {"leaving": rows} if rows else {}

    def apply_state(self, rows: list[JsonObject], is_at_sender: Callable[[int], bool]) -> None:
        """Add the moving phones that another node reports, except those that are connected at any node but that one."""
        for row in rows:
            name = row.text("device_id")
            phone = self._relay.phones.find_by_device_id(name)
            if phone is None:
                phone = ConnectedPhone(
                    socket=0,
                    device_id=name,
                    name=name,
                    surface="",
                    form_factor="",
                    session_prefix=None,
                    aliases=tuple(row.texts("aliases")),
                )
            elif not is_at_sender(phone.socket):
                continue
            self.begin(phone)

    def wait(self, selector: str | None, active: str) -> Flow[None]:
        """Wait while a command with this selector would go to a moving phone.

        `active` is the device id of the selected phone. With the selector None, also wait while no phone is connected
        and any phone moves.
        """
        while self._is_for_moving_phone(selector, active):
            yield from self._arrived.wait(min(until for _, until in self._phones.values()))

    def _is_for_moving_phone(self, selector: str | None, active: str) -> bool:
        now, phones = self._relay.engine.now.mono, self._relay.phones
        self._phones = {name: entry for name, entry in self._phones.items() if entry[1] > now}
        if selector is None:
            used = active or phones.active or phones.most_recent
            return bool(self._phones) and (used in self._phones or not len(phones))
        return any(phone.matches_selector(selector) for phone, _ in self._phones.values())

    def move_all(
        self, announce: Callable[[list[int]], Flow[object]], remote_commands: Callable[[], Iterable[int]]
    ) -> Flow[None]:
        """Close the sockets of all clients with code 1001, so that they connect to other nodes.

        Each is closed when its announcement has ended and no command to it is pending, or `CLOSE_MARGIN` before the
        process must stop. `announce` requests the other nodes to hold back commands for the phones of these sockets.
        `remote_commands` returns the sockets that have not answered all commands of other nodes.
        """
        relay, engine = self._relay, self._relay.engine
        waiting = list(relay.clients.values())
        announced: list[list[ClientConnection]] = []  # not confirmed by all nodes
        ready: dict[ClientConnection, None] = {}  # clients that get no more commands of other nodes
        share = -(-len(waiting) // round(SPREAD / TICK))
        while (waiting or announced or ready) and engine.now.mono < engine.stops_by - CLOSE_MARGIN:
            if waiting:
                batch, waiting = waiting[:share], waiting[share:]
                announced.append(batch)
                engine.spawn(self._announce(batch, announce), on_done=partial(_move_batch, batch, announced, ready))
            pending = {*relay.bridge.pending_sockets(), *remote_commands()}
            for client in [client for client in ready if client.number not in pending]:
                del ready[client]
                _close(client)
            yield from sleep(engine, TICK)
        for client in (*waiting, *chain.from_iterable(announced), *ready):
            _close(client)

    def _announce(self, clients: list[ClientConnection], announce: Callable[[list[int]], Flow[object]]) -> Flow[None]:
        phones = [phone for c in clients if (phone := self._relay.phones.find_by_socket(c.number)) is not None]
        for phone in phones:
            self.begin(phone)
        if phones:
            yield from announce([phone.socket for phone in phones])


def _move_batch(
    batch: list[ClientConnection],
    announced: list[list[ClientConnection]],
    ready: dict[ClientConnection, None],
    _: object,
) -> None:
    announced.remove(batch)
    ready.update(dict.fromkeys(batch))


def _close(client: ClientConnection) -> None:
    client.stop_children()
    client.relay.bridge.socket_lost(client.number)
    client.socket.close(1001, "the server is shutting down")
