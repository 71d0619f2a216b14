"""Client of one voice session: its WebSocket, the messages that it sends, and the events that it receives."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from attrs import frozen

from fuzz.simulation.actors.actor_context import ActorContext, task_of
from fuzz.simulation.actors.voice_event_checker import VoiceEventChecker
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.models.reference_model import SLACK, SessionModel, violated
from fuzz.simulation.servers.speech_server import build_recording
from runtimes.sim.host import SimHost
from tests.support.sim_http import ServerAddress, WebSocketClient

OUTPUT, LAB, AGENT = "output", "realtime", "realtime-agent"
FAMILIES = {OUTPUT: "voice:tts", LAB: "voice:realtime", AGENT: "voice:realtime"}  # family: required grant
SPEAK_TIMEOUT = 30.0  # s for the stub to read a text, on a network without faults
STALLED = 90.0  # s, wire terminal-voice 6.5
STUCK = 10.0  # s without an event in the middle of a text that is read, for a client that reads at full speed
CLOSE_TIMEOUT = 15.0  # s for the closing handshake
UNATTENDED = 120.0  # s that a session waits for its WebSocket, wire terminal-voice 4.6
OVER = (404, 410)
EXPIRED = 4008  # close code, wire terminal-voice 4.8
IN = ("voice.session.ready", "voice.session.resumed")
REFUSALS = (0, 101, 401, 403, 404, 408, 410, 503)


@frozen
class VoicePrincipal:
    """Address and credential that a voice client uses; `session` is None for the API's key."""

    host: SimHost
    target: ServerAddress
    token: str
    session: SessionModel | None

    @property
    def caller(self) -> str:
        """Return the caller whose session quota is used: a device, whatever its token, or the API's key."""
        return self.token if self.session is None else self.session.device


class VoiceSessionClient:
    """Voice session and its newest WebSocket. `manner` is the model's behavior towards the realtime agent."""

    def __init__(
        self,
        crowd: ActorContext,
        who: VoicePrincipal,
        family: str,
        answer: dict[str, Any],
        rivals: list[VoiceSessionClient],
    ) -> None:
        self.rivals = rivals  # all voice sessions of the simulation
        self.crowd = crowd
        self.world = crowd.world
        self.who = who
        self.family = family
        self.grant = FAMILIES[family]
        self.native = answer["provider"] == "openai_realtime"
        self.read = answer["provider"] == "openai_tts"  # the text is read by a vendor over HTTP
        name = f"{family} {answer['session_id'][:8]}"
        self.ears = VoiceEventChecker(name, answer["sample_rate"], numbered=family != LAB, native=self.native)
        self.ears.read = self.read
        self.made = self.heard_at = crowd.now
        self.relay = crowd.world.relay
        self.lost: float | None = None  # when its WebSocket was lost, if the client may resume
        self._attached_at = 0.0
        self.closed = False  # by the client, or for good by the server
        self.turn_open = False  # a turn was requested, and its end was not reported
        self.manner = "plain"
        self.speaks_up = False  # by microphone, where the provider transcribes sound
        self._chunks = 0  # pieces of sound from the microphone
        self.dawdles = 0.0  # s for which the client pauses reading; its texts are long then
        self.doubles = False  # each request is sent twice
        self.run_id = ""
        self.answered = False  # the model's answer is complete
        self._answer = answer
        self._talker: WebSocketClient | None = None
        self._closing = False
        self._owner: WebSocketClient | None = None  # the WebSocket that owns the session
        self.on_taken: Callable[[], None] | None = None  # called when a request is accepted
        self._to_say: list[dict[str, object]] = []
        self._asked: list[tuple[str, float]] = []  # requested texts, until they are accepted or refused
        self._text = ""  # of the turn under way
        self._questions = 0
        self._forwarded = 0
        self._asked_about: dict[str, int] = {}  # by run, the task that needs an approval
        self._detached = 0  # runs that were promoted, and whose end was not reported

    @property
    def name(self) -> str:
        """Return the name for reports."""
        return self.ears.name

    @property
    def log_path(self) -> str:
        """Return the path of the session's event log, as the relay reported it."""
        return str(self._answer["event_log_path"])

    @property
    def attached(self) -> bool:
        """Report whether there is an open WebSocket to send on."""
        talker = self._talker
        return talker is not None and talker.accepted and not talker.is_closed and not self._closing

    def surely_there(self, since: float) -> bool:
        """Report whether the relay must have had this session since `since`."""
        session, talker, world = self.who.session, self._talker, self.world
        if session is not None and not self.crowd.must_have_had_grant(session, self.grant):
            return False
        if (
            self.made > since
            or self.closed
            or self.relay is not world.relay
            or not world.is_fault_free_since(self.made)
        ):
            return False
        if talker is None:
            return self.crowd.now < self.made + UNATTENDED - SLACK
        return self.attached and self._attached_at < since and world.is_unaffected(talker)

    # --- the socket ---

    def open(self, *, again: bool = False, over: str = "") -> None:
        """Open the WebSocket, or resume with `again`. With `over`, the session has ended: acceptance is a violation."""
        world, who = self.world, self.who
        self.ears.open()
        self._closing = False

        def opened(talker: WebSocketClient) -> None:
            self._attached_at = self.crowd.now
            if over:
                violated(Invariant.VOICE_OVER, f"{self.name} is open again: {over}")
            self._check_grant(talker.began, "has a socket")
            if self.dawdles:
                world.pause_reading_for(talker, self.dawdles)
            if again:
                resume = {"type": "session.resume", "resume_token": self._answer["resume_token"]}
                talker.send_message({**resume, **self.ears.cursor})
            for message in self._to_say:
                talker.send_message(message)
            self._to_say.clear()

        talker = WebSocketClient(
            world.connection_for(who.host, who.target, deflate=world.rng.random() < 0.5),
            who.target,
            path=self._answer["websocket_path"],
            headers={"authorization": f"Bearer {who.token}"},
            on_open=opened,
            on_message=self._on_event,
            on_end=lambda talker: self._ended(talker, again=again),
        )
        self._talker = talker
        world.add_client(talker)

    def close(self) -> bool:
        """Close with code 1000; return whether there was an open WebSocket."""
        talker = self._talker
        if talker is None or not talker.close(1000):
            return False
        self._closing = self.closed = True
        self.world.sim.after(CLOSE_TIMEOUT, talker.disconnect)
        return True

    def vanish(self) -> None:
        """Reset the connection without a close frame."""
        if self._talker is not None:
            self._talker.disconnect(reset=True)
            self.lost = self.crowd.now

    def _check_forgotten(self, talker: WebSocketClient) -> None:
        """Check that a session refused as unknown had expired, or was displaced by a newer session of its caller."""
        newer = any(line.takes_room_of(self) for line in self.rivals)
        session, lost = self.who.session, self.lost
        if newer or self.closed or lost is None or self.relay is not self.world.relay:
            return
        held = session is None or self.crowd.must_have_had_grant(session, self.grant)
        if held and self.world.is_fault_free_since(lost):
            since = self.crowd.now - lost
            violated(Invariant.VOICE_OVER, f"{self.name} is over {since:.1f} s after it was lost: {talker.status}")

    def takes_room_of(self, other: VoiceSessionClient) -> bool:
        """Report whether this session is newer than another one of the same caller and family."""
        return self.family == other.family and self.who.caller == other.who.caller and self.made > other.made

    def _ended(self, talker: WebSocketClient, *, again: bool) -> None:
        world = self.world
        world.lines.pop(talker, None)
        if talker.broken:
            violated(Invariant.STATUS, f"{self.name}: {talker.broken}")
        if talker.status not in REFUSALS:
            violated(Invariant.STATUS, f"{self.name}: a socket was refused with {talker.status}")
        if talker is self._owner and talker.close_code == EXPIRED:
            violated(Invariant.VOICE_OVER, f"{self.name} expired while a client was attached")
        world.check_no_secrets(talker.refusal.decode("latin-1"), f"the refusal of {self.name}")
        if again and talker.status in OVER:
            self._check_forgotten(talker)
        if self.who.session is not None:
            self.crowd.on_grant_denied(self.who.session, talker.status, self.grant, talker.began)

    # --- requests ---

    def say_something(self) -> None:
        """Request one more response."""
        number = self.crowd.next_number()
        self.ears.numbers[number] = None
        words = 40 if self.dawdles else number % 40
        text = f"{self.manner}: voice {number}" if self.family == AGENT else "word " * words + f"voice {number}"
        if self.native and self.speaks_up:
            self._asked.append((f"talk: voice {number}", self.crowd.now))
            self._speak_up(number)
            return
        if self.native:
            text = self.world.rng.choice(("", "", "later: ", "talk: ")) + text
        for _ in range(2 if self.doubles else 1):
            self._asked.append((text, self.crowd.now))
            self._send({"type": "response.create", "text": text})
        if self.family != AGENT:
            talker, sent = self._talker, self.crowd.now
            self.world.sim.after(SPEAK_TIMEOUT, lambda: self._check_spoken(talker, sent))

    def _speak_up(self, number: int) -> None:
        """Send some pieces of sound, some of them twice, and commit the input."""
        rng = self.world.rng
        rate = rng.choice((8_000, 16_000, 24_000, 48_000))
        for _ in range(3):
            self._chunks += 1
            sound = base64.b64encode(build_recording(number, rate // 10)).decode()
            for _ in range(1 + (rng.random() < 0.3)):
                message = {"chunk_id": self._chunks, "sample_rate": rate, "audio_base64": sound}
                self._send({"type": "input_audio.append", **message})
        self._send({"type": "input_audio.commit"})

    @property
    def asked_last(self) -> str:
        """Return the text of the turn under way."""
        return self._text

    def cancel(self) -> None:
        """Request that the relay cancels the response in progress."""
        self._send({"type": "response.cancel"})

    def _send(self, message: dict[str, object]) -> None:
        if self.attached and self._talker is not None:
            self._talker.send_message(message)
        else:
            self._to_say.append(message)

    def _check_spoken(self, talker: WebSocketClient | None, sent: float) -> None:
        if self.read and self.world.provider.failed_at >= sent:
            return
        if (
            talker is self._talker
            and self.attached
            and self.world.is_fault_free_since(sent)
            and self._asked_or_speaking
        ):
            violated(Invariant.ONE_END, f"{self.name} has not ended after {SPEAK_TIMEOUT:.0f} s")

    @property
    def _asked_or_speaking(self) -> bool:
        return self.ears.speaking or bool(self._asked)

    # --- events ---

    def _on_event(self, talker: WebSocketClient, event: dict[str, Any]) -> None:
        self.world.check_no_secrets(talker.text, f"what {self.name} is told")
        kind = event["type"]
        self.heard_at = self.crowd.now
        begins = kind == ("voice.input_transcript.final" if self.family == AGENT else "voice.response.started")
        refused = kind == "voice.error" and "provider" not in event
        if (begins or refused) and not self.ears.knows(event):
            self._taken(event, begins=begins)
        if kind == "voice.replay.done":  # requests sent before the reconnect never arrived
            self._asked = [asked for asked in self._asked if asked[1] >= talker.began or self.speaks_up]
        if kind in IN:
            self._owner = talker
        if self.ears.check_event(event):
            self._react(kind, event)

    def _taken(self, event: dict[str, Any], *, begins: bool) -> None:
        """Handle the beginning, or the refusal, of the first pending request."""
        if not self._asked:
            violated(Invariant.OWN_BYTES, f"{self.name}: {event} and nothing was asked for")
        texts = [text for text, _ in self._asked]
        said = event.get("text")  # the order of transcripts may differ from that of the recordings
        text, sent = self._asked.pop(texts.index(said) if self.speaks_up and said in texts else 0)
        if not begins:
            return
        self._check_grant(sent, "is answered")
        if self.speaks_up:
            self.world.count("utterances understood")
        self._text, self.run_id, self.answered = text.removeprefix("later: "), "", False
        self.turn_open = True
        if self.on_taken is not None:
            self.on_taken()
        if self.family != AGENT:
            self.ears.text = text
        elif event["text"] != text:
            violated(Invariant.OWN_BYTES, f"{self.name}: {text!r} was said, {event['text']!r} understood")

    def _react(self, kind: str, event: dict[str, Any]) -> None:
        match kind:
            case "voice.playback_drain.requested" if self.crowd.world.rng.random() < 0.7:
                self._send({"type": "playback.drained", "call_id": event["call_id"]})
            case "svc.run.promoted":
                self.turn_open &= bool(event["spoken_handoff"])
                self._detached += 1
                self.world.count("runs promoted")
            case "svc.run.background_completed":
                self._detached -= 1
                if self._detached < 0:
                    violated(Invariant.ONE_END, f"{self.name}: {event} for a run that is over, or was not promoted")
            case "svc.run.started":
                self.run_id = str(event["run_id"])
            case "svc.confirmation.requested":
                self._questions += 1
                self._answer_question(event)
            case "svc.tool.completed" if event["run_id"] in self._asked_about:
                self.world.count("allowed by voice")
                self.crowd.check_allowed(self._asked_about[event["run_id"]], self.name)
            case "svc.confirmation.forwarded" if event["answer"] is not None:
                self._forwarded += 1
                if self._forwarded > self._questions:
                    violated(Invariant.CONFIRMED, f"{self.name}: {event} is one more than was asked")
            case "voice.response.turn_completed":
                self.answered = True
                self._completed(str(event["content"]))
            case "voice.response.done":
                self.turn_open = False
                self.world.count(
                    "cancelled" if event.get("cancelled") else "read by a vendor" if self.read else "spoken"
                )
            case _:
                pass

    def _answer_question(self, event: dict[str, Any]) -> None:
        rng, question = self.world.rng, event["confirmation_id"]
        self._asked_about[event["run_id"]] = task = task_of(event["message"])
        word = rng.choice(("allow", "deny", "perhaps", ""))
        self.world.count("questions heard")
        if not word:
            return

        def answer() -> None:
            if word == "allow":
                self.crowd.allowed[task] = None
            for _ in range(1 + (rng.random() < 0.3)):
                self._send({"type": "svc.confirm", "confirmation_id": question, "answer": word})

        self.world.sim.after(rng.random() * 3.0, answer)

    def _completed(self, content: str) -> None:
        if self.manner == "plain" and content.strip() not in ("", f"You said {self._text}"):
            violated(Invariant.OWN_BYTES, f"{self.name}: {self._text!r} was answered {content!r:.100}")

    def check_stalled(self) -> None:
        """Check that an attached client receives events during a turn: a phone takes silence for a stall."""
        silent = self.crowd.now - self.heard_at
        if self.turn_open and silent > STALLED and self.world.is_fault_free_since(self.heard_at):
            violated(Invariant.ONE_END, f"{self.name} hears nothing of its turn for {silent:.0f} s")
        stuck = self.crowd.now - max(self.heard_at, self.world.shaken)
        failed = self.read and self.world.provider.failed_at >= self.heard_at
        if self.family != AGENT and self.ears.speaking and stuck > STUCK and not failed:
            problem = f"reads, and is told nothing for {stuck:.0f} s in the middle of a response"
            violated(Invariant.ONE_END, f"{self.name} {problem}")

    def check_gone(self, when: float) -> None:
        """Raise a violation: the provider has ended since `when`, and the session is still open.

        Nothing is raised if the network failed since `when`.
        """
        if self.world.shaken < when:
            since = self.crowd.now - when
            violated(Invariant.VOICE_OVER, f"{self.name} is open {since:.0f} s after its provider has gone")

    # --- grants ---

    def _check_grant(self, since: float, what: str) -> None:
        session = self.who.session
        if session is not None and session.lacks(self.grant, self.world.wall, since, self.crowd.now):
            violated(Invariant.VOICE_GRANT, f"{self.name} of {session.prefix} {what}, which holds no {self.grant}")

    def check_open(self, since: float) -> None:
        """Check that the WebSocket was closed if the paired session or grant ended before `since`."""
        session, talker = self.who.session, self._talker
        if session is None or talker is None or talker.began > since:
            return
        if not self.world.is_fault_free_since(since) and not self._is_heard(talker):
            return
        now = self.crowd.now
        if session.is_dead(self.world.wall, since, now):
            violated(Invariant.SOCKETS_ENDED, f"{self.name} is open {now - since:.0f} s after {session.prefix} ended")
        if session.lacks(self.grant, self.world.wall, since, now):
            violated(
                Invariant.VOICE_GRANT, f"{self.name} is open {now - since:.0f} s after its {self.grant} grant ended"
            )

    def _is_heard(self, talker: WebSocketClient) -> bool:
        """Report whether the relay surely receives what this client sends: no fault, restart or set clock."""
        world = self.world
        return (
            world.is_relay_up
            and self.relay is world.relay
            and world.is_unaffected(talker)
            and len(world.wall.steps) == 1
        )
