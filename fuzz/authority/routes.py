"""Relay routes, API routes and channel messages that the worlds try."""

# A route for each policy of the relay, and the power that it needs; empty: a session alone.
DEVICE_ROUTES = (
    ("GET", "/ping?device=none", "bridge"), ("POST", "/tap?device=none", "bridge"), ("POST", "/media/upload", "files"),
    ("GET", "/media/by-path", "files"), ("POST", "/clipboard/inbox", "files"),
    ("GET", "/notifications/recent", "notifications"), ("GET", "/api/profiles/default/config", "manage"),
    ("GET", "/media/none", ""), ("GET", "/sessions", ""), ("GET", "/voice/config", "voice:config"),
    ("GET", "/voice/output/config", "voice:tts"), ("POST", "/voice/transcribe", "voice:stt"),
    ("GET", "/voice/realtime/config", "voice:realtime")
)  # fmt: skip
LOCAL_ROUTES = (("GET", "/bridge/devices"), ("POST", "/pairing"), ("PATCH", "/relay/security"), ("GET", "/audit"))
API_ROUTES = (
    ("GET", "/api/sessions", "chat"),
    ("POST", "/api/mcp-servers/reload", "manage"),
    ("PUT", "/api/skills/toggle", "manage"),
)
OWNER_ROUTES = (("GET", "/api/approvals"), ("GET", "/api/changes"), ("POST", "/api/key/reload"), ("GET", "/api/host"))
# Messages that open a channel of the WebSocket, with its grant. A session that holds it does not send them here.
CHANNEL_MESSAGES = (
    ("terminal", "terminal.attach", "terminal"),
    ("tui", "tui.attach", "tui"),
    ("bridge", "bridge.status", "bridge"),
    ("notifications", "notification.posted", "notifications"),
)
