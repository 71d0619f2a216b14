"""Voice for the phone's app: recordings and texts go to the relay's voice routes, with the API key if there is one."""

import re
from base64 import b64encode

from svc_proto.basics.errors import Refused
from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.ports import DashboardPort
from svc_proto.dashboard.speech_stream import SpeechStream
from svc_proto.dashboard.upstream import PRIVATE
from svc_proto.dashboard.validation import parse_body
from svc_proto.engine.client_channel import HttpResult
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response, json_response
from svc_proto.engine.router import Route, RouteKind
from svc_proto.schema.json_object import JsonObject, error_text, json_value
from svc_proto.service_clients.local_api import local_api_key
from svc_proto.service_clients.service_client import ServiceCallError, ServiceClient
from svc_proto.wire.multipart import Part

__all__ = ["routes"]

TRANSCRIBE, SPEAK = "/voice/transcribe", "/voice/synthesize"  # of the relay, wire terminal-voice 3
VOICE_TIMEOUT = 120.0  # s; the app waits 180 s
MAX_SOUND = 25 * 1024 * 1024  # bytes of a recording
MAX_BODY = MAX_SOUND * 4 // 3 + 64 * 1024  # bytes, in base64
KINDS = {"audio/mp4": "m4a", "audio/m4a": "m4a", "audio/x-m4a": "m4a", "audio/mpeg": "mp3"}
_TYPE = re.compile(r"audio/[a-z0-9.+-]{1,40}")
NO_KEY = "none"
NO_VOICES = {"available": False, "voices": list[str]()}


def routes(dashboard: DashboardPort) -> list[Route]:
    """Return the routes of transcription and speech for the phone's app."""
    view = _AppAudio(dashboard)
    owner = DashboardAccess.OWNER
    return [
        Route(
            method="POST", pattern="/api/audio/transcribe", access=owner, handler=view.transcribe, body_limit=MAX_BODY
        ),
        Route(method="POST", pattern="/api/audio/speak", access=owner, handler=view.speak),
        Route(
            method="GET",
            pattern="/api/audio/speak-stream",
            access=DashboardAccess.TICKET,
            handler=view.stream,
            kind=RouteKind.WEBSOCKET,
        ),
        Route(method="GET", pattern="/api/audio/elevenlabs/voices", access=owner, handler=_list_no_voices),
    ]


class _AppAudio:
    def __init__(self, dashboard: DashboardPort) -> None:
        self._dashboard = dashboard
        config = dashboard.config

        def find(known: str) -> Flow[str]:
            return local_api_key(dashboard.engine, config.relay.config_path, config.relay.home, known)

        # The relay's voice routes take the API server's key; without one they take any from this host.
        key, find_key = config.api_key or NO_KEY, find if config.api_key else None
        self._relay = ServiceClient("relay", config.relay_url, key, VOICE_TIMEOUT, find_token=find_key)

    def transcribe(self, request: Request) -> Flow[Response]:
        """Have a recording transcribed by the relay, and return its text."""
        body = parse_body(request)
        head, _, content = body.text("data_url").partition(",")
        kind = (body.text("mime_type") or head.removeprefix("data:")).partition(";")[0].strip().lower()
        sound = JsonObject(sound=content).binary("sound")
        if not head.startswith("data:") or not sound or not _TYPE.fullmatch(kind):
            raise Refused(400, "invalid", "data_url must be a recording in base64")
        if len(sound) > MAX_SOUND:
            raise Refused(413, "too_large", f"a recording may have {MAX_SOUND // (1024 * 1024)} MB")
        suffix = KINDS.get(kind, kind.rpartition("/")[2].removeprefix("x-"))
        part = Part(name="file", data=sound, filename=f"recording.{suffix}", content_type=kind)
        answer = yield from self._result(
            self._relay.upload(self._dashboard.engine, TRANSCRIBE, part, within=VOICE_TIMEOUT)
        )
        return json_response(200, {"ok": True, "transcript": answer.members.text("text")}, (PRIVATE,))

    def speak(self, request: Request) -> Flow[Response]:
        """Have a text synthesized by the relay, and return the sound."""
        text = parse_body(request).text("text")
        call = self._relay.request(self._dashboard.engine, "POST", SPEAK, JsonObject(text=text))
        answer = yield from self._result(self._relay.success(call))
        kind = (answer.headers.get(b"content-type") or b"audio/mpeg").decode("latin-1")
        url = f"data:{kind};base64,{b64encode(answer.body).decode('ascii')}"
        return json_response(200, {"ok": True, "data_url": url, "mime_type": kind}, (PRIVATE,))

    def stream(self, request: Request) -> SpeechStream:
        """Return the handler of a WebSocket on which the relay renders a growing text as speech."""
        return SpeechStream(self._dashboard.engine, self._relay, request.credential_id)

    def _result(self, call: Flow[HttpResult]) -> Flow[HttpResult]:
        """Wait for a call of the relay, and return its answer if it succeeded.

        Raises `Refused` with the relay's status and its text, if it has one. The status is 502 in place of 401, 403 and
        404, and if the relay cannot be reached.
        """
        try:
            return (yield from call)
        except ServiceCallError as error:
            if error.answer is None:
                raise Refused(502, "unreachable", f"the relay cannot be reached: {error.why}") from None
            words = error_text(json_value(error.answer.body)) or f"the relay answered {error.status}"
            status = 502 if error.status in (401, 403, 404) else error.status
            raise Refused(status, "voice_refused", words) from None


def _list_no_voices(request: Request) -> Response:
    return json_response(200, NO_VOICES, (PRIVATE,))
