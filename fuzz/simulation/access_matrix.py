"""Access matrix: which client reaches which route and which message channel of the WebSocket.

A row is an access policy with its routes, a column is a client kind. A cell is the result: `in` (the route is reached),
or the status of the refusal. In rows of message channels, `auth` accepts `system/auth` only, and `grant` reports a
missing grant.
"""

from collections.abc import Mapping

from svc_proto.schema.device_control_routes import DEVICE_CONTROL

IN, AUTH, GRANT = "in", "auth", "grant"
CLIENT_KINDS = (
    *("program", "stranger", "lan_page", "local_page", "other_user", "proxy"),
    *("poor_phone", "rich_phone", "revoked"),
)

RELAY_ACCESS: dict[str, tuple[str, str]] = {
    # access policy: (result for each of CLIENT_KINDS, in order; the routes)
    "every caller": (
        "in   in   in   in   in   in   in   in   in",
        """GET /health, GET /healthz, GET /readyz, GET /.well-known/oauth-protected-resource,
        GET /.well-known/oauth-protected-resource/mcp, GET /.well-known/oauth-authorization-server,
        GET /.well-known/openid-configuration, POST /oauth/register, GET /oauth/authorize, GET /oauth/wait/{ticket},
        POST /oauth/token, POST /oauth/revoke""",
    ),
    "every caller but pages": ("in   in   403  403  in   in   in   in   in", "GET /ws, GET /"),
    "programs of this host": (
        "in   403  403  403  403  403  403  403  403",
        """GET /relay/security, PATCH /relay/security, GET /bridge/status, GET /bridge/activity,
        GET /audit, GET /bridge/devices, POST /bridge/select-active, POST /pairing, POST /pairing/register,
        POST /pairing/approve, POST /pairing/mint, POST /media/register, GET /media/inspect, GET /media/inspect/{token},
        GET /metrics, GET /mcp/questions/{code}, POST /mcp/questions/{code}, POST /phone/message, GET /phone/replies,
        GET /phone/outbound, DELETE /phone/outbound""",
    ),
    "this host, or a session": (
        "in   401  401  401  401  401  in   in   401",
        """GET /sessions, DELETE /sessions/{token_prefix}, PATCH /sessions/{token_prefix}, GET /openapi.json,
        GET /docs, GET /relay/info""",
    ),
    "this host, or a session with notifications": (
        "in   401  401  401  401  401  403  in   401",
        "GET /notifications/recent, GET /phone/threads",
    ),
    "a session": ("401  401  401  401  401  401  in   in   401", "GET /media/{token}"),
    "a session with files": (
        "401  401  401  401  401  401  403  in   401",
        "POST /media/upload, GET /media/by-path, POST /clipboard/inbox",
    ),
    "a session with manage": (
        "401  401  401  401  401  401  403  in   401",
        """GET /api/profiles/{profile}/config, GET /api/profiles/{profile}/skills, GET /api/profiles/{profile}/soul,
        PUT /api/profiles/{profile}/soul, GET /api/profiles/{profile}/memory,
        PUT /api/profiles/{profile}/memory/{filename}, GET /api/profiles/{profile}/avatar, GET /context/injected,
        GET /chat/image-activity""",
    ),
    "a session with bridge": (
        "401  401  401  401  401  401  403  in   401",
        ", ".join(f"{method} {path}" for method, path in DEVICE_CONTROL),
    ),
    "a session with bridge, but no page's": (
        "401  401  403  403  401  401  403  in   401",
        "POST /mcp, GET /mcp, DELETE /mcp",
    ),
    "a session with voice": (
        "401  401  401  401  401  401  403  in   403",
        """GET /voice/config, POST /voice/transcribe, POST /voice/synthesize, GET /voice/output/config,
        PATCH /voice/output/config, GET /voice/output/providers/{provider_id}/options,
        POST /voice/output/providers/{provider_id}/validate, GET /voice/realtime/config, PATCH /voice/realtime/config,
        GET /voice/realtime/providers/{provider_id}/options, POST /voice/realtime/providers/{provider_id}/validate,
        GET /voice/realtime-agent/config, PATCH /voice/realtime-agent/config,
        GET /voice/realtime-agent/providers/{provider_id}/options,
        POST /voice/realtime-agent/providers/{provider_id}/validate, POST /voice/output/session,
        POST /voice/realtime/session, POST /voice/realtime-agent/session""",
    ),
    "a session with voice, but no page's": (
        "401  401  401  401  401  401  403  in   403",
        "GET /voice/output/{session_id}, GET /voice/realtime/{session_id}, GET /voice/realtime-agent/{session_id}",
    ),
}
CHANNEL_ACCESS: dict[str, tuple[str, str]] = {
    "an authenticated client": ("auth auth 403  403  auth auth in   in   auth", "system ping, chat chat.send"),
    "a session with chat": (
        "auth auth 403  403  auth auth grant in  auth",
        """proactive proactive.subscribe, proactive proactive.unsubscribe, proactive proactive.cancel,
        proactive proactive.reply""",
    ),
    "a session with notifications": (
        "auth auth 403  403  auth auth grant in  auth",
        "notifications notification.posted",
    ),
    "a session with bridge": (
        "auth auth 403  403  auth auth grant in  auth",
        "bridge bridge.status, bridge bridge.response",
    ),
    "a session with terminal": (
        "auth auth 403  403  auth auth grant in  auth",
        """terminal terminal.attach, terminal terminal.input, terminal terminal.resize, terminal terminal.detach,
        terminal terminal.kill, terminal terminal.list""",
    ),
    "a session with tui": (
        "auth auth 403  403  auth auth grant in  auth",
        "tui tui.attach, tui tui.rpc.request, tui tui.resize, tui tui.detach",
    ),
}
PLACES = {
    "{token_prefix}": "0123abcd", "{token}": "none", "{provider_id}": "stub", "{session_id}": "none",
    "{ticket}": "none", "{code}": "QQQQQQ", "{profile}": "default", "{filename}": "USER.md"
}  # fmt: skip


def expected_access(table: Mapping[str, tuple[str, str]], caller: str) -> dict[str, str]:
    """Return the expected result of a client kind on each route, or message type, of a matrix."""
    column = CLIENT_KINDS.index(caller)
    return {route.strip(): met.split()[column] for met, routes in table.values() for route in routes.split(",")}


def example_path(route: str) -> tuple[str, str]:
    """Return the method and the path of a route, with example values for the parameters of the path."""
    method, _, path = route.partition(" ")
    for braces, named in PLACES.items():
        path = path.replace(braces, named)
    return method, path
