"""Client of this system's API server for chats (wire api 3, 4, 6)."""

from collections.abc import Callable, Mapping

from attrs import define

from svc_proto.basics import strict_json
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult
from svc_proto.engine.response_readers import SILENCE_TIMEOUT, EventReader, event_stream
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject, as_object
from svc_proto.service_clients.service_client import JSON, Fields, ServiceCallError, ServiceClient, ServiceFault
from svc_proto.wire.sse import ServerSentEvent
from svc_proto.wire.urls import encode_segment

__all__ = ["ApiClient"]


NOTHING: Mapping[str, object] = {}


@define(eq=False)
class ApiClient(ServiceClient):
    """Client of the API server's routes for chats and runs.

    `ServiceCallError` is raised without a response, and by all methods but `post_run` for a refusal.
    """

    def create_session(self, engine: Engine, wish: Mapping[str, object]) -> Flow[str]:
        """Create a session with the members `wish`, such as `title`; return its id."""
        answer = self.check((yield from self.request(engine, "POST", "/api/sessions", wish)))
        found = JsonObject.of(self.json_value(answer))
        names = ("id", "session_id")
        identity = found.identifier(*names) or found.get_object("session").identifier(*names)
        if not identity:
            raise ServiceCallError(self, ServiceFault.UNAVAILABLE, answer, lacks="session id")
        return identity

    def list_objects(
        self, engine: Engine, path: str, *names: str, within: float | None = None
    ) -> Flow[list[JsonObject]]:
        """Get a list and return its objects: a bare array, or the first array in one of `names`, `items` or `data`."""
        value = self.json_value(self.check((yield from self.request(engine, "GET", path, within=within))))
        found = as_object(value)
        return JsonObject.of({"data": value} if found is None else found).objects(*names, "items", "data")

    def messages(self, engine: Engine, session: str, *, within: float | None = None) -> Flow[list[JsonObject]]:
        """Return the messages of a session in the server's order."""
        path = f"/api/sessions/{encode_segment(session)}/messages"
        return (yield from self.list_objects(engine, path, "messages", within=within))

    def stream_turn(
        self,
        engine: Engine,
        session: str,
        message: Mapping[str, object],
        on_event: Callable[[ServerSentEvent], bool | None],
        on_open: Callable[[EventReader], object] | None = None,
        *,
        fields: Fields = (),
        within: float = 30.0,
        connect_within: float | None = None,
    ) -> Flow[None]:
        """Stream one turn: call `on_event` for its events, until it returns True, or to the end.

        After True, the events that arrived together with that one are still passed on. `on_open` gets the reader, whose
        reading can be paused for backpressure. `within` is for the start of the response. Raises `ServiceCallError`
        without a response, for a refusal, and for a stream that breaks off or stalls.
        """
        reader = yield from self.request(
            engine,
            "POST",
            f"/api/sessions/{encode_segment(session)}/chat/stream",
            strict_json.dumps_bytes(message),
            into=event_stream(),
            fields=(JSON, *fields),
            within=within,
            connect_within=connect_within,
        )
        if isinstance(reader, HttpResult):
            raise ServiceCallError.by_status(self, reader)
        try:
            if on_open is not None:
                on_open(reader)
            over = False
            while not over and (batch := (yield from reader.read(within=SILENCE_TIMEOUT))) is not None:
                if isinstance(batch, Failure):
                    raise ServiceCallError(self, ServiceFault.CONNECTION_LOST, batch)
                for event in batch:
                    over = on_event(event) is True or over
        finally:
            reader.abandon()

    def post_run(
        self,
        engine: Engine,
        run: str,
        verb: str = "",
        order: Mapping[str, object] = NOTHING,
        *,
        within: float | None = None,
    ) -> Flow[HttpResult]:
        """Get a run, or post `order` to its `verb` (`stop`, `approval`); return the response, whatever its status."""
        path = f"/v1/runs/{encode_segment(run)}" + (f"/{verb}" if verb else "")
        method, body = ("POST", order) if verb else ("GET", b"")
        return (yield from self.request(engine, method, path, body, within=within))
