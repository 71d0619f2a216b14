"""Voice users of the simulation: texts read aloud, voice tests, and sessions with the realtime agent.

They authenticate with a session's token, or with the API's key, which is accepted from the relay's own host only.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

from fuzz.simulation.actors.actor_context import ActorContext, SignedInDevice, StepHandler, task_of
from fuzz.simulation.actors.voice_session_client import (
    AGENT,
    FAMILIES,
    LAB,
    OUTPUT,
    UNATTENDED,
    VoicePrincipal,
    VoiceSessionClient,
)
from fuzz.simulation.background_scenarios import HOLDS
from fuzz.simulation.deployment import API, API_KEY, LOCAL, REMOTE, VOICES
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.models.reference_model import SessionModel, violated
from fuzz.simulation.servers.speech_server import build_recording
from fuzz.steps import ReadAloud, SaySomething, Step, TalkToAgent
from svc_proto.basics.pcm import wav_head
from svc_proto.wire.multipart import Part, encode_multipart
from tests.support.sim_http import RequestClient

WINDOW = 30.0  # s in which a lost session may be resumed, 4.8
LONGEST = 400.0  # s that a session lasts: 360 s with a run
STAYS = 40.0  # s after which a client without requests closes
END_TIMEOUT = 20.0  # s in which a socket must be closed, on a network without faults
LOSS_TIMEOUT = 20.0  # s in which a session must end after its provider
SOON = 0.01  # s until a cancel after the start of the turn; the longest delay is thirty times as long
STOP_TIMEOUT = 25.0  # s from a cancel to the end of its run
MANNERS = ("plain", "plain", "tool", "ask", "ask", "ask", "hang", "hang", "hang", "refuse", "break")
RATES = (8_000, 8_000, 16_000, 24_000)  # Hz
ALOUD = 0.3  # share of sessions with a native provider that use the microphone
CANCELS = 4  # mood of a client that cancels
# Shares of clients that also have a recording transcribed, or have a text read by a vendor.
DICTATES, READ = 0.1, 0.3
RUN_OVER = ("completed", "failed", "cancelled")


class VoiceUsers:
    """Steps of the voice users."""

    def __init__(self, crowd: ActorContext) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self.lines: list[VoiceSessionClient] = []
        self.handlers: dict[type[Step], StepHandler] = {
            ReadAloud: self._speak,
            TalkToAgent: self._talk,
            SaySomething: self._send_line,
        }
        crowd.listeners.append(self._ordered)

    # --- steps ---

    def _speak(self, step: ReadAloud) -> None:
        who = self._who(step.speaker)
        kind, mood = step.manner % 3, step.manner // 3
        rate = {"sample_rate": RATES[mood % len(RATES)]}
        body: dict[str, object] = {"provider": "stub", **rate}
        family = LAB if kind == 2 else OUTPUT

        def made(line: VoiceSessionClient) -> None:
            line.dawdles = step.seconds if step.speaker < 0 else 0.0
            self._behave(line, mood // 4 % 8, step.seconds)

        if who is None:
            return
        self.create_session(who, family, body, made)
        chance = _chance(step) if step.manner not in HOLDS else 1.0  # those test the session limit
        if chance < DICTATES:
            self._dictate(who)
        elif chance < READ:
            self.create_session(who, family, {"provider": "openai_tts", **rate}, made)

    def _talk(self, step: TalkToAgent) -> None:
        who = self._who(step.speaker)
        if who is None:
            return
        manner, mood = MANNERS[step.manner % len(MANNERS)], step.manner >> 9
        body: dict[str, object] = {"provider": "stub", "sample_rate": RATES[0]}
        if step.manner >> 8 & 1:
            body = {"provider": "openai_realtime"}

        def made(line: VoiceSessionClient) -> None:
            line.manner = manner
            line.speaks_up = line.native and _chance(step) < ALOUD
            self._behave(line, CANCELS if manner == "hang" and mood % 8 > 2 else mood % 8, step.seconds)

        self.create_session(who, AGENT, body, made)

    def _send_line(self, step: SaySomething) -> None:
        lines = [line for line in self.lines if line.attached]
        if lines:
            lines[step.voice_session % len(lines)].say_something()

    def _who(self, number: int) -> VoicePrincipal | None:
        """Return a principal: a session, or the API's key from the home or another host."""
        if number % 6 == 5:
            return VoicePrincipal(self.world.home, LOCAL, API_KEY, None)
        if number % 13 == 12:
            return VoicePrincipal(self.world.devices[0], REMOTE, API_KEY, None)
        if not self.crowd.sessions:
            return None
        session = self.crowd.pick_session(number)
        return VoicePrincipal(self.world.sim.hosts[session.owner], REMOTE, session.token, session)

    def _dictate(self, who: VoicePrincipal) -> None:
        """Have a recording transcribed. Its file must be deleted: `fuzz.simulation.leak_check`."""
        world, sent, number = self.world, self.crowd.now, self.crowd.next_number()
        sound = build_recording(number)

        def done(caller: RequestClient) -> None:
            status = caller.status
            if who.session is not None and status != 500:
                self.crowd.on_grant_denied(who.session, status, "voice:stt", sent)
            if status == 200:
                world.count("recordings understood")
                if caller.answer.json["text"] != f"voice {number}":
                    violated(Invariant.OWN_BYTES, f"recording {number} is {caller.answer.body!r:.200}")
            elif status == 500 and world.is_fault_free_since(sent) and world.provider.failed_at < sent:
                violated(Invariant.STATUS, f"a recording: {caller.answer.body!r:.200}")

        form = Part(name="audio", data=wav_head(len(sound), 24_000) + sound, content_type="audio/wav")
        headers = {"authorization": f"Bearer {who.token}", "content-type": "multipart/form-data; boundary=voice"}
        data = encode_multipart([form], "voice")
        world.request(who.host, who.target, "POST", "/voice/transcribe", headers=headers, body=data, done=done)

    # --- sessions ---

    def create_session(
        self, who: VoicePrincipal, family: str, body: dict[str, object], made: Callable[[VoiceSessionClient], None]
    ) -> None:
        """Request a session, and call `made` with it."""
        world, sent = self.world, self.crowd.now
        grant = FAMILIES[family]

        def done(caller: RequestClient) -> None:
            self._judge(who, grant, caller, sent)
            if caller.status == 503:
                self._check_full(who, family, sent)
            if caller.status != 200:
                return
            world.count(f"{family} sessions")
            answer = caller.answer.json
            if "resume_token" in answer:
                world.secrets[answer["resume_token"]] = "a resume token"
            self._check_room(who, family, sent)
            line = VoiceSessionClient(self.crowd, who, family, answer, self.lines)
            self.lines.append(line)
            made(line)

        headers, path = {"authorization": f"Bearer {who.token}"}, f"/voice/{family}/session"
        world.request(who.host, who.target, "POST", path, headers=headers, body=body, done=done)

    def _judge(self, who: VoicePrincipal, grant: str, caller: RequestClient, sent: float) -> None:
        session, status = who.session, caller.status
        if status in (0, 503, 408):
            return
        if session is None:
            if who.target is REMOTE and status != 403:
                violated(Invariant.VOICE_BEARER, f"the API's key got {status} from elsewhere")
            if who.target is LOCAL and status not in (200, 401):
                violated(Invariant.VOICE_BEARER, f"the API's key got {status} from this host")
            return
        if status == 200 and session.lacks(grant, self.world.wall, sent, self.crowd.now):
            violated(Invariant.VOICE_GRANT, f"{session.prefix} got a session without {grant}")
        self.crowd.on_grant_denied(session, status, grant, sent)
        if status not in (200, 401, 403):
            violated(Invariant.STATUS, f"a voice session: {status} {caller.answer.body!r:.200}")

    def _check_room(self, who: VoicePrincipal, family: str, sent: float) -> None:
        """Check that the limits permitted one more session. Only sessions of the same caller are displaced."""
        there = [line for line in self.lines if line.family == family and line.surely_there(sent)]
        own = [line for line in there if line.who.caller == who.caller]
        used = [line for line in own if line.attached]
        most, of_one = VOICES
        if len(used) >= of_one or (len(there) >= most and not own):
            violated(
                Invariant.VOICE_ROOM, f"one more {family} beside {len(there)}, {len(used)} of them one's own in use"
            )

    def _check_full(self, who: VoicePrincipal, family: str, sent: float) -> None:
        """Check that a refusal was possible: there may have been as many sessions as the limit."""
        recent = [line for line in self.lines if line.family == family and line.made > sent - LONGEST]
        own = [line for line in recent if line.who.caller == who.caller]
        most, of_one = VOICES
        if len(recent) < most and len(own) < of_one and self.world.is_fault_free_since(sent - LONGEST):
            violated(Invariant.VOICE_ROOM, f"no room for a session of {family}, and {len(recent)} are there at most")

    def _behave(self, line: VoiceSessionClient, mood: int, amount: float) -> None:
        world = self.world
        if mood == 0:  # the client never connects
            world.sim.after(UNATTENDED + 5.0, lambda: self._comes_too_late(line, "no client attached for 120 s"))
            return
        line.open()
        line.say_something()
        match mood:
            case 1:
                world.sim.after(amount / 3, lambda: self._closes(line))
            case 2:
                world.sim.after(amount / 3, lambda: self._is_lost(line, back=amount))
            case 3:
                world.sim.after(amount / 8, lambda: self._is_lost(line, back=WINDOW + 15.0))
            case 4:  # CANCELS
                world.sim.after(0.5 + amount, lambda: self._cancels(line))
            case 5:  # as soon as the turn has begun, before its id is known
                line.on_taken = lambda: world.sim.after(SOON * amount**3, lambda: self._cancels(line))
            case _:
                line.doubles = mood == 7
        world.sim.after(STAYS * (3 if line.native else 1), lambda: self._closes(line))

    # --- reactions ---

    def _closes(self, line: VoiceSessionClient) -> None:
        """Close with 1000, after which the session cannot be resumed."""
        if line.attached and line.close():
            now = self.crowd.now
            self.world.sim.after(10.0, lambda: self._comes_too_late(line, "it was closed with 1000", now))

    def _comes_too_late(self, line: VoiceSessionClient, why: str, since: float | None = None) -> None:
        if since is not None and (line.family == LAB or line.native):
            return  # a realtime session may be opened again, and a run of a native session keeps it
        if since is not None and not self.world.is_fault_free_since(since):
            return  # the close may not have arrived
        line.open(over=why)

    def _is_lost(self, line: VoiceSessionClient, back: float) -> None:
        if not line.attached:
            return
        line.vanish()
        if line.family == LAB:
            return
        began = self.crowd.now
        if line.family == AGENT and not line.native:  # a session of the stub ends with its WebSocket
            self.world.sim.after(60.0, lambda: self._comes_too_late(line, "its socket was lost", began))
        elif back > WINDOW:
            self.world.sim.after(back + 60.0, lambda: self._comes_too_late(line, "its window is over", began))
        else:
            self.world.sim.after(back, lambda: line.open(again=True))

    def _cancels(self, line: VoiceSessionClient) -> None:
        if line.family != AGENT or not line.attached or not (line.ears.speaking or line.turn_open):
            return
        line.cancel()
        sent, text, run_id = self.crowd.now, line.asked_last, line.run_id
        hangs = line.manner == "hang" and not line.answered
        if hangs:
            self.world.sim.after(STOP_TIMEOUT, lambda: self._check_unasked(line, text, sent))
        if run_id:
            self.world.sim.after(STOP_TIMEOUT, lambda: self._check_stopped(run_id, sent, hangs=hangs))

    def _check_unasked(self, line: VoiceSessionClient, text: str, sent: float) -> None:
        asked = any(text in question for question in self.world.upstream.questions)
        if text and asked and self.world.is_fault_free_since(sent):
            violated(Invariant.CANCELLED, f"the model still works on {text!r}, which {line.name} has cancelled")

    def _check_stopped(self, run_id: str, sent: float, *, hangs: bool) -> None:
        def done(caller: RequestClient) -> None:
            if caller.status != 200 or not self.world.is_fault_free_since(sent):
                return
            status = caller.answer.json["status"]
            self.world.count("runs cancelled by voice")
            if status not in RUN_OVER or (hangs and status != "cancelled"):
                violated(Invariant.CANCELLED, f"{run_id} is {status} {STOP_TIMEOUT:.0f} s after it was cancelled")

        headers = {"authorization": f"Bearer {API_KEY}"}
        self.world.request(self.world.home, API, "GET", f"/v1/runs/{run_id}", headers=headers, done=done)

    # --- checks ---

    def check_invariants(self) -> None:
        """Check that no socket outlives its session, grant or provider, and that no turn stalls."""
        since = self.crowd.now - END_TIMEOUT
        for line in self.lines:
            if line.attached:
                line.check_open(since)
                line.check_stalled()
        self._look_at_lost()

    def _look_at_lost(self) -> None:
        """Check that each session ends with its provider."""
        lost, now = self.world.provider.lost, self.crowd.now
        while lost and lost[0][0] + LOSS_TIMEOUT <= now:
            when, numbers = lost.pop(0)
            for line in self.lines:
                if line.attached and any(number in line.ears.numbers for number in numbers):
                    line.check_gone(when)

    def _ordered(self, device: SignedInDevice, message: dict[str, Any]) -> None:
        """Check that a phone receives a command that needs approval only after the approval."""
        payload = message.get("payload", {})
        if message.get("type") != "bridge.command" or payload.get("path") != "/send_sms":
            return
        task = str((payload.get("body") or {}).get("body"))
        self.crowd.check_allowed(task_of(task), device.name)

    # --- after the script ---

    def begin(
        self, session: SessionModel, family: str, provider: str, made: Callable[[VoiceSessionClient], None]
    ) -> None:
        """Create a session, and request a response."""

        def speak(line: VoiceSessionClient) -> None:
            line.open()
            line.say_something()
            made(line)

        rate = {"sample_rate": RATES[0]} if provider == "stub" else {}
        who = VoicePrincipal(self.world.sim.hosts[session.owner], REMOTE, session.token, session)
        self.create_session(who, family, {"provider": provider, **rate}, speak)

    def check_logs(self) -> None:
        """Check that all reported events are logged in order, unless the relay gave the file up or was killed."""
        world, disk = self.world, self.world.home.disk
        warned = any(line.event == "voice file given up" for program in world.home.processes for line in program.logs)
        for line in self.lines:
            if line.family == LAB or not disk.exists(line.log_path):
                continue  # events of a realtime session have no number
            lines = map(json.loads, disk.get(line.log_path).decode().splitlines())
            kept = [event["event_id"] for event in lines if "event_id" in event]
            if any(later <= earlier for earlier, later in pairwise(kept)):
                violated(Invariant.STORED, f"the log of {line.name} is out of order: {kept}")
            missing = line.ears.event_numbers.difference(kept)
            if missing and not warned and not world.outages:
                violated(Invariant.STORED, f"{line.name} was told {sorted(missing)}, and its log knows nothing of that")
            world.count("voice logs")

    def check_ended(self) -> None:
        """Check that no turn is open once all runs have ended."""
        for line in self.lines:
            if line.attached and line.turn_open:
                violated(Invariant.ONE_END, f"{line.name} has not ended, though its run has")


def _chance(step: ReadAloud | TalkToAgent) -> float:
    """Return a random number that depends on the step only, so other random numbers do not change."""
    return Random(f"{step.at} {step.speaker} {step.manner}").random()
