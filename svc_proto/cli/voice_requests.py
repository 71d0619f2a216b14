"""Requests of a desktop to a relay's voice routes: a recording to text, a text to a file, the configuration."""

from collections.abc import Mapping
from urllib.parse import urlencode

from attrs import field, frozen

from svc_proto.cli.error_text import PAIRED, sanitize_line, with_explanation
from svc_proto.cli.errors import USAGE_ERROR, CliError
from svc_proto.cli.one_shot_service import announce_progress
from svc_proto.commands import Notify
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.wire.limits import MAX_TEXT
from svc_proto.wire.multipart import Part

__all__ = ["MAX_RECORDING", "RecordingFile", "config_rows", "save_speech", "transcribe", "fetch_voice_config"]

MAX_RECORDING = 25 * 1024 * 1024  # bytes, wire terminal-voice 3.3
LISTEN_TIMEOUT = 900.0  # s: the relay's own engine takes up to 600 s, after the requests before it
SPEAK_TIMEOUT = 180.0  # s
KINDS = {  # by file name suffix; any other is taken for WAV
    **{name: f"audio/{name}" for name in ("wav", "webm", "ogg", "mp4", "flac", "aac")},
    "opus": "audio/ogg",
    "m4a": "audio/mp4",
    "mp3": "audio/mpeg",
}
SUFFIXES = {"audio/mpeg": "mp3", "audio/wav": "wav", "audio/ogg": "ogg", "audio/flac": "flac"}


@frozen
class RecordingFile:
    """A recording; its content type follows from the suffix of `name`."""

    name: str
    data: bytes = field(repr=False)

    @property
    def content_type(self) -> str:
        """Content type by the suffix of the name; `audio/wav` for an unknown one."""
        return KINDS.get(self.name.rpartition(".")[2].lower(), "audio/wav")


def transcribe(
    engine: Engine, relay: RelayClient, upload: RecordingFile, profile: str | None = None
) -> Flow[tuple[str, str | None]]:
    """Transcribe a recording; return its text, and the engine's name if the relay names it.

    Raises `CliError`, and `ServiceCallError` for a response that is no JSON object.
    """
    size = len(upload.data)
    if not size:
        raise CliError(f"{upload.name} is empty", code=USAGE_ERROR)
    if size > MAX_RECORDING:
        raise CliError(f"{upload.name} has more than the {MAX_RECORDING} bytes that the relay takes", code=USAGE_ERROR)
    announce_progress(engine, f"the relay listens to {upload.name} ({size / 1e6:.1f} MB)")
    part = Part(name="audio", filename="voice", content_type=upload.content_type, data=upload.data)
    sent = relay.upload(engine, f"/voice/transcribe{_query(profile)}", part, within=LISTEN_TIMEOUT)
    value = relay.json_object((yield from with_explanation(sent, PAIRED)))
    text = value.string("text")
    if text is None:
        raise CliError(f"{relay.name} gave no text")
    return text, value.text("provider") or None


def save_speech(
    engine: Engine,
    relay: RelayClient,
    text: str,
    *,
    profile: str | None = None,
    choice: Mapping[str, str] | None = None,
) -> Flow[str]:
    """Synthesize a text; emit the file as `Notify("piece", {"data", "name"})` and return its content type.

    Raises `CliError`.
    """
    if not text.strip():
        raise CliError("the text is empty", code=USAGE_ERROR)
    if len(text.strip()) > MAX_TEXT:
        raise CliError(f"the text has more than {MAX_TEXT} characters", code=USAGE_ERROR)
    announce_progress(engine, "the relay speaks")
    body = {"text": text, **(choice or {}), **({"profile": profile} if profile else {})}
    asked = relay.success(relay.request(engine, "POST", "/voice/synthesize", body, within=SPEAK_TIMEOUT))
    whole = yield from with_explanation(asked, PAIRED)
    if not whole.body:
        raise CliError(f"{relay.name} gave no sound")
    kind = sanitize_line((whole.headers.get(b"content-type") or b"").decode("latin-1")).partition(";")[0]
    engine.emit(Notify("piece", {"data": whole.body, "name": f"speech.{SUFFIXES.get(kind, 'bin')}"}))
    return kind


def fetch_voice_config(engine: Engine, relay: RelayClient, profile: str | None = None) -> Flow[JsonObject]:
    """Return the result of `GET /voice/config` (wire terminal-voice 3.1). Raises `ServiceCallError`."""
    return (yield from relay.json(engine, "GET", f"/voice/config{_query(profile)}"))


def config_rows(config: JsonObject) -> list[tuple[str, ...]]:
    """Return the voice configuration as rows of name and value, for people."""
    rows: list[tuple[str, ...]] = []
    for key, name in (("tts", "speaks"), ("stt", "listens")):
        engine = config.get_object(key)
        provider = sanitize_line(engine.text("provider")) or "nothing"
        parts = [provider, sanitize_line(engine.text("model")), sanitize_line(engine.text("voice"))]
        shown = ", ".join(part for part in parts if part)
        rows.append((name, shown if engine.get("enabled") is True else f"{shown} (off)"))
    scope = sanitize_line(config.text("config_scope")) or "global"
    settings = f"{scope} {sanitize_line(config.text('config_path'))}".strip()
    if config.get("fallback_to_global") is True:  # a mistyped name looks the same
        settings += ", since the profile says nothing of speech, or is not there"
    rows.append(("settings", settings))
    if missing := config.get_object("requirements").array("missing_packages"):
        rows.append(("not installed", sanitize_line(", ".join(str(name) for name in missing))))
    return rows


def _query(profile: str | None) -> str:
    return f"?{urlencode({'profile': profile})}" if profile else ""
