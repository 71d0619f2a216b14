"""Rows of transition tables that no simulation uses: unreachable ones with the reason, and a limit for the others."""

# Rows that simulations can use, but the 300 of the full suite do not. Lower the number when possible.
MAX_UNTAKEN = 50

_DESKTOP = "no command of a desktop runs in a world"
_VOICE = "no client opens a voice session in a world"
_TOOLS = "no tool server is configured in a world"
_OAUTH = "no OAuth client requests access in a world"

OUT_OF_REACH: dict[str, str] = {  # by table, or by row
    "agent.mcp_server.MCP_SERVER_TABLE": _TOOLS,
    "cli.voice_chat.VOICE_CHAT_TABLE": _DESKTOP,
    "phone.attachment.ATTACHMENT_TABLE": "the phone of a world shows no chats, which attachments are parts of",
    "phone.terminal_channels.CHANNEL_CLIENT_TABLE": "no user types at the phone of a world",
    "machines.oauth_consent.CONSENT_TABLE": _OAUTH,
    "machines.candidate_selection.SELECTION_TABLE": "the phone of a world knows one route only",
    "machines.voice_session.VOICE_TABLE": _VOICE,
    "phone.safety.master_toggle.MASTER_TABLE: OFF, TURN_ON_INACCESSIBLE": "the simulated handset has its accessibility",
    "service_clients.mcp_client.MCP_CLIENT_TABLE": _TOOLS,
    "voice.realtime.answer_playback.PLAYBACK_TABLE": _VOICE,
    "voice.realtime.provider_responses.RESPONSE_TABLE": _VOICE,
    "voice.realtime.rendered_conversation.RENDERED_TABLE": _VOICE,
    "voice.realtime.turn_taking.TURN_TAKING_TABLE": _VOICE,
    "voice.realtime.voice_run.RUN_TABLE": _VOICE,
}


def is_out_of_reach(row: str) -> bool:
    """Report whether a row, or its whole table, is listed as unreachable by simulations."""
    return row in OUT_OF_REACH or row.partition(": ")[0] in OUT_OF_REACH
