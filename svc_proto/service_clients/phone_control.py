"""Client of the relay's Device Control routes, with a session token: configured, stored, or from a local pairing.

In a local pairing the agent pairs itself with a relay on its own host.
"""

import re
from collections.abc import Mapping
from typing import Protocol, cast
from urllib.parse import urlencode

from attrs import field

from svc_proto.basics import strict_json
from svc_proto.basics.errors import ToolError
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.sanitize import is_printable_ascii
from svc_proto.commands import Level, ReadConfig, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.http_client import HttpResult
from svc_proto.engine.request_origin import is_loopback_name
from svc_proto.engine.sync import Lock
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.phone_registry import ASKS_ITS_USER
from svc_proto.schema import coercion
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.local_pairing import DEVICE_NAME, pair_locally, refusal_of
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.service_client import ServiceCallError

__all__ = ["FILE", "PhoneResponse", "PhoneControl", "RelayPhoneControl", "query_text"]

FILE = "agent-relay.json"  # `{"url": ..., "token": ...}` in the state folder, mode 0600
CALL_TIMEOUT = 35.0  # s for one call, above the relay's 30, so that its 504 arrives (wire bridge 6)
QUICK = 2.0  # s to check for a phone, or for the validity of a token
SELECTOR = ("device",)
_MEDIA_TOKEN = re.compile("[A-Za-z0-9_-]{1,200}")
NO_RELAY = "the relay cannot be reached (SVC_RELAY_URL)"
NO_TOKEN = (
    "the phone cannot be used: there is no session token for the relay. Ask the operator to pair one that holds a "
    "bridge grant and to set it as SVC_RELAY_TOKEN"
)


@fast_frozen
class PhoneResponse:
    """Response of a route: the HTTP status, and the body as an object.

    A body that is no JSON object is its `value`, or the `error` of a failed HTTP request. `text` is the body as compact
    JSON, if available.
    """

    status: int
    body: Mapping[str, object]
    text: str = field(default="", eq=False)


class PhoneControl(Protocol):
    """Interface by which tools send commands to phones."""

    @property
    def engine(self) -> Engine:
        """Return the engine whose clock and operations the tools use."""
        ...

    def call(self, method: str, path: str, arguments: Mapping[str, object]) -> Flow[PhoneResponse]:
        """Call a route of the relay; return its response, whatever the status.

        Raises `ToolError` if the relay is unreachable, or if there is no token that it accepts.
        """
        ...

    def media(self, token: str) -> Flow[bytes]:
        """Return a file that a phone has uploaded, by the token of its answer. Raises `ToolError`."""
        ...

    def gate_bound_arguments(self, arguments: Mapping[str, object]) -> Flow[Mapping[str, object] | None]:
        """Return the arguments, marked as for a phone that asks its user by itself (wire bridge 1.3, 5.5).

        Return None if the phone that the call goes to does not, or is not known to.
        """
        ...

    def activity(self) -> Flow[list[JsonObject]]:
        """Return the latest commands of this client, newest first (wire bridge 4.2). Raises `ToolError`."""
        ...


class RelayPhoneControl:
    """Phone control over the relay at one URL. Concurrent callers share one pairing."""

    def __init__(
        self, engine: Engine, url: str, token: str, *, who: str = DEVICE_NAME, file: str = FILE, local: bool = True
    ) -> None:
        self.engine = engine
        self._url = url.rstrip("/")
        self._is_here = is_loopback_name(url.encode())
        self._local_client = RelayClient("the relay", self._url, local=local)  # sends the secret of this host
        self._set = token
        self._session_name = who  # name of sessions that were created here, for the operator
        self._file = file  # file of the token
        self._token = ""  # empty: not loaded yet
        self._pairing = Lock(engine)

    @property
    def configured(self) -> bool:
        """Report whether a token was configured, or the relay is on this host, where the agent can pair."""
        return bool(self._set) or self._is_here

    def is_phone_connected(self) -> Flow[bool]:
        """Report whether a controllable phone is, or for a remote relay may be, connected (wire bridge 4.1, 6)."""
        if not self._is_here:
            return self.configured
        status = yield from self._status()
        able = status.get_object("bridge").get("device_control_supported") is not False
        return status.get("phone_connected") is True and able

    def unneeded_arguments(self) -> Flow[tuple[str, ...]]:
        """Return the arguments that no call needs: the selector of a phone, unless several are known to be connected.

        The relay's operator view counts them, so for a remote relay the number is unknown.
        """
        if not self._is_here:
            return SELECTOR
        try:
            asked = self._local_client.request(self.engine, "GET", "/bridge/devices", fields=(), within=QUICK)
            found = _members((yield from asked)).integer("count")
        except ServiceCallError:
            return SELECTOR
        return () if found is not None and found > 1 else SELECTOR

    def gate_bound_arguments(self, arguments: Mapping[str, object]) -> Flow[Mapping[str, object] | None]:
        """Return the arguments, marked as for a phone that asks its user itself, if its status has `safety`; else None.

        A phone that reported none may have no gates. None also for a relay on another host, and without a connection.
        """
        if not self._is_here:
            return None
        status = yield from self.phone_status(arguments)
        asks = status.get("phone_connected") is True and bool(status.get("safety"))
        return {**arguments, ASKS_ITS_USER: True} if asks else None

    def phone_status(self, arguments: Mapping[str, object]) -> Flow[JsonObject]:
        """Return the status of the phone that a call goes to; empty without a response or for a remote relay."""
        if not self._is_here:
            return JsonObject()
        device = arguments.get("device")
        return (yield from self._status("" if device is None else f"?{urlencode({'device': device})}"))

    def _status(self, query: str = "") -> Flow[JsonObject]:
        try:
            asked = self._local_client.request(self.engine, "GET", f"/bridge/status{query}", fields=(), within=QUICK)
            return _members((yield from asked))
        except ServiceCallError:
            return JsonObject()

    def media(self, token: str) -> Flow[bytes]:
        """Return a file that the phone has uploaded, by the token of its answer. Raises `ToolError`."""
        if not _MEDIA_TOKEN.fullmatch(token):
            raise ToolError("the phone gave no picture")
        relay = self._as(self._set or (yield from self._get_token("")))
        found = yield from _reached(relay.request(self.engine, "GET", f"/media/{token}", fields=()))
        if found.status != 200:
            raise ToolError(f"the relay does not hand out the phone's picture ({found.status})")
        return found.body

    def activity(self) -> Flow[list[JsonObject]]:
        """Return this client's commands from the operator view of a local relay. Raises `ToolError`."""
        if not self._is_here:
            raise ToolError("a relay on another host does not tell what was done")
        found = yield from _reached(self._local_client.request(self.engine, "GET", "/bridge/activity", fields=()))
        if found.status != 200:
            raise ToolError(f"the relay does not tell what was done ({found.status})")
        rows = _members(found).objects("activity")
        return [row for row in rows if row.get("asked_by") == self._session_name]

    def call(self, method: str, path: str, arguments: Mapping[str, object]) -> Flow[PhoneResponse]:
        """Call a route of the relay. If a token that was not configured has ended, call once more with another one.

        A phone may answer 401, too. So after a 401 the relay is queried whether the token has ended. Raises `ToolError`
        if the relay is unreachable, or without a token that it accepts.
        """
        token = self._set or (yield from self._get_token(""))
        if not is_printable_ascii(token):
            raise ToolError("SVC_RELAY_TOKEN has characters that no token has")
        again = not self._set
        while True:
            answer = yield from self._send_request(method, path, arguments, token)
            if answer.status != 401 or not (yield from self._is_over(token)):
                return answer
            if not again:
                raise ToolError("the relay does not accept the session token of the agent (SVC_RELAY_TOKEN)")
            again = False
            token = yield from self._get_token(token)  # the first one was revoked, or has expired

    def _is_over(self, token: str) -> Flow[bool]:
        try:
            asked = yield from self._as(token).request(self.engine, "GET", "/sessions", within=QUICK)
        except ServiceCallError:
            return False
        return asked.status == 401

    def _send_request(self, method: str, path: str, arguments: Mapping[str, object], token: str) -> Flow[PhoneResponse]:
        body = b""
        if method == "POST":
            body = strict_json.dumps_bytes(arguments)
        elif arguments:
            path = f"{path}?{urlencode({name: query_text(value) for name, value in arguments.items()})}"
        answer = yield from _reached(self._as(token).request(self.engine, method, path, body))
        return PhoneResponse(answer.status, _members(answer))

    def _as(self, token: str) -> RelayClient:
        return RelayClient("the relay", self._url, token, CALL_TIMEOUT)

    def _get_token(self, bad: str) -> Flow[str]:
        """Return a token other than `bad`. Raises `ToolError` if there is none."""
        yield from self._pairing.acquire()
        try:
            if not self._token:
                self._token = yield from self._stored()
            if self._token in ("", bad):
                self._token = ""
                self._token = yield from self._fresh()
            return self._token
        finally:
            self._pairing.release()

    def _fresh(self) -> Flow[str]:
        if not self._is_here:
            raise ToolError(NO_TOKEN)
        engine = self.engine
        try:
            token = yield from pair_locally(engine, self._local_client, self._session_name)
        except ServiceCallError as error:
            engine.log(Level.WARNING, "agent not paired", problem=error.fault.value)
            if error.failure is not None and error.failure.kind is FailureKind.UNREACHABLE:
                raise _no_relay(error) from None
            raise ToolError(f"the relay did not let the agent in ({refusal_of(error)}). {NO_TOKEN}") from None
        engine.log(Level.INFO, "agent paired with the relay")
        text = strict_json.dumps({"url": self._url, "token": token}) + "\n"
        stored = yield from run_operation(engine, WriteConfig(engine.new_op(), self._file, text))
        if isinstance(stored, Failure):
            engine.log(Level.WARNING, "relay token not stored", problem=stored.kind.value)
        return token

    def _stored(self) -> Flow[str]:
        """Return the stored token of this relay, or an empty one: a token is never sent to another relay."""
        engine = self.engine
        text = yield from run_operation(engine, ReadConfig(engine.new_op(), self._file))
        if isinstance(text, Failure):
            return ""
        members = JsonObject.parse_or_empty(text)
        token = members.text("token")
        return token if members.get("url") == self._url and is_printable_ascii(token) else ""


def _reached(request: Flow[HttpResult]) -> Flow[HttpResult]:
    try:
        return (yield from request)
    except ServiceCallError as error:
        raise _no_relay(error) from None


def _no_relay(error: ServiceCallError) -> ToolError:
    return ToolError(f"{NO_RELAY}: {cast('Failure', error.failure).kind.value}")


def _members(answer: HttpResult) -> JsonObject:
    text = answer.body.decode("utf-8", "replace")
    members = JsonObject.parse_or_empty(text)
    if not members and text.strip() not in ("", "{}"):
        return JsonObject({"error" if answer.status >= 400 else "value": text.strip()})
    return members


def query_text(value: object) -> str:
    """Return an argument as text for a query."""
    return coercion.coerce_text(value, flags=True) or str(value)
