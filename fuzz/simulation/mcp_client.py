"""Simulated MCP client over Streamable HTTP, which checks the messages of the server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import define, field, frozen

from fuzz.simulation.deployment import Deployment
from fuzz.simulation.invariants import Invariant, violated
from runtimes.sim.host import SimHost
from runtimes.sim.process import SimProcess
from svc_proto.wire.sse import EventStreamDecoder, ServerSentEvent
from tests.support.sim_http import RequestClient, ServerAddress

VERSION = "2025-11-25"
COMES_BACK = 1.0  # s after which a disconnected client reconnects
CUTS = 3  # disconnections for one request at most
Message: TypeAlias = Mapping[str, Any]
Done: TypeAlias = Callable[[RequestClient], None]


@frozen
class McpEndpoint:
    """MCP address, the client's host, and the credential for each request."""

    host: SimHost
    target: ServerAddress
    bearer: Callable[[], str]


@define(eq=False)
class PendingMcpRequest:
    """MCP request, its present reader, and how far its events and its response have been received."""

    number: int
    method: str
    sent: float
    on_answer: Callable[[Message], None]
    caller: RequestClient | None = None  # the current reader
    answered: float | None = None
    stream: str = ""  # the number of its stream
    place: int = 0  # number of the last event received
    progress: float = -1.0
    cuts: int = 0
    decoder: EventStreamDecoder = field(factory=EventStreamDecoder)


class McpClientSession:
    """MCP session of a simulated client, which sends requests and checks their events, progress and responses."""

    def __init__(self, client: SimMcpClient, identity: str, server: SimProcess) -> None:
        self.client = client
        self.identity = identity
        self.server = server
        self.asked: dict[int, PendingMcpRequest] = {}
        self.listener: RequestClient | None = None
        self.ended: float | None = None  # when the end was acknowledged
        self.ending = False
        self.used = client.world.sim.now

    def request(self, method: str, params: Message, on_answer: Callable[[Message], None]) -> PendingMcpRequest:
        """Send a request in this session, and return its record; `on_answer` gets the response."""
        number = len(self.asked) + 1
        asked = self.asked[number] = PendingMcpRequest(number, method, self._now, on_answer)
        told = {**params, "_meta": {"progressToken": number}}
        self._read(asked, "POST", {"jsonrpc": "2.0", "id": number, "method": method, "params": told})
        return asked

    def send(self, message: Message, done: Done = lambda caller: None) -> None:
        """Send a notification or a response; `done` gets the HTTP response."""
        self.used = self._now
        self.client.send(self, "POST", {"jsonrpc": "2.0", **message}, done)

    def disconnect_request(self, asked: PendingMcpRequest, pause: float) -> None:
        """Disconnect the present reader of a request; resume its stream after `pause` seconds, if possible."""
        if asked.caller is not None and not asked.caller.is_closed:
            asked.caller.disconnect(reset=True)
        self.client.world.sim.after(pause, lambda: self._resume(asked))

    def listen(self, done: Done = lambda caller: None) -> RequestClient:
        """Open the stream of notifications, and check that none arrives."""
        self.used = self._now
        decoder = EventStreamDecoder()

        def piece(data: bytes) -> None:
            is_read = self.listener is caller and is_stream(caller)
            if is_read and any(event.data for event in decoder.receive_data(data)):
                violated(Invariant.OWN_BYTES, f"a client of MCP without a subscription receives {data!r:.100}")

        caller = self.client.send(self, "GET", None, done, piece)
        self.listener = caller
        return caller

    def end(self) -> None:
        """End the session; after status 204, the server must not answer a request in it with 200."""
        self.ending = True

        def done(caller: RequestClient) -> None:
            if caller.status == 204:
                self.ended = self._now
                self.client.send(self, "POST", {"jsonrpc": "2.0", "id": "x", "method": "ping"}, again)

        def again(caller: RequestClient) -> None:
            if caller.status == 200:
                violated(Invariant.AFTER_END, "a session of MCP that was ended answers")

        self.client.send(self, "DELETE", None, done)

    # --- messages about a request ---

    def _resume(self, asked: PendingMcpRequest) -> None:
        gone = asked.answered is not None or self.ending
        if gone or not asked.stream or (asked.caller is not None and not asked.caller.is_closed):
            return
        asked.cuts += 1
        self.client.world.count("calls by MCP that were read on")
        self._read(asked, "GET", None, **{"last-event-id": f"{asked.stream}-{asked.place}"})

    def _read(self, asked: PendingMcpRequest, method: str, message: Message | None, **more: str) -> None:
        self.used = self._now
        asked.decoder = decoder = EventStreamDecoder()

        def piece(data: bytes) -> None:
            if asked.decoder is decoder and is_stream(caller):
                events = decoder.receive_data(data)
                for event in events:
                    self._event(asked, event)
                if not events and decoder.last_event_id:
                    self._on_initialized(asked, decoder.last_event_id)

        def done(caller: RequestClient) -> None:
            if asked.decoder is not decoder:
                return
            if caller.status == 200 and not is_stream(caller):
                self._on_message(asked, caller.answer.json)
            elif caller.status == 0 and asked.cuts < CUTS and not self.client.world.left:
                self.client.world.sim.after(COMES_BACK, lambda: self._resume(asked))

        caller = asked.caller = self.client.send(self, method, message, done, piece, **more)

    def _on_initialized(self, asked: PendingMcpRequest, last: str) -> None:
        stream, _, place = last.partition("-")
        if not asked.stream:
            asked.stream = stream
        if stream != asked.stream or int(place) != asked.place:
            violated(Invariant.STREAM, f"a stream of MCP begins at {last}, and {asked.stream}-{asked.place} was told")

    def _event(self, asked: PendingMcpRequest, event: ServerSentEvent) -> None:
        stream, _, number = event.id.partition("-")
        asked.stream = asked.stream or stream
        if event.data:
            if stream != asked.stream or int(number) != asked.place + 1:
                violated(Invariant.STREAM, f"event {event.id} of MCP comes after {asked.stream}-{asked.place}")
            asked.place += 1
            self._on_message(asked, json.loads(event.data))

    def _on_message(self, asked: PendingMcpRequest, message: Message) -> None:
        params = message.get("params", {})
        if message.get("method") == "notifications/progress":
            self._on_progress(asked, params)
        elif "method" not in message:
            self._on_response(asked, message)

    def _on_progress(self, asked: PendingMcpRequest, params: Message) -> None:
        if params["progressToken"] != asked.number:
            violated(Invariant.OWN_ANSWER, f"request {asked.number} by MCP is told how {params} is getting on")
        if params["progress"] <= asked.progress:
            violated(Invariant.STREAM, f"request {asked.number} by MCP has come to {params}, from {asked.progress}")
        asked.progress = params["progress"]

    def _on_response(self, asked: PendingMcpRequest, message: Message) -> None:
        if message.get("id") != asked.number:
            violated(Invariant.OWN_ANSWER, f"request {asked.number} by MCP is told {message!r:.100}")
        if asked.answered is not None:
            violated(Invariant.ONE_ANSWER, f"request {asked.number} by MCP was answered twice")
        asked.answered = self._now
        self.client.world.count("answers by MCP")
        asked.on_answer(message)

    # --- helpers ---

    @property
    def _now(self) -> float:
        return self.client.world.sim.now


class SimMcpClient:
    """MCP client with sessions at one endpoint."""

    def __init__(self, world: Deployment, place: McpEndpoint) -> None:
        self.world = world
        self.place = place
        self.talks: list[McpClientSession] = []

    def open(self, server: SimProcess, then: Callable[[McpClientSession], None]) -> RequestClient:
        """Send a request that opens a session; `then` gets the session if it succeeds."""
        about = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}

        def done(caller: RequestClient) -> None:
            identity = caller.answer.headers.get(b"mcp-session-id")
            if caller.status == 200 and identity is not None:
                self.world.count("sessions of MCP")
                talk = McpClientSession(self, identity.decode(), server)
                self.talks.append(talk)
                talk.send({"method": "notifications/initialized"})
                then(talk)

        message = {"jsonrpc": "2.0", "id": "begin", "method": "initialize", "params": about}
        return self.send(None, "POST", message, done)

    def try_foreign_session(self, talk: McpClientSession) -> None:
        """Send a request with the id of another client's session; a successful response is a violation."""

        def done(caller: RequestClient) -> None:
            if caller.status in (200, 202, 204):
                violated(Invariant.ACCESS, f"{caller.status} for another from a session of MCP")

        self.send(talk, "POST", {"jsonrpc": "2.0", "id": "list", "method": "tools/list"}, done)

    def send(
        self,
        talk: McpClientSession | None,
        method: str,
        message: Message | None,
        done: Done,
        piece: Callable[[bytes], None] | None = None,
        **more: str,
    ) -> RequestClient:
        """Send one HTTP request to `/mcp`, in the session `talk` if given; `done` gets the response."""
        place = self.place
        headers = {"authorization": f"Bearer {place.bearer()}", "accept": "application/json, text/event-stream", **more}
        if talk is not None:
            headers |= {"mcp-session-id": talk.identity, "mcp-protocol-version": VERSION}
        if message is not None:
            headers["content-type"] = "application/json"
        call = self.world.request
        return call(place.host, place.target, method, "/mcp", headers=headers, body=message, done=done, piece=piece)


def is_stream(caller: RequestClient) -> bool:
    """Report whether the response is an event stream."""
    head = caller.head
    return head is not None and (head.headers.get(b"content-type") or b"").startswith(b"text/event-stream")
