"""Routes of Device Control: requests of agents, sent to a phone as commands over its WebSocket (wire bridge 2, 3)."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import inf
from typing import Protocol, cast

from attrs import frozen

from svc_proto.basics import strict_json
from svc_proto.basics.brand import HERMES, SVC
from svc_proto.basics.errors import Refused
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Deferred, Flow, wait
from svc_proto.engine.message import JSON_ALONE, Request, Response, json_response, too_large_refusal
from svc_proto.engine.router import Route
from svc_proto.machines.bridge_commands import BridgeCommands, CommandOutcome
from svc_proto.machines.paired_session import PairedSession
from svc_proto.machines.phone_registry import ASKS_ITS_USER, ConnectedPhone, split_selector
from svc_proto.relay.access import RelayAccess, require_bridge_grant
from svc_proto.relay.cluster.local_coordinator import PhoneRoute
from svc_proto.relay.ports import RelayPort
from svc_proto.schema.device_control_routes import DEVICE_CONTROL, check_arguments
from svc_proto.schema.json_object import json_object

__all__ = ["routes", "send_command"]

# Equal to the text of `write_envelope`; ids, methods and paths need no escaping.
COMMAND_TEMPLATE = (
    '{"channel":"bridge","type":"bridge.command","id":"%s","payload":'
    '{"request_id":"%s","method":"%s","path":"%s","params":%s,"body":%s}}'
)
NOTHING: Mapping[str, object] = {}
_INFO = Level.INFO  # as in `machines.paired_session`
PATH_ALIASES = {SVC.self_foreground: HERMES.self_foreground}


class CommandPort(RelayPort, Protocol):
    """Members of the relay that send commands to phones."""

    bridge: BridgeCommands
    command_ids: Iterator[str]

    def phone_for(self, selector: str | None) -> tuple[ConnectedPhone, PhoneRoute]:
        """Return the selected phone and the route to it. Raise `Refused` 404, 409 or 503."""

    def watch_commands(self) -> None:
        """Set the timer for the next deadline of a pending command, unless it is set."""


def routes(relay: CommandPort) -> list[Route]:
    """Return the routes by which agents send commands to phones."""
    control = _DeviceControlRoutes(relay)
    return [
        Route(method=method, pattern=path, access=RelayAccess.BRIDGE, handler=control.forward)
        for method, path in DEVICE_CONTROL
    ]


class _DeviceControlRoutes:
    def __init__(self, relay: CommandPort) -> None:
        self._relay = relay

    def forward(self, request: Request) -> Response | Deferred | Flow[Response]:
        session = request.principal
        assert isinstance(session, PairedSession)
        method = "GET" if request.method == "HEAD" else request.method
        arguments, body_text = _arguments(request) if method == "POST" else ({}, "")
        query = request.query if request.raw_query else NOTHING
        if self._relay.coordinator.moves:
            return self._forward_later(session, method, request.path, query, arguments)
        pending = _PendingCommandResponse()
        outcome = send_command(self._relay, session, method, request.path, query, arguments, pending.resolve, body_text)
        return pending if outcome is None else pending.to_result(outcome)

    def _forward_later(
        self,
        session: PairedSession,
        method: str,
        path: str,
        query: Mapping[str, object],
        arguments: Mapping[str, object],
    ) -> Flow[Response]:
        """Wait while the command's phone moves from a stopping node to another one, then forward the command.

        Return the response with the outcome. Raise `Refused` as `send_command` does, and 403 if the grant has ended.
        """
        relay, engine = self._relay, self._relay.engine
        yield from relay.coordinator.wait_for_phone(split_selector(query, arguments)[0])
        require_bridge_grant(session, engine.now)
        ticket = engine.new_op()
        outcome = send_command(relay, session, method, path, query, arguments, partial(engine.resume, ticket))
        if outcome is None:
            outcome = cast("CommandOutcome", (yield from wait(ticket, inf)))
        return _PendingCommandResponse().to_result(outcome)


class _PendingCommandResponse(Deferred):
    """Deferred response to a Device Control request: the outcome of its bridge command."""

    __slots__ = ()

    def to_result(self, outcome: CommandOutcome) -> Response:
        """Return the response with the phone's answer, or with the relay's own."""
        if outcome.text:
            return Response(outcome.status, JSON_ALONE, outcome.text.encode("utf-8"))
        return json_response(outcome.status, outcome.body, outcome.headers)


def send_command(
    relay: CommandPort,
    session: PairedSession,
    method: str,
    path: str,
    query: Mapping[str, object],
    arguments: Mapping[str, object],
    on_outcome: Callable[[CommandOutcome], bool],
    body_text: str = "",
) -> CommandOutcome | None:
    """Send a Device Control command to a phone; return its outcome if it could not be sent, else None.

    Raise `Refused` before anything is sent. `body_text` is the JSON text of `arguments`, if there is one: unless the
    method is GET or a member is removed, it is sent unchanged. `on_outcome` is called once, within 30 s, with the
    outcome, and returns whether the request is still open. A returned outcome is not passed to it.
    """
    engine = relay.engine
    selector, params, body = split_selector(query, arguments)
    phone_asks = body.pop(ASKS_ITS_USER, False) is not False  # the phone is to ask the user
    check_arguments(method, path, params if method == "GET" else body)
    phone, route = relay.phone_for(selector)
    if phone_asks and not phone.asks_its_user:
        raise Refused(409, "phone_asks_nobody", "the phone that would get this does not ask its user by itself")
    phone_path = PATH_ALIASES.get(path, path)
    request_id = next(relay.command_ids)

    observer: Callable[[CommandOutcome], object] = on_outcome
    if engine.log_level <= _INFO:
        observer = _OutcomeLogger(engine, session, phone, f"{method} {phone_path}", on_outcome)
    params_text = strict_json.dumps(params) if params else "{}"
    if method == "GET":
        body_text = params_text
    elif not body_text or len(body) != len(arguments):
        body_text = strict_json.dumps(body)
    # Positional, as in `engine.server_channel`.
    relay.bridge.begin(
        request_id,
        phone.socket,
        method,
        path,
        params,
        body,
        engine.now,
        phone.device_id,
        phone.name,
        selector,
        session.device_name,
        session.token_prefix,
        observer,
        params_text + body_text,
    )
    relay.watch_commands()
    if route.send_text(COMMAND_TEMPLATE % (request_id, request_id, method, phone_path, params_text, body_text)):
        return None
    outcome = relay.bridge.send_failed(request_id)
    _OutcomeLogger(engine, session, phone, f"{method} {phone_path}", on_outcome).note(outcome)
    return outcome


@frozen
class _OutcomeLogger:
    """Callback for the outcome of a command: passes it to `on_outcome`, and logs it if the request is still open."""

    engine: Engine
    session: PairedSession
    phone: ConnectedPhone
    command: str
    on_outcome: Callable[[CommandOutcome], bool]

    def __call__(self, outcome: CommandOutcome) -> None:
        if self.on_outcome(outcome):
            self.note(outcome)

    def note(self, outcome: CommandOutcome) -> None:
        # The command's arguments and the text of its answer are private.
        fields = {"phone": self.phone.name, "command": self.command, "status": outcome.status}
        self.engine.log(_INFO, "phone driven", by=self.session.device_name, session=self.session.token_prefix, **fields)


def _arguments(request: Request) -> tuple[dict[str, object], str]:
    """Return the JSON object of a POST body without its null members, and its text if that can be sent unchanged.

    Otherwise the text is empty. A body that is no JSON object counts as empty (wire bridge 2.1). The text can be sent
    if it is short, no member was null, and it has no escapes, so that member names are literal (decision 189). Raise
    `Refused` 413 if parsing would take too long.
    """
    body = request.body
    members = json_object(body, too_large_refusal) if body else None
    if not members:
        return {}, ""
    if None in members.values():
        return {key: member for key, member in members.items() if member is not None}, ""
    plain = len(body) < strict_json.MIN_CHECKED_LENGTH and b"\\" not in body
    return members, body.decode("utf-8") if plain else ""
