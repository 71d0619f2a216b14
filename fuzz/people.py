"""Who lives in a world and talks to the relay: operators, devices, agents, strangers. Nobody waits for anybody."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from attrs import define, field

from fuzz.invariants import Invariant
from fuzz.model import COMMAND_TIME, SLACK, Attempt, Code, Command, Session, check_grants, violated
from fuzz.peers import Caller, Talker, Thrower
from fuzz.script import Deed, Step
from fuzz.world import LOCAL, REMOTE, World
from runtimes.sim.host import Host

__all__ = ["Device", "People"]

GRANTS: tuple[dict[str, int] | None, ...] = (
    None,
    {"bridge": 5},
    {"bridge": 0, "terminal": 100},
    {"bridge": 90 * 86_400, "chat": 10},
    None,
    {"bridge": 40},
    {"bridge": 5, "terminal": 5},
)
GARBAGE = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /health HTTP/1.1\r\nHost: x\r\n",
    b"POST /pairing/register HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 50_000 + b"\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    b"\x00" * 2_000,
    b"POST /media/upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    (
        b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x81\x05hello\xff\xff\xff\xff"
    ),
)
INSPECTORS = (
    "/bridge/activity",
    "/media/inspect?include_expired=1",
    "/relay/info",
    "/bridge/devices",
    "/bridge/status",
    "/notifications/recent",
    "/sessions",
    "/health",
)
PAGES: tuple[dict[str, str], ...] = (
    {"host": "evil.example:8767"},
    {"origin": "https://evil.example"},
    {"x-forwarded-for": "203.0.113.9"},
    {"forwarded": "for=203.0.113.9"},
)
ENDED_WITHIN = 20.0  # s in which a socket of a revoked session is gone, on a network without trouble
UNCOUNTED = ("rate limited", "first message", "timeout", "too many")  # refusals that are no failed guesses


@define(eq=False)
class Device:
    """A socket of a session, and how it behaves."""

    name: str
    talker: Talker
    session: Session
    sent: dict[str, str] = field(factory=dict)  # request id of what it was ordered -> mark


class People:
    """The steps that concern the relay."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.codes: list[Code] = []
        self.sessions: list[Session] = []
        self.open: list[Device] = []
        self.commands: dict[str, Command] = {}
        self.uploads: list[tuple[str, bytes]] = []
        self.listeners: list[Callable[[Device, dict[str, Any]], None]] = []  # of whatever else a device is told
        self._strays: list[int] = []  # who will answer a command that it was not sent
        self._decisions: dict[str, str] = {}
        self._numbers = 0

    def perform(self, step: Step) -> bool:
        """Do a step; False when it is not one of these."""
        deeds = {
            Deed.REGISTER: self._register,
            Deed.PAIR: self._pair,
            Deed.RECONNECT: self._reconnect,
            Deed.LEAVE: self._leave,
            Deed.COMMAND: self._command,
            Deed.REVOKE: self._revoke,
            Deed.EXTEND: self._extend,
            Deed.LIST: self._list,
            Deed.UPLOAD: self._upload,
            Deed.FETCH: self._fetch,
            Deed.INSPECT: self._inspect,
            Deed.NOTIFY: self._notify,
            Deed.GUESS: self._guess,
            Deed.GARBAGE: self._garbage,
            Deed.BROWSE: self._browse,
            Deed.STRAY: self._stray,
        }
        deed = deeds.get(step.deed)
        if deed is not None:
            deed(step)
        return deed is not None

    def number(self) -> int:
        """A fresh one."""
        self._numbers += 1
        return self._numbers

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self.world.sim.now

    # --- pairing -------------------------------------------------------------------------------------------------

    def _register(self, step: Step) -> None:
        self.register(GRANTS[step.other % len(GRANTS)], step.amount)

    def register(self, grants: dict[str, int] | None = None, ttl: float = 0.0) -> Code:
        """Have the operator register a fresh code."""
        body: dict[str, object] = {"code": f"C{self.number():05}"}
        if grants is not None:
            body["grants"] = grants
        if ttl:
            body["ttl_seconds"] = int(ttl)
        code = Code(str(body["code"]), self.now)
        self.codes.append(code)
        sent = self.now
        forgotten = (sent, float("inf"))
        self.world.addresses.cleared.append(forgotten)

        def done(caller: Caller) -> None:
            self.world.addresses.cleared.remove(forgotten)
            self.world.addresses.forget(sent, self.now if caller.status else self.now + SLACK)
            if caller.status == 200:
                code.told = self.now
            elif caller.status not in (0, 503):
                violated(Invariant.STATUS, f"a code was refused with {caller.status} {caller.answer.body!r:.200}")

        self._local("POST", "/pairing/register", body, done)
        return code

    def _pair(self, step: Step) -> None:
        if self.codes:
            code = self.codes[-1 if step.other < 0 else step.other % len(self.codes)]
            self.pair(self.world.devices[step.who % len(self.world.devices)], code, phone=step.who % 3 != 2)

    def pair(self, host: Host, code: Code, *, phone: bool = True) -> Talker:
        """A device shows a code."""
        payload = {
            "pairing_code": code.word,
            "device_name": host.name,
            "device_id": f"id of {host.name}",
            "client_surface": "android" if phone else "desktop",
        }
        if self.world.rng.random() < 0.2:
            payload["ttl_seconds"] = "nonsense"
        return self._sign_in(host, payload, code=code)

    def _reconnect(self, step: Step) -> None:
        if self.sessions:
            self.reconnect(self.sessions[step.who % len(self.sessions)])

    def reconnect(self, session: Session) -> Talker:
        """A device comes back with its token."""
        host = self.world.sim.hosts[session.owner]
        return self._sign_in(host, {"session_token": session.token}, session=session)

    def _sign_in(
        self, host: Host, payload: dict[str, str], *, code: Code | None = None, session: Session | None = None
    ) -> Talker:
        world = self.world
        sent = [0.0]  # when `system/auth` went out
        attempt: list[Attempt] = []
        device: list[Device] = []

        def opened(talker: Talker) -> None:
            sent[0] = self.now
            world.note_registrations()
            world.addresses.check_open(host.address, talker.began, self.now)
            attempt.append(world.addresses.attempt(host.address, self.now))
            talker.say("system", "auth", payload, "auth-1")

        def heard(talker: Talker, message: dict[str, Any]) -> None:
            if device:
                self._device_heard(device[0], message)
                return
            kind = message.get("type")
            members = message.get("payload", {})
            if kind == "auth.ok":
                world.addresses.succeeded(host.address, attempt[0], self.now)
                device.append(self._welcomed(host, talker, members, code, session, sent[0]))
            elif kind == "auth.fail":
                reason = str(members.get("reason", ""))
                world.refuse_secrets(reason, "auth.fail")
                if any(word in reason for word in UNCOUNTED):
                    world.addresses.did_not_fail(host.address, attempt[0])
                else:
                    attempt[0].told = self.now
                    self._refused(session, sent[0])

        def ended(talker: Talker) -> None:
            world.lines.pop(talker, None)
            if talker.broken:
                violated(Invariant.STATUS, f"a WebSocket: {talker.broken}")
            if talker.status == 429:
                world.note_registrations()
                world.addresses.check_refused(host.address, talker.began, self.now)
            elif talker.status not in (0, 101, 503):
                violated(Invariant.STATUS, f"a WebSocket was refused with {talker.status}")
            for one in device:
                self.open.remove(one)

        talker = Talker(
            host,
            REMOTE,
            world.entropy,
            headers={},
            deflate=world.rng.random() < 0.5,
            on_open=opened,
            on_message=heard,
            on_end=ended,
        )
        world.keep(talker)
        return talker

    def _welcomed(
        self,
        host: Host,
        talker: Talker,
        members: dict[str, Any],
        code: Code | None,
        session: Session | None,
        sent: float,
    ) -> Device:
        world = self.world
        token = str(members.get("session_token"))
        world.count("signed in")
        if code is not None:
            code.use(sent, self.now)
            if token in world.secrets:
                violated(Invariant.OWN_BYTES, "the token of another session was given out")
            world.secrets[token] = f"the token {token[:8]}"
            session = Session(token, host.name, host.name, "android")
            session.terms.append(session.learn(members))
            self.sessions.append(session)
        elif session is None:
            violated(Invariant.DEAD_TOKEN, f"a stranger was welcomed at {host.name}")
        else:
            if token != session.token:
                violated(Invariant.OWN_BYTES, f"{session.prefix} was welcomed with another token")
            if session.is_dead(world.wall, sent, self.now):
                violated(Invariant.DEAD_TOKEN, f"{session.prefix} was welcomed after its end")
            session.learn(members)
        device = Device(f"{host.name}/{self.number()}", talker, session)
        self.open.append(device)
        return device

    def _refused(self, session: Session | None, sent: float) -> None:
        if session is None or self.world.store_trouble:
            return
        latest = self.world.wall.steps[-1][1] + self.now
        highest = max(offset for _, offset in self.world.wall.steps) + self.now
        if session.surely_lives(max(latest, highest)):
            violated(Invariant.LIVE_TOKEN, f"{session.prefix} was refused")

    def _leave(self, step: Step) -> None:
        if self.open:
            self.open[step.who % len(self.open)].talker.hang_up(reset=step.other % 2 == 1)

    # --- Device Control ------------------------------------------------------------------------------------------

    def _command(self, step: Step) -> None:
        if not self.sessions:
            return
        session = self.sessions[step.who % len(self.sessions)]
        selectors = ["", *(device.session.device for device in self.open), "Reference"]
        self.command(session, step.other, selectors[step.other % len(selectors)])

    def command(self, session: Session, kind: int, selector: str) -> Caller:
        """An agent with a session's token calls a Device Control route."""
        world = self.world
        mark = f"mark-{self.number()}"
        command = Command(mark, session, self.now, secret=f"hush-{mark}-hush")
        self.commands[mark] = command
        world.secrets[command.secret] = "a password among params"
        chosen = {"device": selector} if selector else {}
        if kind % 3 == 0:
            body = {"text": mark, "mark": mark, "password": command.secret, **chosen}
            method, path, data = "POST", "/type", json.dumps(body).encode()
        else:
            query = f"&device={quote(selector)}" if selector else ""
            method, path, data = "GET", f"/{('ping', 'screen')[kind % 2]}?mark={mark}{query}", b""
        return world.call(
            world.agent,
            REMOTE,
            method,
            path,
            headers={"authorization": f"Bearer {session.token}"},
            body=data,
            done=lambda caller: self._commanded(command, caller),
        )

    def _commanded(self, command: Command, caller: Caller) -> None:
        session, status = command.caller, caller.status
        dead = session.is_dead(self.world.wall, command.sent, self.now)
        if status == 0:
            return
        if status not in (401, 429, 503) and dead:
            violated(Invariant.DEAD_TOKEN, f"{session.prefix} was answered {status} after its end")
        if status == 401:
            self._refused(session, command.sent)
        if status != 200:
            return
        answer = caller.answer.json
        if not isinstance(answer, dict) or "echo" not in answer:
            return  # of the reference phone, which knows nothing of marks
        who = str(answer.get("by"))
        if answer["echo"] != command.mark or who not in command.answered:
            violated(Invariant.OWN_ANSWER, f"{command.mark} was answered {answer!r:.200}")
        if command.answered[who] > command.reached[who] + COMMAND_TIME:
            late = command.answered[who] - command.reached[who]
            violated(Invariant.IN_TIME, f"{command.mark} was answered by the phone after {late:.1f} s, and accepted")

    def _device_heard(self, device: Device, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind != "bridge.command":
            self.world.refuse_secrets(json.dumps(message), f"a message to {device.name}")
            for listener in self.listeners:
                listener(device, message)
            return
        payload = message["payload"]
        members = {**(payload.get("params") or {}), **(payload.get("body") or {})}
        command = self.commands.get(str(members.get("mark")))
        request_id = str(payload["request_id"])
        wall, now = self.world.wall, self.now
        device.sent[request_id] = "" if command is None else command.mark
        if command is None:  # the agent of the API: its session is not known here
            self._reply(device, request_id, "")
            return
        self.world.count("reached a phone")
        command.request_id = request_id
        if command.reached:
            violated(Invariant.ONE_ANSWER, f"{command.mark} was sent to {[*command.reached, device.name]}")
        command.reached[device.name] = now
        if command.caller.lacks("bridge", wall, command.sent, now):
            violated(Invariant.LIVE_GRANT, f"{command.mark} of {command.caller.prefix}, which holds no bridge grant")
        if device.session.lacks("bridge", wall, command.sent, now):
            violated(Invariant.LIVE_GRANT, f"{command.mark} reached {device.name}, which holds no bridge grant")
        if device.session.revoked is not None and device.session.revoked < command.sent:
            violated(Invariant.SOCKETS_ENDED, f"{command.mark} reached {device.name}, whose session was revoked")
        self._behave(device, request_id, command)

    def _behave(self, device: Device, request_id: str, command: Command) -> None:
        rng = self.world.rng
        mood = rng.random()
        if self._strays:
            self._answer_for(device, self._strays.pop(), request_id, command.mark)
        if mood < 0.05:
            return  # never
        delay = 30.0 + rng.random() * 3.0 if mood < 0.15 else rng.random() ** 3

        def answer() -> None:
            command.answered.setdefault(device.name, self.now)
            self._reply(device, request_id, command.mark)
            if mood > 0.9:  # twice
                self._reply(device, request_id, f"again {command.mark}")

        self.world.sim.after(delay, answer)

    def _reply(self, device: Device, request_id: str, mark: str) -> None:
        result = {"echo": mark, "by": device.name}
        device.talker.say("bridge", "bridge.response", {"request_id": request_id, "status": 200, "result": result})

    def _stray(self, step: Step) -> None:
        """The next command that reaches a phone is answered by another socket first, and now one that is over."""
        self._strays.append(step.who)
        others = [device for device in self.open if device.sent]
        if others:
            victim = others[step.other % len(others)]
            request_id = list(victim.sent)[-1]
            self._answer_for(victim, step.who, request_id, victim.sent[request_id])

    def _answer_for(self, victim: Device, who: int, request_id: str, mark: str) -> None:
        device = self.open[who % len(self.open)]
        if device is not victim:
            result = {"echo": mark, "by": f"stray {device.name}"}
            payload = {"request_id": request_id, "status": 200, "result": result}
            device.talker.say("bridge", "bridge.response", payload)

    # --- sessions ------------------------------------------------------------------------------------------------

    def _revoke(self, step: Step) -> None:
        if not self.sessions:
            return
        caller = self.sessions[step.who % len(self.sessions)]
        session = self.sessions[step.other % len(self.sessions)]
        session.revoking = True
        sent = self.now

        def done(answer: Caller) -> None:
            if answer.status != 200:
                return
            if caller.is_dead(self.world.wall, sent, self.now) and step.who % 4:
                violated(Invariant.DEAD_TOKEN, f"{caller.prefix} revoked {session.prefix} after its own end")
            session.revoked = self.now
            self.world.sim.after(ENDED_WITHIN, lambda: self._check_ended(session, sent))

        path = f"/sessions/{session.prefix}"
        if step.who % 4:
            self._remote("DELETE", path, None, caller, done)
        else:
            self._local("DELETE", path, None, done)

    def _check_ended(self, session: Session, since: float) -> None:
        if self.world.shaken >= since or not self.world.relay.alive:
            return
        for device in self.open:
            if device.session is session and device.talker.began < since:
                violated(Invariant.SOCKETS_ENDED, f"{device.name} is open {ENDED_WITHIN:.0f} s after it was revoked")

    def _extend(self, step: Step) -> None:
        if not self.sessions:
            return
        session = self.sessions[step.who % len(self.sessions)]
        body: dict[str, object] = {"ttl_seconds": int(step.amount)}
        grants = GRANTS[step.other % len(GRANTS)]
        if grants is not None:
            body["grants"] = grants
        session.terms.append(None)
        session.patches += 1
        session.patched += 1
        alone = session.patches == 1
        begun = session.patched

        def done(caller: Caller) -> None:
            session.patches -= 1
            if caller.status == 200:
                terms = session.learn(caller.answer.json)
                if alone and session.patched == begun:
                    session.terms = [terms]
                else:
                    session.terms.append(terms)
            elif caller.status in (400, 401, 403, 404, 409):
                session.terms.remove(None)

        self._remote("PATCH", f"/sessions/{session.prefix}", body, session, done)

    def _list(self, step: Step) -> None:
        sent = self.now

        def done(caller: Caller) -> None:
            if caller.status != 200:
                return
            gone = [one.prefix for one in self.sessions if one.is_dead(self.world.wall, sent, self.now)]
            for record in caller.answer.json["sessions"]:
                check_grants(record["grants"], record["expires_at"], record["token_prefix"])
                if record["token_prefix"] in gone:
                    violated(Invariant.DEAD_TOKEN, f"{record['token_prefix']} is listed after its end")

        if self.sessions and step.who % 3:
            self._remote("GET", "/sessions", None, self.sessions[step.who % len(self.sessions)], done)
        else:
            self._local("GET", "/sessions", None, done)

    # --- media, inbox, inspectors --------------------------------------------------------------------------------

    def _upload(self, step: Step) -> None:
        if not self.sessions:
            return
        data = f"upload {self.number()} ".encode() * max(1, int(step.amount) // 10)
        content = base64.b64encode(data).decode()
        body = {"file_name": "a.bin", "content_type": "application/octet-stream", "content": content}

        def done(caller: Caller) -> None:
            if caller.status == 200:
                self.uploads.append((str(caller.answer.json["token"]), data))

        self._remote("POST", "/media/upload", body, self.sessions[step.who % len(self.sessions)], done)

    def _fetch(self, step: Step) -> None:
        if not self.uploads:
            return
        token, data = self.uploads[step.other % len(self.uploads)]
        session = self.sessions[step.who % len(self.sessions)] if step.who % 4 else None
        sent = self.now

        def done(caller: Caller) -> None:
            if caller.status == 200 and session is None:
                violated(Invariant.LOCAL_ONLY, "media were given to a caller without a token")
            if caller.status == 200 and session is not None and session.is_dead(self.world.wall, sent, self.now):
                violated(Invariant.DEAD_TOKEN, f"{session.prefix} fetched media after its end")
            if caller.status == 200 and caller.answer.body != data:
                violated(Invariant.OWN_BYTES, f"{data[:12]!r} was asked for, {caller.answer.body[:12]!r} came")

        self._remote("GET", f"/media/{token}", None, session, done)

    def _inspect(self, step: Step) -> None:
        path = INSPECTORS[step.who % len(INSPECTORS)]
        self._local("GET", path, None, self._activity if path == "/bridge/activity" else _nothing)

    def _activity(self, caller: Caller) -> None:
        if caller.status != 200:
            return
        for record in caller.answer.json["activity"]:
            request_id, decision = record["request_id"], record["decision"]
            before = self._decisions.setdefault(request_id, decision)
            if before not in ("pending", decision):
                violated(Invariant.ONE_ANSWER, f"a record went from {before} to {decision}")
            self._decisions[request_id] = decision

    def _notify(self, step: Step) -> None:
        if self.open:
            device = self.open[step.who % len(self.open)]
            note = {"package": "com.example", "title": f"note {self.number()}", "text": "hello"}
            device.talker.say("notifications", "notification.posted", note)
            device.talker.say("system", "ping", {"ts": 1})

    # --- strangers -----------------------------------------------------------------------------------------------

    def _guess(self, step: Step) -> None:
        self._guess_again(self.world.attackers[step.who % len(self.world.attackers)], 3 + step.other % 6, step.who)

    def _guess_again(self, host: Host, left: int, kind: int) -> None:
        stolen = [session for session in self.sessions if session.revoked is not None]
        if kind % 3 == 0 and stolen:
            talker = self._sign_in(host, {"session_token": stolen[left % len(stolen)].token})
        elif kind % 3 == 1:
            used = [code for code in self.codes if code.uses]
            code = used[left % len(used)] if used else Code("ZZZZZZ", self.now, uses=1)
            talker = self._sign_in(host, {"pairing_code": code.word}, code=code)
        else:
            talker = self._sign_in(host, {"pairing_code": f"Z{self.number():05}"})
        if left > 1:
            pause = 0.2 + self.world.rng.random()
            self.world.sim.after(pause, lambda: self._guess_again(host, left - 1, kind))
        self.world.sim.after(25.0, talker.hang_up)

    def _garbage(self, step: Step) -> None:
        host = self.world.attackers[step.who % len(self.world.attackers)]
        data = GARBAGE[step.other % len(GARBAGE)]
        if step.who % 5 == 0:
            data = bytes(self.world.rng.randrange(256) for _ in range(300))
        thrower = Thrower(host, REMOTE, data)
        self.world.sim.after(20.0, lambda: self._threw(thrower))

    def _threw(self, thrower: Thrower) -> None:
        self.world.refuse_secrets(thrower.heard.decode("latin-1"), "the answer to garbage")
        if b" 200 " in thrower.heard[:16] or b" 500 " in thrower.heard[:16]:
            violated(Invariant.STATUS, f"garbage was answered {bytes(thrower.heard)!r:.100}")
        thrower.hang_up(reset=True)

    def _browse(self, step: Step) -> None:
        method, path = (("POST", "/pairing/register"), ("GET", "/bridge/activity"), ("GET", "/relay/info"))[
            step.other % 3
        ]
        data = json.dumps({"code": "EVIL00"}).encode() if method == "POST" else b""

        def done(caller: Caller) -> None:
            if caller.status not in (0, 403, 503):
                violated(Invariant.LOCAL_ONLY, f"a page got {caller.status} from {path}")

        if step.who % 5 == 4:
            self.world.call(self.world.agent, REMOTE, method, path, body=data, done=done)
        else:
            page = PAGES[step.who % 5]
            self.world.call(self.world.home, LOCAL, method, path, headers=page, body=data, done=done)

    # --- helpers -------------------------------------------------------------------------------------------------

    def _local(self, method: str, path: str, body: object, done: Any) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.world.call(self.world.home, LOCAL, method, path, body=data, done=done)

    def _remote(self, method: str, path: str, body: object, session: Session | None, done: Any) -> None:
        headers = {} if session is None else {"authorization": f"Bearer {session.token}"}
        data = b"" if body is None else json.dumps(body).encode()
        self.world.call(self.world.agent, REMOTE, method, path, headers=headers, body=data, done=done)


def _nothing(caller: Caller) -> None:
    """Only the common checks."""
