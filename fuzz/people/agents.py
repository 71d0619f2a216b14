"""Agents elsewhere that drive phones by MCP (`/mcp`): they have sessions there, call tools, listen, and come back.

A session of MCP is its caller's alone, and lasts while somebody uses it or listens. A call goes on without its
connection: what is said about it can be read on by the number that its stream was given. The newest reader is the one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from attrs import define, field

from fuzz.invariants import Invariant
from fuzz.mcp_client import is_stream
from fuzz.model import Session, violated
from fuzz.peers import Caller
from fuzz.people.control import Control
from fuzz.people.crowd import LATE, Crowd, Deeds, nothing
from fuzz.script import Deed, Step
from fuzz.world import REMOTE
from runtimes.sim.process import Process
from svc_proto.wire.sse import EventStreamDecoder

__all__ = ["IDLE", "Agents"]

IDLE = 1800.0  # s after which a session that nobody uses ends
ANSWERED = 45.0  # s in which a call has an answer: that of a phone, or none after 30 s
STREAMED = 6.0  # s after which an answer that has not come is a stream
VERSION = "2025-11-25"


@define(eq=False)
class _Talk:
    """A session of MCP, and who listens to it."""

    id: str
    owner: Session
    relay: Process
    listener: Caller | None = None
    ended: bool = False  # by its agent, perhaps
    used: float = 0.0


@define(eq=False)
class _Call:
    """One call of a tool. `place` is what its stream was told last, by which one can come back."""

    talk: _Talk
    number: int
    sent: float
    answers: int = 0
    place: str = ""
    decoder: EventStreamDecoder = field(factory=EventStreamDecoder)


class Agents:
    """The steps of those who speak MCP."""

    def __init__(self, crowd: Crowd, control: Control) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self.control = control
        self.talks: list[_Talk] = []
        self.deeds: dict[Deed, Deeds] = {Deed.MCP: self._step}

    def _step(self, step: Step) -> None:
        if not self.crowd.sessions:
            return
        session = self.crowd.session(step.who)
        mine = [talk for talk in self.talks if talk.owner is session and not talk.ended]
        if not mine or step.other % 9 == 0:
            self.open(session, lambda talk: self._act(talk, step))
        else:
            self._act(mine[step.other // 9 % len(mine)], step)

    def _act(self, talk: _Talk, step: Step) -> None:
        match step.other % 9:
            case 0 | 1 | 2 | 3:
                self._call(talk, step.amount, leaves=step.other % 2 == 1)
                if step.other % 9 == 2:  # another one is given up soon, which is nobody else's concern
                    self._give_up(talk)
            case 4 | 5:
                self.listen(talk)
            case 6:
                self._try_door(talk, self.crowd.session(step.other))
            case 7:
                self._end(talk)
            case _:
                self._ask(talk.owner, talk, "POST", {"jsonrpc": "2.0", "id": "list", "method": "tools/list"})

    def open(self, session: Session, then: Callable[[_Talk], None]) -> None:
        """A new session of MCP, and what its agent does in it at once."""
        about = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
        relay = self.world.relay

        def done(caller: Caller) -> None:
            identity = caller.answer.headers.get(b"mcp-session-id")
            if caller.status == 200 and identity is not None:
                self.world.count("sessions of MCP")
                talk = _Talk(identity.decode(), session, relay, used=self.crowd.now)
                self.talks.append(talk)
                self._ask(session, talk, "POST", {"jsonrpc": "2.0", "method": "notifications/initialized"})
                then(talk)

        message = {"jsonrpc": "2.0", "id": "begin", "method": "initialize", "params": about}
        self._ask(session, None, "POST", message, done)

    def listen(self, talk: _Talk) -> None:
        """Hear what the server says by itself; whoever listened before hears no more."""
        before, talk.used = talk.listener, self.crowd.now

        def over(caller: Caller) -> None:
            if caller.status not in (0, 200):
                self._is_refused(talk, caller)

        listener = talk.listener = self._ask(talk.owner, talk, "GET", None, over)
        if before is not None:
            self.world.sim.after(2 * LATE, lambda: self._check_replaced(talk, before, listener))

    def look(self) -> None:
        """Who listens hears the end of what let him in."""
        for talk in self.talks:
            over, listener = self.crowd.over_by(talk.owner), talk.listener
            if listener is None or listener.over or over is None or self.crowd.now <= max(over, talk.used) + 2 * LATE:
                continue
            if self.world.relay_up and self.world.is_sound(listener) and listener.head is not None:
                late = self.crowd.now - over
                violated(Invariant.SETTLED, f"{talk.owner.prefix} listens by MCP {late:.0f} s after its end")

    def is_able(self, session: Session) -> bool:
        """Whether it surely may have sessions of MCP, and always might."""
        highest = self.world.wall.highest(self.crowd.now)
        return self.crowd.surely_lives(session) and session.surely_held("bridge", highest)

    # --- steps ---

    def _call(self, talk: _Talk, patience: float, *, leaves: bool) -> None:
        """Have a phone answer after so long; who leaves comes back for the rest."""
        number, talk.used = self.crowd.number(), self.crowd.now
        call = _Call(talk, number, self.crowd.now)
        self.control.late.append(3.0 * patience)
        params = {"name": "phone_ping", "arguments": {}}
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        caller = self._read(call, "POST", message)
        if leaves:
            self.world.sim.after(STREAMED + patience, lambda: self._come_back(call, caller))
        else:
            self.world.sim.after(ANSWERED, lambda: self._check_answered(call))

    def _give_up(self, talk: _Talk) -> None:
        """Ask for something that takes time, and leave."""
        self.control.late.insert(0, STREAMED)
        params = {"name": "phone_ping", "arguments": {}}
        message = {"jsonrpc": "2.0", "id": self.crowd.number(), "method": "tools/call", "params": params}
        caller = self._ask(talk.owner, talk, "POST", message)
        self.world.sim.after(0.5, lambda: caller.hang_up(reset=True))

    def _come_back(self, call: _Call, caller: Caller) -> None:
        if caller.over or not call.place:
            return
        caller.hang_up(reset=True)
        self.world.count("calls by MCP that were read on")
        self.world.sim.after(1.0, lambda: self._read(call, "GET", None))
        self.world.sim.after(ANSWERED, lambda: self._check_answered(call))

    def _read(self, call: _Call, method: str, message: object) -> Caller:
        call.decoder = decoder = EventStreamDecoder()

        def piece(data: bytes) -> None:
            if call.decoder is not decoder or not is_stream(caller):
                return
            for event in decoder.receive_data(data):
                if event.data:
                    self._told(call, json.loads(event.data))
            call.place = decoder.last_event_id or call.place

        def done(caller: Caller) -> None:
            if caller.status == 200 and isinstance(caller.answer.json, dict) and "id" in caller.answer.json:
                self._told(call, caller.answer.json)

        last = {"last-event-id": call.place} if method == "GET" else {}
        caller = self._ask(call.talk.owner, call.talk, method, message, done, piece, **last)
        return caller

    def _told(self, call: _Call, message: dict[str, Any]) -> None:
        if "id" not in message or "method" in message:
            return
        if message["id"] != call.number:
            violated(Invariant.OWN_ANSWER, f"call {call.number} by MCP is told {message!r:.100}")
        call.answers += 1
        self.world.count("calls by MCP")
        if call.answers > 1:
            violated(Invariant.ONE_ANSWER, f"call {call.number} by MCP was answered {call.answers} times")

    def _check_answered(self, call: _Call) -> None:
        talk = call.talk
        if call.answers or not self._is_there(talk, call.sent) or not self.world.quiet_since(call.sent):
            return
        violated(Invariant.IN_TIME, f"call {call.number} by MCP has no answer after {self.crowd.now - call.sent:.0f} s")

    def _check_replaced(self, talk: _Talk, before: Caller, now: Caller) -> None:
        took = now.head is not None and now.head.status == 200
        if took and not before.over and self.world.is_sound(before) and self._is_there(talk, before.began):
            violated(Invariant.STREAM, "two listen to one session of MCP")

    def _try_door(self, talk: _Talk, other: Session) -> None:
        if other is talk.owner:
            return

        def done(caller: Caller) -> None:
            if caller.status in (200, 202, 204):
                violated(Invariant.DOORS, f"{other.prefix} got {caller.status} from a session of {talk.owner.prefix}")

        self._ask(other, talk, "POST", {"jsonrpc": "2.0", "id": "list", "method": "tools/list"}, done)

    def _end(self, talk: _Talk) -> None:
        talk.ended = True

        def done(caller: Caller) -> None:
            if caller.status == 204:
                self._ask(talk.owner, talk, "POST", {"jsonrpc": "2.0", "id": "x", "method": "tools/list"}, again)

        def again(caller: Caller) -> None:
            if caller.status == 200:
                violated(Invariant.AFTER_END, "a session of MCP that was ended answers")

        self._ask(talk.owner, talk, "DELETE", None, done)

    # --- helpers ---

    def _is_refused(self, talk: _Talk, caller: Caller) -> None:
        if caller.status == 404 and self._is_there(talk, caller.began):
            violated(Invariant.RECOVERY, f"a session of MCP of {talk.owner.prefix} is not there any more")

    def _is_there(self, talk: _Talk, since: float) -> bool:
        """Whether it surely is."""
        there = talk.relay is self.world.relay and self.world.relay_up and since < talk.used + IDLE
        return there and not talk.ended and self.is_able(talk.owner)

    def _ask(
        self,
        session: Session,
        talk: _Talk | None,
        method: str,
        message: object,
        done: Any = nothing,
        piece: Any = None,
        **more: str,
    ) -> Caller:
        headers = {"authorization": f"Bearer {session.token}", "accept": "application/json, text/event-stream", **more}
        if talk is not None:
            headers |= {"mcp-session-id": talk.id, "mcp-protocol-version": VERSION}
        if message is not None:
            headers["content-type"] = "application/json"
        body = b"" if message is None else json.dumps(message).encode()
        world = self.world
        return world.call(world.agent, REMOTE, method, "/mcp", headers=headers, body=body, done=done, piece=piece)
