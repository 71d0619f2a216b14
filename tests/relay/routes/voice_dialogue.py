r"""The voice routes as dialogues: files on the disk, requests, and members of the answers.

    a file that is not there is made
        PATCH realtime/config {"enabled": "off"} -> 200
        kept relay "realtime_voice:\\n  enabled: false\\n"

A request is a method, a path below `/voice/` and a body, usually JSON. Behind the arrow stand the status and then the
comparisons, which `;` separates. `name = JSON` compares a member (`auth.xai_env`, `providers.*.id`), `name has JSON`
its content. `~ words` are in the text of a refusal. The other lines are methods of `Routes` or of a subclass; a line
that makes a new relay comes first.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import yaml

from svc_proto.basics.brand import HERMES
from svc_proto.relay.access import BASIC_PATHS
from svc_proto.voice.provider_interface import ProviderError, SpeechRequest
from tests.relay.routes.voice_harness import AGENT_FILE, RELAY_FILE, WORK, VoiceRoutesHarness, strict, text_of
from tests.support.http_codec import Response
from tests.voice.realtime.dialogue import dialogues, read_dialogues

__all__ = ["Routes", "dialogues", "play", "read_dialogues"]

BARE = "/home/svc/profiles/bare/config.yaml"
FILES = {"agent": AGENT_FILE, "relay": RELAY_FILE, "work": WORK, "bare": BARE, "env": "/home/svc/.env"}


class Routes:
    """Relay on which a dialogue is performed; each public method but `request` is a kind of line."""

    def __init__(self) -> None:
        self.book = VoiceRoutesHarness()
        self.bearer = ""  # replaces the token of a paired phone

    # --- set-up ---

    def hermes(self) -> None:
        """Make a relay of the brand Hermes."""
        self.book = VoiceRoutesHarness(brand=HERMES)

    def options_kept(self, seconds: str) -> None:
        """Make a relay that caches a vendor's offers for this number of seconds."""
        self.book = VoiceRoutesHarness(options_cache=float(seconds))

    def file(self, name: str, value: str) -> None:
        """Write the file for this name in `FILES`, given in YAML."""
        self.book.disk.put(FILES[name], yaml.safe_dump(yaml.safe_load(value)).encode())

    def text(self, name: str, value: str) -> None:
        """Write the file for this name in `FILES`, given as a JSON string."""
        self.book.disk.put(FILES[name], json.loads(value).encode())

    def key(self, name: str, value: str) -> None:
        """Set an environment variable of the relay's host, such as a provider's key."""
        self.book.variables[name] = value

    def local(self) -> None:
        """Make local speech engines available on the relay's host."""
        self.book.scripted_providers.local = True

    def in_trouble(self, *words: str) -> None:
        """Let speech, transcription and discovery fail with the error text `words`."""
        self.book.scripted_providers.problem = ProviderError(" ".join(words))

    def api_bearer(self, bearer: str) -> None:
        """Send this bearer token from now on; the API server answers 200 to all requests."""
        self.bearer, self.book.http = bearer, lambda asked: (200, b"{}")

    # --- comparisons ---

    def kept(self, name: str, value: str) -> None:
        """Require that the text of a file equals this JSON string; null stands for no file."""
        disk, path = self.book.disk, FILES[name]
        assert (disk.get(path).decode() if disk.exists(path) else None) == json.loads(value)

    def section(self, name: str, value: str) -> None:
        """Compare the members of the section `voice_output` of a file with this YAML mapping, in order."""
        found = yaml.safe_load(self.book.disk.get(FILES[name]))["voice_output"]
        assert list(found.items()) == list(yaml.safe_load(value).items())

    def asked(self, count: str) -> None:
        """Require this number of recorded requests to providers."""
        assert len(self.book.scripted_providers.asked) == int(count)

    def spoke(self, *value: str) -> None:
        """Require that one request for speech is recorded, with these fields as JSON, and remove the record."""
        (asked,) = self.book.scripted_providers.asked
        self.book.scripted_providers.asked.clear()
        assert asked == SpeechRequest(**json.loads(" ".join(value)))

    # --- requests ---

    def request(self, method: str, path: str, body: str) -> Response:
        """Send a request of a newly paired phone, or with the token of `api_bearer`, and return the answer.

        A body that is not JSON is sent unchanged.
        """
        token = self.bearer or self.book.pair().token
        given: object = b""
        if body:
            try:
                given = json.loads(body)
            except ValueError:
                given = body.encode()
        return self.book.request(method, f"/voice/{path}", given if body else b"", token=token)


def play(lines: Sequence[str], routes: Routes | None = None) -> Routes:
    """Perform a dialogue line by line, compare each response, and return the `Routes` used."""
    routes = routes or Routes()
    for line in lines:
        kind, _, expected = line.partition(" ->")
        word, _, rest = kind.partition(" ")
        if word.isupper():
            path, _, body = rest.partition(" ")
            answer = routes.request(word, path, body.strip())
            _compare(answer, path, expected.strip(), kind)
        else:
            call: Callable[..., None] = getattr(routes, word)
            call(*(rest.split(" ", 1) if rest else []))
    return routes


def _compare(answer: Response, path: str, expected: str, kind: str) -> None:
    status, _, looks = expected.partition(" ")
    assert answer.status == int(status), (kind, answer)
    plain = answer.status >= 400 and f"/voice/{path.partition('?')[0]}" not in BASIC_PATHS
    sound = (answer.headers.get(b"content-type") or b"").startswith(b"audio/")
    told: Any = text_of(answer, answer.status) if plain else None if sound else answer.json
    if plain:
        assert "{" not in told
    elif answer.status >= 400:
        assert (answer.headers.get(b"content-type"), told["success"]) == (b"application/json", False)
    elif kind.startswith("GET") and not path.startswith("config"):
        strict(told)
    for look in filter(None, map(str.strip, looks.split(";"))):
        if look.startswith("~"):
            assert look[1:].strip() in (told if plain else told["error"]), (kind, told)
            continue
        name, _, wanted = look.partition(" = ")
        if wanted:
            assert _at(told, name.split(".")) == json.loads(wanted), (kind, look, _at(told, name.split(".")))
        else:
            name, _, wanted = look.partition(" has ")
            assert json.loads(wanted) in _at(told, name.split(".")), (kind, look)


def _at(value: Any, names: list[str]) -> Any:
    for place, name in enumerate(names):
        if name == "*":
            return [_at(each, names[place + 1 :]) for each in value]
        if isinstance(value, list):
            value = value[int(name)] if int(name) < len(value) else f"no {name}"
            continue
        value = value.get(name, f"no {name}")
    return value
