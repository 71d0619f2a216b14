"""Phone control for MCP clients of the relay itself: the Device Control routes without HTTP.

As on the routes, a call needs a grant (`bridge`, or the read grant if the call only reads), arguments are checked, and
commands are recorded with the session that requested them.
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Protocol, cast

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused, ToolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.machines.bridge_commands import CommandOutcome
from svc_proto.machines.inbox import NotificationBuffer
from svc_proto.machines.paired_session import PairedSession
from svc_proto.machines.phone_registry import ASKS_ITS_USER, split_selector
from svc_proto.mcp.phone_features import READ_ROUTES, phone_features
from svc_proto.mcp.server_features import ServerFeatures
from svc_proto.mcp.streamable_http import McpHttpServer
from svc_proto.relay.access import may_read_phone, require_bridge_grant
from svc_proto.relay.change_notifier import DEVICES, NOTIFICATIONS
from svc_proto.relay.media.media_service import MediaService
from svc_proto.relay.ports import PhonesPort
from svc_proto.relay.routes.device_control import CommandPort, send_command
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.phone_control import PhoneResponse, query_text

__all__ = ["LocalPhoneControl", "mcp_server"]

NOTHING: Mapping[str, object] = {}
MAX_PICTURE = 16 * 1024 * 1024  # bytes; a picture is sent as base64 in one message

PICTURE_PROBLEMS = {413: "is too large", 503: "cannot be read"}


class McpPhonePort(PhonesPort, CommandPort, Protocol):
    """Members of the relay that phone control by MCP clients uses."""

    media: MediaService


def mcp_server(relay: McpPhonePort) -> McpHttpServer:
    """Create the MCP server of the relay; each client acts with the rights of its paired session."""

    def offer(session: object) -> ServerFeatures:
        phones = LocalPhoneControl(relay, cast("PairedSession", session))
        version = relay.config.version
        return phone_features(phones, phones.watch, phones.may_act, phones.begin, phones.prepare, version=version)

    return McpHttpServer(relay.engine, offer)


class LocalPhoneControl:
    """`PhoneControl` that acts with the rights of one session, inside the relay."""

    def __init__(self, relay: McpPhonePort, session: PairedSession) -> None:
        self._relay = relay
        self._session = session

    @property
    def engine(self) -> Engine:
        """Engine of the relay."""
        return self._relay.engine

    def call(self, method: str, path: str, arguments: Mapping[str, object]) -> Flow[PhoneResponse]:
        """Return the response of a Device Control route: the phone's answer, the relay's own, or a refusal."""
        engine = self._relay.engine
        preparation = self.prepare(path, arguments)
        if preparation is not None:
            yield from preparation
        ticket = engine.new_op()
        response = self.begin(method, path, arguments, partial(engine.resume, ticket))
        return cast("PhoneResponse", (yield from wait(ticket, inf))) if response is None else response

    def prepare(self, path: str, arguments: Mapping[str, object]) -> Flow[None] | None:
        """Return a flow that waits while the command's phone moves from a stopping node to another one.

        Return None if no phone moves, and for the routes of devices and notifications. Raise `Refused` 400 for a
        selector that is not text.
        """
        coordinator = self._relay.coordinator
        if not coordinator.moves or path in (DEVICES, NOTIFICATIONS):
            return None
        return coordinator.wait_for_phone(split_selector(arguments, {})[0])

    def begin(
        self, method: str, path: str, arguments: Mapping[str, object], on_response: Callable[[PhoneResponse], bool]
    ) -> PhoneResponse | None:
        """Start a command as `call` does; return an immediate response, or None and pass a later one to `on_response`.

        `on_response` returns whether the request is still open.
        """
        relay, query, body = self._relay, NOTHING, arguments
        if method == "GET" and arguments:
            query, body = {name: query_text(value) for name, value in arguments.items()}, NOTHING
        try:
            require_bridge_grant(self._session, relay.engine.now, looks=(method, path) in READ_ROUTES)
            if path == DEVICES:
                relay.drop_lapsed_phones()
                return PhoneResponse(200, relay.phones.devices_report(relay.engine.now))
            if path == NOTIFICATIONS:
                notifications = relay.notifications.recent(NotificationBuffer.parse_limit(None))
                return PhoneResponse(200, {"ok": True, "notifications": notifications, "count": len(notifications)})
            outcome = send_command(
                relay, self._session, method, path, query, body, lambda outcome: on_response(_response(outcome))
            )
        except Refused as refused:
            return PhoneResponse(refused.status, {"code": refused.code, "error": refused.message})
        return None if outcome is None else _response(outcome)

    def activity(self) -> Flow[list[JsonObject]]:
        """Return the records of this session's own commands; raise `ToolError` without a grant to read the phone."""
        yield from ()
        try:
            require_bridge_grant(self._session, self._relay.engine.now, looks=True)
        except Refused as refused:
            raise ToolError(f"{refused.status} {refused.code}: {refused.message}") from None
        return [JsonObject(row) for row in self._relay.bridge.records(session_prefix=self._session.token_prefix)]

    def may_act(self) -> bool:
        """Report whether the session holds the `bridge` grant, which permits more than reading."""
        return self._session.holds("bridge", self._relay.engine.now.wall)

    def watch(self, path: str, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call `on_change` at each change of the resource at `path`, while the session may read the phone.

        Return the function that ends this.
        """

        def changed() -> None:
            if may_read_phone(self._session, self._relay.engine.now):
                on_change()

        return self._relay.changes.subscribe(path, changed)

    def media(self, token: str) -> Flow[bytes]:
        """Return the content of a registered file of at most `MAX_PICTURE` bytes; raise `ToolError` otherwise."""
        try:
            return (yield from self._relay.media.read(token, MAX_PICTURE))
        except Refused as refused:
            if refused.status in PICTURE_PROBLEMS:
                raise ToolError(f"the phone's picture {PICTURE_PROBLEMS[refused.status]}") from None
            raise ToolError(f"the relay does not hand out the phone's picture ({refused.status})") from None

    def gate_bound_arguments(self, arguments: Mapping[str, object]) -> Flow[Mapping[str, object] | None]:
        """Return the arguments with the confirmation flag added, if the phone that they select asks its user.

        Return None for any other phone, and if there is no such phone.
        """
        yield from ()
        try:
            selector, _, _ = split_selector(arguments, {})
            phone, _ = self._relay.phone_for(selector)
        except Refused:
            return None
        return {**arguments, ASKS_ITS_USER: True} if phone.asks_its_user else None


def _response(outcome: CommandOutcome) -> PhoneResponse:
    body = outcome.body
    if isinstance(body, dict):
        return PhoneResponse(outcome.status, body, outcome.text)
    return PhoneResponse(outcome.status, {"value": strict_json.dumps(body)})
