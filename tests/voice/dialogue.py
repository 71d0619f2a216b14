"""Voice sessions as dialogues: the steps of clients and providers, and all events that follow.

    a wrong token
        create provider=openai_tts
        A comes
        A puts response.create text=Hello
        A leaves
        B comes                        -> nothing
        B puts session.resume resume_token=guess
            -> session.resume_failed(reason=invalid_resume_token) closed(code=4003)
        are 1

`tests.voice.realtime.dialogue` has the grammar of the lines. A step is a method of `DialogueRun` or a name of `WAYS`.
Behind the arrow stand all events that arrive, client by client, without the prefix `voice.`.
`closed` means that the relay closed the socket, `refused` that it refused the step.
Clients are letters. Events of another client than the one of the line, or than A if the line names none, have their
client's letter before them: `A:closed(code=4000)`. Without an arrow nothing is compared. In steps, values are JSON if
they can be parsed, and `$token` is the resume token.
"""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from attrs import evolve

from svc_proto.basics.brand import HERMES
from svc_proto.basics.errors import Refused
from svc_proto.commands import AppendFile, SweepFolder
from svc_proto.voice.principal import Principal
from svc_proto.voice.provider_interface import AudioChunk, ProviderError
from svc_proto.voice.realtime.actions import ConversationAction, Emit
from svc_proto.voice.session import MAX_DELTA
from tests.voice.harness import CONFIG, OTHER, OWN, PHONE, SOUND, VoiceHarness, VoiceTestClient, queue_samples
from tests.voice.realtime.dialogue import play, read_dialogues

__all__ = ["DialogueRun", "play", "read_dialogues"]

WAYS = {
    "spoken": "create provider=openai_tts; A comes; A puts response.create text=Hello",
    "lab": "create lab provider=openai_tts; A comes",
}
PEOPLE = {"phone": PHONE, "other": OTHER, "again": evolve(PHONE, bearer_hash="c" * 64)}
MOVES: dict[str, AudioChunk | None] = {
    "sound": SOUND,
    "half": AudioChunk(b"\x01", 24_000),
    "large": AudioChunk(bytes(MAX_DELTA), 24_000),
    "end": None,
}


class DialogueRun:
    """Interpreter of written dialogues on a voice harness; `family` is the session manager of the last `create`."""

    def __init__(self, rig: VoiceHarness | None = None) -> None:
        self.rig = rig or VoiceHarness()
        self.family: Any = self.rig.output
        self.answer: dict[str, Any] = {}
        self.clients: dict[str, VoiceTestClient] = {}
        self.heard: list[dict[str, Any]] = []  # events of the last line
        self._closed: set[str] = set()

    def do(self, line: str) -> list[ConversationAction]:
        """Perform one line and return its events or refusal; for a name of `WAYS`, perform its lines and return []."""
        words = shlex.split(line)
        if line in WAYS:
            for step in WAYS[line].split("; "):
                self.do(step)
            return []
        self.new_events()
        try:
            if words[0] in self.clients or words[1:2] == ["comes"]:
                self._client(*words)
            else:
                getattr(self, words[0])(*words[1:])
        except Refused as refused:
            return [Emit("refused", {"status": refused.status, "code": refused.code})]
        told = self.new_events()
        self.heard = [event for _, event in told]
        here = words[0] if words[0] in self.clients else "A"
        return [_order(event, "" if who == here else f"{who}:") for who, event in told]

    def new_events(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the new events of all clients, client by client, and once `closed` if the relay closed the socket."""
        found = []
        for name, client in self.clients.items():
            found += [(name, event) for event in client.events()]
            if client.closed is not None and name not in self._closed:
                self._closed.add(name)
                found.append((name, {"type": "closed", "code": client.closed, "reason": client.reason}))
        return found

    def _client(self, name: str, verb: str, *words: str) -> None:
        if verb == "comes":
            who: Principal = PEOPLE[words[0] if words else "phone"]
            self._closed.discard(name)
            self.clients[name] = self.rig.attach(self.family, self.answer, who)
            return
        client = self.clients[name]
        match verb:
            case "puts":
                client.send_event(words[0], **self._fields(words[1:]))
            case "sends":
                client.send(words[0])
            case "sends_bytes":
                client.send_binary(b"\x00")
            case "leaves":
                client.disconnect(int(words[0]) if words else 1006)
            case "stops_reading":
                client.writable = False
            case "reads":
                client.read()
            case _:
                raise AssertionError(verb)

    # --- steps ---

    def brand(self) -> None:
        """Start again with a voice service of the brand Hermes."""
        self.__init__(VoiceHarness(config=evolve(CONFIG, brand=HERMES)))  # type: ignore[misc]  # starts again

    def create(self, *words: str) -> None:
        """Create a speech session, or one of the `lab`, for a name of `PEOPLE`, by default for the phone."""
        family = words[0] if words[:1] == ("lab",) else "output"
        rest = words[1:] if words[:1] == ("lab",) else words
        who = PEOPLE[rest[0] if rest and rest[0] in PEOPLE else "phone"]
        self.family = getattr(self.rig, family)
        self.answer = self.rig.create(self.family, who, **self._fields([word for word in rest if "=" in word]))

    def forget(self) -> None:
        """Replace the session id by an unknown one."""
        self.answer = {"session_id": "none"}

    def speaks(self, *moves: str) -> None:
        """Queue `moves` of the scripted renderer; a word that is no move is the code of an error."""
        queue_samples(self.rig, *(MOVES[move] if move in MOVES else ProviderError(move) for move in moves))

    def after(self, seconds: str) -> None:
        """Let this number of seconds pass."""
        self.rig.after(float(seconds))

    def disk_full(self) -> None:
        """Refuse all appends to files and all sweeps of folders from now on."""
        self.rig.refuse = (AppendFile, SweepFolder)

    def stop(self) -> None:
        """Stop the session manager, as at the end of the process."""
        self.rig.within(self.family.stop)

    def revoke(self, who: str = "phone") -> None:
        """Revoke the bearer token of a principal in the current session manager."""
        self.rig.within(lambda: self.family.revoke_bearer(PEOPLE[who].bearer_hash, "revoked"))

    def set(self, section: str, *words: str) -> None:
        """Replace the relay's own settings by these of one section."""
        self.rig.write(OWN, {section: self._fields(words)})

    # --- comparisons ---

    def are(self, count: str, *states: str) -> None:
        """Require this number of sessions in the current manager and, if given, exactly these states."""
        found = [session.life.state.value for session in self.family.sessions()]
        assert (len(found), found if states else []) == (int(count), list(states))

    def rests(self) -> None:
        """Require that no timer is set."""
        assert self.rig.engine.next_deadline() is None

    def scripted(self, *words: str) -> None:
        """Require these attribute values of the scripted renderer, such as `taken=3` or `stopped=true`."""
        for name, value in self._fields(words).items():
            assert getattr(self.rig.scripted, name) == value, name

    def log(self, *last: str) -> None:
        """Require events of these types at the end of the event log."""
        found = [line["type"].removeprefix("voice.") for line in self.rig.log(self.answer)]
        assert found[-len(last) :] == list(last)

    def reason(self, why: str) -> None:
        """Require this reason in the last event of the log."""
        assert self.rig.log(self.answer)[-1]["reason"] == why

    def _fields(self, words: Any) -> dict[str, Any]:
        pairs = (word.partition("=") for word in words)
        return {name: self.answer["resume_token"] if value == "$token" else _value(value) for name, _, value in pairs}


def _value(word: str) -> object:
    try:
        return json.loads(word)
    except ValueError:
        return word


def _order(event: Mapping[str, Any], whose: str) -> ConversationAction:
    """Return an event as an action, in the form in which dialogues compare it."""
    odd = (bool, float, list, dict)
    fields = {name: json.dumps(value) if isinstance(value, odd) else value for name, value in event.items()}
    return Emit(whose + event["type"].removeprefix("voice."), fields)
