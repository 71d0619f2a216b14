"""Table of authority: which credential reaches which route, channel, tool, setting and approval.

`tests/test_authority_table.py` compares routes, channels and tools with the services: one without a row fails there.
The rows of settings and approvals, `OTHERS`, are compared with nothing. `python -m tests.support.authority_table`
writes docs/reference/authority.md from the table.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from fuzz.simulation import access_matrix
from svc_proto.agent.tools.phone_tools import PHONE_TOOLS

PAGE = Path(__file__).parents[2] / "docs/reference/authority.md"
ABOUT = """# Table of authority

What each credential reaches. `python -m tests.support.authority_table` writes this page, and tests compare its rows
with the services. [The security model](../explanation/security-model.md) explains grants, rights and authority.

Sessions with all grants are those of pairings that withhold nothing; a bare session has no grant and no right. An OAuth
access token counts as a token for MCP. The API's main key also opens the voice routes of the relay, over HTTPS.
"""

# --- the relay ----------------------------------------------------------------------------------------------------

RELAY_KINDS = ("program of the host", "nothing", "bare session", "session", "MCP token", "read-only MCP token")
YES, NO, OWN = "yes", "no", "own"  # `own`: the session itself, others with the right `manage`
RELAY_ACCESS: Mapping[str, str] = {
    # policy: the result for each of RELAY_KINDS
    "PUBLIC": "yes yes yes yes yes yes",
    "SOCKET": "yes yes yes yes yes yes",  # the first message has to authenticate: `CHANNELS`
    "LOOPBACK": "yes no no no no no",
    "MONITOR": "yes no no no no no",
    "LOOPBACK_OR_BEARER": "yes no own own no no",
    "BEARER": "no no yes yes no no",
    "FILES": "no no no yes no no",
    "MANAGE": "no no no yes no no",
    "LOCAL_OR_NOTIFICATIONS": "yes no no yes no no",
    "BRIDGE": "no no no yes no no",
    "AGENT": "no no no yes yes yes",
    "VOICE_CONFIG": "no no no yes no no",
    "VOICE_STT": "no no no yes no no",
    "VOICE_TTS": "no no no yes no no",
    "VOICE_REALTIME": "no no no yes no no",
    "VOICE_OUTPUT_SOCKET": "no no no yes no no",
    "VOICE_REALTIME_SOCKET": "no no no yes no no",
}
VOICE, VOICE_SOCKETS = "a session with voice", "a session with voice, but no page's"
ROWS: Mapping[str, tuple[str, str]] = {
    # policy: a row of the access matrix, and an expression for the beginning of its routes that have this policy
    "SOCKET": ("every caller but pages", ""),
    "PUBLIC": ("every caller", ""),
    "LOOPBACK": ("programs of this host", "(?!GET /metrics)"),
    "MONITOR": ("programs of this host", "GET /metrics"),
    "LOOPBACK_OR_BEARER": ("this host, or a session", ""),
    "FILES": ("a session with files", ""),
    "MANAGE": ("a session with manage", ""),
    "BEARER": ("a session", ""),
    "LOCAL_OR_NOTIFICATIONS": ("this host, or a session with notifications", ""),
    "BRIDGE": ("a session with bridge", ""),
    "AGENT": ("a session with bridge, but no page's", ""),
    "VOICE_CONFIG": (VOICE, "GET /voice/config"),
    "VOICE_STT": (VOICE, "POST /voice/transcribe"),
    "VOICE_TTS": (VOICE, "[A-Z]+ /voice/(synthesize|output)"),
    "VOICE_OUTPUT_SOCKET": (VOICE_SOCKETS, "GET /voice/output"),
    "VOICE_REALTIME": (VOICE, "[A-Z]+ /voice/realtime"),
    "VOICE_REALTIME_SOCKET": (VOICE_SOCKETS, "GET /voice/realtime"),
}
# Channels of the WebSocket, with the grant or right of the session; no other credential opens a channel.
CHANNELS: Mapping[str, str] = {
    "system": "",
    "chat": "",  # every message is refused: chat belongs to the API
    "bridge": "bridge",
    "terminal": "terminal",
    "tui": "tui",
    "notifications": "notifications",
    "proactive": "chat",
}

# --- the API ------------------------------------------------------------------------------------------------------

API_KINDS = ("main key", "key of a pairing", "key of a pairing with manage", "nothing")
API_ACCESS: Mapping[str, str] = {
    "PUBLIC": "yes yes yes yes",
    "MONITOR": "no no no no",  # programs of the host, or the monitoring token
    "LOCAL_OR_KEY": "yes yes yes no",  # and programs of the host
    "KEY": "yes yes yes no",
    "MANAGE": "yes no yes no",
    "MAIN_KEY": "yes no no no",
    "OWNER": "yes no no no",
}
API_ROUTES: Mapping[str, str] = {
    "PUBLIC": "GET /health, GET /v1/health, GET /healthz, GET /readyz",
    "KEY": """
        GET /health/detailed, GET /v1/models, GET /v1/models/{id}, GET /v1/capabilities, GET /api/sessions,
        POST /api/sessions, GET /api/sessions/search, GET /api/sessions/{id}, PATCH /api/sessions/{id},
        DELETE /api/sessions/{id}, GET /api/sessions/{id}/messages, GET /api/sessions/{id}/pictures/{token},
        GET /api/sessions/{id}/image-activity,
        DELETE /api/sessions/{id}/messages, POST /api/sessions/{id}/fork,
        GET /api/config, GET /api/memory, GET /api/skills, GET /api/skills/{name}, GET /api/skills/toggle,
        GET /v1/skills, GET /v1/toolsets, GET /api/mcp-servers, GET /api/available-models, GET /api/model/options,
        POST /api/sessions/{id}/chat/stream, HEAD /api/sessions/{id}/chat/stream, POST /api/sessions/{id}/chat,
        POST /v1/chat/completions, HEAD /v1/chat/completions, POST /v1/runs, HEAD /v1/runs,
        GET /v1/runs/{run_id}, GET /v1/runs/{run_id}/events, POST /v1/runs/{run_id}/stop,
        POST /v1/runs/{run_id}/approval, POST /v1/responses, GET /v1/responses/{response_id},
        DELETE /v1/responses/{response_id}, POST /mcp, GET /mcp, DELETE /mcp, GET /api/profiles/{profile}/config,
        GET /api/profiles/{profile}/skills, GET /api/profiles/{profile}/soul, GET /api/profiles/{profile}/memory,
        GET /api/profiles/{profile}/avatar, GET /api/profiles/{profile}/context
    """,
    "MANAGE": """
        PATCH /api/config, POST /api/memory, PATCH /api/memory, DELETE /api/memory, PUT /api/skills/toggle,
        POST /api/mcp-servers/reload, PUT /api/mcp-servers/{name}/enabled, POST /api/mcp-servers/{name}/test,
        PUT /api/profiles/{profile}/soul, PUT /api/profiles/{profile}/memory/{filename}
    """,
    "MAIN_KEY": """
        GET /api/host, PATCH /api/host, POST /api/key/rotate,
        POST /api/key/reload, GET /api/changes, POST /api/changes/undo, GET /api/approvals, DELETE /api/approvals,
        POST /api/model/probe
    """,
    "OWNER": "GET /api/ws",
    "MONITOR": "GET /metrics",
    "LOCAL_OR_KEY": "GET /openapi.json, GET /docs",
}

# --- tools, settings, approvals -------------------------------------------------------------------------------------

TOOLS: Mapping[str, tuple[str, str]] = {
    # toolset: the power that its turn must hold, and its tools
    "phone": ("bridge", " ".join(f"phone_{row.name}" for row in PHONE_TOOLS)),
    "memory": ("manage", "memory"),
    "skills": ("", "skills_list skill_view"),
    "user": ("", "ask_user"),
    "demo": ("", "demo_wait demo_fail demo_ask"),
    "more": ("", "more_tools"),
}
OTHERS = (
    ("`model`, `provider`, `base_url` of the agent", "main key, the dashboard, or a pairing with `manage`"),
    ("public address, names for the app, token of a monitor", "main key, the dashboard; not without a key of the API"),
    ("grants and lifetime that new codes start with", "main key, the dashboard; not without a key of the API"),
    ("a new API key", "main key, the dashboard, which asks before; `svc key rotate`"),
    ("key of the model's server, password of the dashboard", "files and commands of the host alone"),
    ("notes of the memory", "main key, the dashboard, or a pairing with `manage`; each is recorded with its principal"),
    ("MCP servers of the agent", "the configuration file alone; a restart of them needs `manage`"),
    ("an approval for one call", "the client that runs the turn, main key, or a pairing with `manage`"),
    ("an approval for a chat or for good", "main key, the dashboard, or a pairing with `manage`; recorded as above"),
    ("lists and ends of standing approvals", "main key, the dashboard's host"),
    ("lists and undoing of a principal's changes", "main key, the dashboard's host"),
)


def routes_of(text: str) -> list[str]:
    """Return the routes of a table's cell, which are separated by commas."""
    return [route.strip() for route in " ".join(text.split()).split(", ")]


RELAY_ROUTES: Mapping[str, str] = {
    policy: ", ".join(route for route in routes_of(access_matrix.RELAY_ACCESS[row][1]) if re.match(beginning, route))
    for policy, (row, beginning) in ROWS.items()
}


def page() -> str:
    """Return the text of docs/reference/authority.md."""
    parts = [ABOUT]
    for title, kinds, access, routes in (
        ("Relay", RELAY_KINDS, RELAY_ACCESS, RELAY_ROUTES),
        ("API", API_KINDS, API_ACCESS, API_ROUTES),
    ):
        parts += [f"## {title}", "", f"| Route | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}"]
        for policy, listed in routes.items():
            cells = " | ".join(access[policy].split())
            parts += [f"| `{route}` | {cells} |" for route in routes_of(listed)]
        parts.append("")
    parts += ["## Channels of the WebSocket", "", "| Channel | Grant or right of the session |", "|---|---|"]
    parts += [f"| `{name}` | {f'`{grant}`' if grant else 'none'} |" for name, grant in CHANNELS.items()]
    parts += ["", "## Tools of the agent", "", "| Toolset | The turn's principal holds | Tools |", "|---|---|---|"]
    parts += [
        f"| {name} | {f'`{power}`' if power else 'nothing'} | {', '.join(f'`{tool}`' for tool in tools.split())} |"
        for name, (power, tools) in TOOLS.items()
    ]
    parts += ["", "## Settings and approvals", "", "| What | Who may |", "|---|---|"]
    parts += [f"| {what} | {may} |" for what, may in OTHERS]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
