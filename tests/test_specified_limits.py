"""Limits that the specification states, with the place that states them. Most other constants are in the snapshot."""

from __future__ import annotations

from importlib import import_module

import pytest

LIMITS = {
    # wire api 2.1, 2.3, 2.5
    "api.service.BODY_LIMIT": 10_000_000,
    "api.content.MAX_PARTS": 1_000,
    "api.runs.idempotency.KEY_TTL": 300.0,
    "api.runs.idempotency.MAX_KEYS": 1_000,
    "api.chat.titles.MAX_ID": 256,
    # wire api 3.1, 3.2, 3.8
    "api.chat.titles.MAX_TITLE": 100,
    "api.routes.sessions.DEFAULT_PAGE": 50,
    "api.routes.sessions.MAX_PAGE": 200,
    "api.routes.sessions.DEFAULT_HITS": 20,
    "api.routes.sessions.MAX_HITS": 100,
    # wire api 4.2, 6.3, 7, decision 16
    "api.runs.subscriber.KEEPALIVE_INTERVAL": 30.0,
    "api.runs.subscriber.UNREAD_TIMEOUT": 300.0,
    "api.runs.subscriber.MAX_BACKLOG_BYTES": 64 * 1024,
    "api.runs.subscriber.MAX_BACKLOG_EVENTS": 256,
    "api.routes.runs.EVENT_WAIT": 1.0,
    "api.runs.response_store.MAX_STORED": 100,
    # spec "Limits"
    "cli.doctor.PROBE_TIMEOUT": 4.0,
    "phone.safety.bounds.MIN_IDLE_MINUTES": 5,
    "phone.safety.bounds.MAX_IDLE_MINUTES": 120,
    "phone.safety.activity_log.MAX_ACTIVITIES": 100,
    "machines.candidate_selection.PROBE_TIMEOUT": 4.0,
    "machines.candidate_selection.REACHABLE_TTL": 60.0,
    "machines.paired_session_registry.DEFAULT_TTL": 30 * 86_400.0,
    "machines.paired_session_registry.MIN_PREFIX": 4,
    "machines.paired_session.PREFIX_LENGTH": 8,
    "machines.pairing_codes.CODE_LIFETIME": 600.0,
    "machines.auth_rate_limiter.MAX_FAILURES": 5,
    "machines.auth_rate_limiter.WINDOW": 60.0,
    "machines.auth_rate_limiter.BLOCK_DURATION": 300.0,
    "machines.bridge_commands.RESPONSE_TIMEOUT": 30.0,
    "machines.bridge_commands.MAX_RECORDS": 100,
    "machines.inbox.MAX_NOTIFICATIONS": 100,
    # wire core 0.1, 0.4, 1.6, 10.1, 10.6
    "cli.durations.NEVER": 0,
    "cli.operator_output.FULLY_MASKED": 8,
    "cli.operator_requests.PROBE_TIMEOUT": 1.0,
    "cli.operator_requests.REGISTER_TIMEOUT": 2.0,
    "cli.desktop_output.PIN_SHOWN": 12,
    # wire terminal-voice 1.3, 3.3, 6.4, 6.5, 9
    "cli.shell.ATTACH_TIMEOUT": 30.0,
    "cli.voice_requests.MAX_RECORDING": 25 * 1024 * 1024,
    "cli.voice_chat.CHUNK_SIZE": 6400,
    "cli.voice_chat.TURN_TIMEOUT": 300.0,
    # wire core 9
    "dashboard.validation.MAX_PREFIX": 64,
    "dashboard.upstream.MAX_BODY_CHARS": 200,
    # wire api 2.5
    "dashboard.agent_proxy.LARGEST_TURN": 10_000_000,
    # wire bridge 1.3, 3.4, 5.5, 5.7, 5.8
    "phone.service.STATUS_INTERVAL": 30.0,
    "phone.command_executor.UPLOAD_TIMEOUT": 15.0,
    "phone.safety.bounds.DEFAULT_TIMEOUT": 25.0,
    "phone.safety.bounds.MIN_TIMEOUT": 10.0,
    "phone.safety.bounds.MAX_TIMEOUT": 60.0,
    "phone.safety.bounds.DEFAULT_IDLE_MINUTES": 30,
    "phone.safety.activity_log.MAX_METHOD": 24,
    "phone.safety.activity_log.MAX_SUMMARY": 80,
    "phone.safety.activity_log.MAX_RESULT": 140,
    # wire core 1.6
    "phone.service.OPEN_TIMEOUT": 15.0,
    "phone.service.SIGN_IN_TIMEOUT": 15.0,
    "phone.service.BLOCKED_PAUSE": 300.0,
    "service_clients.relay_connection.SIGN_IN_TIMEOUT": 15.0,
    # wire core 0.2, wire terminal-voice 1.6, decision 10
    "engine.router.BODY_LIMIT": 2 * 1024 * 1024,
    "engine.child_process.HANGUP_TIMEOUT": 1.0,
    "engine.body_streams.FILE_STEP": 1024 * 1024,
    # wire bridge 4.2
    "machines.bridge_commands.MAX_SUMMARY": 500,
    # wire core 0.1, 7.1, 7.3
    "machines.paired_session_registry.TOKEN_LENGTHS": (36, 64),
    "machines.inbox.IMAGE_LIMIT": 25 * 1024 * 1024,
    "machines.inbox.STALE_AFTER": 300.0,
    "machines.inbox.DEFAULT_LIMIT": 20,
    # wire api 6.2
    "machines.run_scheduler.KEEP_ENDED": 3600.0,
    # wire terminal-voice 1.4, 1.5, 2.3
    "machines.terminal.MAX_TERMINALS": 4,
    "machines.terminal.FLUSH_AFTER": 0.016,
    "machines.terminal.FLUSH_AT": 4096,
    "machines.terminal.MAX_REPLAY": 64 * 1024,
    "machines.line_buffer.MAX_LINE": 32 * 1024 * 1024,
    # wire terminal-voice 4.6, 4.8, decision 30
    "machines.voice_session.UNCLAIMED_TIMEOUT": 120.0,
    "machines.voice_session.RESUME_WINDOW": 30.0,
    "machines.voice_session.RING_EVENTS": 2000,
    "machines.voice_session.RING_BYTES": 4 * 1024 * 1024,
    # wire terminal-voice 6.7
    "service_clients.service_client.TIMEOUT": 10.0,
    # decision 149
    "service_clients.server_stats.SAMPLE_INTERVAL": 15.0,
    # wire core 1.6, 1.8, 0.2
    "relay.websocket.client_connection.AUTH_TIMEOUT": 30.0,
    "relay.agent_profiles.RESCAN_INTERVAL": 30.0,
    # wire terminal-voice 1.4, 2.3, 3.3
    "relay.terminals.shells.REPLAY_LINES": 200,
    "relay.terminals.tui_channel.TERM_TIMEOUT": 2.0,
    "relay.voice.recording_upload.MAX_UPLOAD": 25 * 1024 * 1024,
    # wire terminal-voice 7
    "relay.voice.access.PROBE_TIMEOUT": 5.0,
    "relay.voice.access.CACHE_SECONDS": 60.0,
    # wire terminal-voice 6.5, 6.6, 6.9, 9, and the realtime conversation's own
    "voice.realtime.function_calls.MAX_ARGUMENTS": 32 * 1024,
    "voice.realtime.function_calls.MAX_SUMMARY": 1200,
    "voice.realtime.function_calls.MAX_WORD": 256,
    "voice.realtime.voice_runs.MAX_CALLS": 256,
    "voice.realtime.native_conversation.TRANSCRIPTION_TIMEOUT": 10.0,
    "voice.realtime.turn_taking.RESPONSE_TIMEOUT": 45.0,
    "voice.realtime.turn_taking.DRAIN_TIMEOUT": 2.5,
    "voice.realtime.answer_playback.ALARM": 30.0,
    "voice.realtime.answer_playback.JUDGED_FROM": 40,
    "voice.realtime.answer_playback.MAX_HELD": 4 * 1024 * 1024,
    "voice.realtime.answer_playback.MAX_TEXT": 4000,
    "voice.realtime.answer_playback.SHARED": 2,
    "voice.realtime.answer_playback.SHORT": 3,
    "voice.realtime.provider_responses.PREVIOUS_RESPONSE_TIMEOUT": 2.5,
    "voice.realtime.provider_responses.MAX_IGNORED": 64,
    "voice.realtime.provider_responses.MAX_OPEN": 16,
    "voice.realtime.provider_responses.MAX_ORPHANS": 16,
    "voice.realtime.provider_responses.ORPHAN_TTL": 5.0,
    "voice.realtime.voice_run.HEARTBEAT": 5.0,
    "voice.realtime.voice_run.MAX_SPOKEN": 1800,
    "voice.realtime.voice_run.PAUSE": 0.75,
    "voice.realtime.voice_run.SLOW_AFTER": 1.5,
    "voice.realtime.voice_runs.GRACE": 30.0,
    "voice.realtime.voice_runs.MAX_PREVIEW": 80,
    "voice.realtime.voice_runs.MAX_QUEUED": 3,
    "voice.realtime.voice_runs.MAX_RESULTS": 4,
    "voice.realtime.voice_runs.QUIET": 1.5,
    "voice.realtime.voice_runs.QUIET_TIMEOUT": 12.0,
    "voice.realtime.run_events.MAX_ANSWER": 64 * 1024,
    "voice.realtime.run_events.MAX_PREVIEW": 2000,
    "voice.realtime.run_events.MAX_TOOLS": 256,
    # spec "Limits", wire terminal-voice 3.3, 4.1, 4.4, 4.7, 4.10
    "voice.providers.http_provider.MAX_UPLOAD": 25 * 1024 * 1024,
    "voice.providers.discovery.MAX_NAME": 160,
    "voice.providers.discovery.CALL_TIMEOUT": 5.0,
    "voice.providers.discovery.MAX_PAGES": 20,
    "voice.providers.http_provider.CHUNK_SIZE": 4096,
    "voice.providers.http_provider.RESPONSE_TIMEOUT": 60.0,
    "voice.connection.MAX_MESSAGE": 2 * 1024 * 1024,
    "voice.connection.PING_INTERVAL": 20.0,
    # wire terminal-voice 6.1, 6.2, 6.7, 6.11, 7, 9
    "voice.event_log.KEEP_DAYS": 14,
    "voice.agent.instructions.MAX_READ": 20,
    "voice.agent.instructions.MAX_KEPT": 14,
    "voice.agent.instructions.MAX_CONTENT": 1500,
    "voice.agent.instructions.MAX_PERSONA": 6000,
    "voice.agent.api_run.HISTORY_TIMEOUT": 5.0,
    "voice.agent.api_run.CONNECT_TIMEOUT": 10.0,
    "voice.realtime_connection.CONNECT_TIMEOUT": 60.0,
    "voice.realtime_connection.PING_INTERVAL": 20.0,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_limit_has_the_specified_value(name: str, value: object) -> None:
    module, _, constant = name.rpartition(".")
    assert getattr(import_module(f"svc_proto.{module}"), constant) == value
