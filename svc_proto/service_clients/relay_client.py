"""Client of this system's relay over HTTP (wire core 2, 7, 8; terminal-voice 3, 6)."""

from collections.abc import Mapping
from urllib.parse import urlencode

from attrs import define

from svc_proto.basics.entropy import new_code
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.service_client import ServiceCallError, ServiceClient, ServiceFault
from svc_proto.wire.multipart import Part
from svc_proto.wire.urls import encode_segment

__all__ = ["RelayClient"]


@define(eq=False)
class RelayClient(ServiceClient):
    """Client of the relay. A call that fails raises `ServiceCallError`."""

    def health(self, engine: Engine, *, within: float) -> Flow[JsonObject]:
        """Return the relay's health report, with its version. Raises `ServiceCallError` if it is not healthy."""
        answer = yield from self.request(engine, "GET", "/health", within=within)
        found = self.json_object(answer)
        if answer.status != 200 or found.get("status") != "ok":
            raise ServiceCallError(self, ServiceFault.SERVER_ERROR, answer)
        return found

    def new_code(
        self, engine: Engine, *, within: float, grants: Mapping[str, object] | None = None, audience: str = ""
    ) -> Flow[str]:
        """Create a pairing code on the relay's own host, with these grants and this audience, if any; return it."""
        if grants is not None or audience:
            code = new_code(engine.entropy)
            terms = {"code": code, "grants": grants, "audience": audience}
            asked = self.request(engine, "POST", "/pairing/register", terms, within=within)
            yield from self.success(asked)
            return code
        answer = yield from self.success(self.request(engine, "POST", "/pairing", fields=(), within=within))
        code = answer.members.text("code")
        if not code:
            raise ServiceCallError(self, ServiceFault.UNAVAILABLE, answer, lacks="pairing code")
        return code

    def upload_file(self, engine: Engine, part: Part, *, within: float) -> Flow[str]:
        """Upload a file to the relay; return its token (wire core 6.2)."""
        answer = yield from self.upload(engine, "/media/upload", part, within=within)
        token = answer.members.text("token")
        if not token:
            raise ServiceCallError(self, ServiceFault.UNAVAILABLE, answer, lacks="token")
        return token

    def sessions(self, engine: Engine) -> Flow[list[JsonObject]]:
        """Return the paired devices, as the relay lists them, from all pages of the list."""
        answer = yield from self.json(engine, "GET", "/sessions")
        found = answer.objects("sessions")
        while cursor := answer.text("next_cursor"):
            answer = yield from self.json(engine, "GET", f"/sessions?{urlencode({'cursor': cursor})}")
            found += answer.objects("sessions")
        return found

    def revoke(self, engine: Engine, prefix: str) -> Flow[JsonObject]:
        """End the one session whose token begins with the prefix; return the relay's answer, or one for status 204."""
        answer = self.check((yield from self.request(engine, "DELETE", f"/sessions/{encode_segment(prefix)}")))
        if answer.status == 204:
            return JsonObject({"ok": True, "revoked": prefix[:8], "revoked_self": False})
        return self.json_object(answer)

    def voice_session(self, engine: Engine, wish: Mapping[str, object], *, within: float | None = None) -> Flow[str]:
        """Create a session of the realtime agent with these options; return the path of its socket."""
        asked = self.request(engine, "POST", "/voice/realtime-agent/session", wish, within=within)
        answer = yield from self.success(asked)
        path = answer.members.text("websocket_path")
        if not path.startswith("/"):
            raise ServiceCallError(self, ServiceFault.UNAVAILABLE, answer, lacks="voice session")
        return path
