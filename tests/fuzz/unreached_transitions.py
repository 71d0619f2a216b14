"""Rows of transition tables that no simulation uses: unreachable ones with the reason, and a limit for the others."""

# Rows that simulations can use, but the 300 of the full suite do not. Lower the number when possible.
MAX_UNTAKEN = 50

_DESKTOP = "no command of a desktop runs in a world"
_VOICE = "no client speaks in a world; two checks open a voice session and end it"
_STARTS = "each tool server of a world starts, and is removed while it runs"
_OAUTH = "no OAuth client requests access in a world"
_ONCE = "a server that is not wanted any more is told so once"

OUT_OF_REACH: dict[str, str] = {  # by table, or by row
    "agent.mcp_server.MCP_SERVER_TABLE: DOWN, STOP": _STARTS,
    "agent.mcp_server.MCP_SERVER_TABLE: STARTING, FAIL": _STARTS,
    "agent.mcp_server.MCP_SERVER_TABLE: STARTING, STOP": _STARTS,
    "agent.mcp_server.MCP_SERVER_TABLE: STOPPED, STOP": _ONCE,
    "agent.mcp_server.MCP_SERVER_TABLE: WAITING, STOP": _STARTS,
    "cli.voice_chat.VOICE_CHAT_TABLE": _DESKTOP,
    "phone.attachment.ATTACHMENT_TABLE": "the phone of a world shows no chats, which attachments are parts of",
    "phone.terminal_channels.CHANNEL_CLIENT_TABLE": "no user types at the phone of a world",
    "machines.oauth_consent.CONSENT_TABLE": _OAUTH,
    "machines.candidate_selection.SELECTION_TABLE": "the phone of a world knows one route only",
    "phone.safety.master_toggle.MASTER_TABLE: OFF, TURN_ON_INACCESSIBLE": "the simulated handset has its accessibility",
    **{
        f"machines.voice_session.VOICE_TABLE: {row}": _VOICE
        for row in (
            *(f"ATTACHED, {trigger}" for trigger in ("DETACH", "RELEASE", "RESUME")),
            *(f"DETACHED, {trigger}" for trigger in ("CLOSE", "EXPIRE", "RESUME")),
            *("CLOSED, CLOSE", "FRESH, EXPIRE", "STARTING, CLOSE", "STARTING, RELEASE"),
        )
    },
    "voice.realtime.answer_playback.PLAYBACK_TABLE": _VOICE,
    "voice.realtime.provider_responses.RESPONSE_TABLE": _VOICE,
    "voice.realtime.rendered_conversation.RENDERED_TABLE": _VOICE,
    "voice.realtime.turn_taking.TURN_TAKING_TABLE": _VOICE,
    "voice.realtime.voice_run.RUN_TABLE": _VOICE,
}


def is_out_of_reach(row: str) -> bool:
    """Report whether a row, or its whole table, is listed as unreachable by simulations."""
    return row in OUT_OF_REACH or row.partition(": ")[0] in OUT_OF_REACH
