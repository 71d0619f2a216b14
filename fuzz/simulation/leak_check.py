"""Leak check: after all clients have disconnected, tables must not have more entries than before the first.

A table of a core that keeps entries without clients must be listed in `KEPT`, with the reason.
"""

from collections.abc import Mapping

from attrs import fields

from fuzz.simulation.deployment import Deployment
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.resource_accounting import table_sizes, uploads_kept
from svc_proto.engine.core import Engine
from svc_proto.schema.model_profile import ModelProfile

_LIVE = "sessions outlive the connections of their devices"
_MEDIA = "media live for their time"
_SHOWN = "history that clients can request"
_OFFER = "the list of tools for an MCP client is used by its next request"
_COUNTED = "counters for a monitor, at most one for each route"
_ENDED = "an ended answer can be requested for an hour"
_ASKED = "a client may request a response again"
_LOADED = "parts that are loaded at their first use"
_LEARNED = "learned abilities of at most 64 model servers"
_FAMILIES = ("OutputSessionManager", "LabSessionManager", "AgentSessionManager")

KEPT: Mapping[str, str] = {
    "PairedSessionRegistry._accessed": _LIVE,
    "SessionMap._groups": _LIVE,
    "_Group._expiries": _LIVE,
    "_Group.sessions": _LIVE,
    "SessionIndex._devices": _LIVE,
    "SessionIndex._groups": _LIVE,
    "PairedSessionRegistry._tombstones": "records that the store could not delete",
    "PairedSession.grants": _LIVE,
    "SessionRecords._unsaved": "live sessions that the store could not save",
    "PairingTerms.grants": _LIVE,
    "PairingCodes._codes": "codes that no device has used",
    "PairingMeta.carries_key": "the same",
    "PairingMeta.endpoints": "the same",
    "PairingMeta.grants": "the same",
    "PairingMeta.keep_earlier": "the same",
    "LocalAuthorizer.has_public_route": "public routes of invites, until the owner removes them",
    "AuthRateLimiter._counting": "addresses with failed attempts in the last minute",
    "AuthRateLimiter._blocked": "addresses that are blocked for five minutes",
    "_AddressRecord.failures": "the same",
    "LogThrottle._said": "addresses that the log named in the last minute",
    "UploadRegistry._owned": _MEDIA,
    "UploadRegistry._used": _MEDIA,
    "MediaEntry.owned": _MEDIA,
    "MediaRegistry._entries": _MEDIA,
    "MediaService._expired": _SHOWN,
    "MediaEntry.sensitive": _MEDIA,
    "BridgeCommands._ring": _SHOWN,
    "EngineMetrics.answers": _COUNTED,
    "EngineMetrics.json_deviations": _COUNTED,
    "EngineMetrics.waits": _COUNTED,
    "Histogram.counts": _COUNTED,
    "MonitoringRoutes._reasons": "the failure of the last check of the store, until the next check",
    "BridgeCommandRecord.params": _SHOWN,
    "NotificationBuffer._stored": _SHOWN,
    "ConnectedPhone.status": _SHOWN,
    "ShellLauncher.begun": "sessions of tmux, which outlive their clients",
    **dict.fromkeys(
        (f"{each}._over" for each in _FAMILIES), "voice sessions that have ended, for clients that try to resume them"
    ),
    "ApiBearerVerifier._known": "results of key checks, cached for some seconds",
    "RunScheduler._ended": _ENDED,
    "RunManager._runs": _ENDED,
    "Run._needs_break": _ENDED,
    "Run._may_ask": _ENDED,
    "Run._stops_alone": _ENDED,
    "ResponseBuilder._calls": _ENDED,
    "ResponseBuilder._output": _ENDED,
    "ResponseStore._conversations": _ASKED,
    "ResponseStore._loaded": _ASKED,
    "ResponseStore._sessions": _ASKED,
    "ResponseStore._texts": _ASKED,
    "Subscriber._run_ended": _ENDED,
    "Task.done": _ENDED,
    "ToolCall.args": _ENDED,
    "TurnEnded.interrupted": _ENDED,
    "IdempotencyKeys._entries": _ENDED,
    "ApprovalMemory._sessions": "what was allowed for a chat",
    **{f"ModelProfiles.{name}": _LEARNED for name in ("_loaded", "_profiles", "_stored")},
    **{f"ModelProfile.{each.name}": _LEARNED for each in fields(ModelProfile)},
    "ApiGateway._methods": _LOADED,
    "ModelAgent._known_rows": "selections of tools that were made, 16 at the most",
    "ApiGateway.sessions": _LIVE,
    "LiveSession.accepted": _LIVE,
    "LiveSession.attachments": "files that wait for the next prompt",
    "McpHttpServer._answers": _OFFER,
    "ApiConfig.enabled": "the settings as they are since the key was changed",
    "RequestHandlers._pending": _OFFER,
    "RequestHandlers._prompts": _OFFER,
    "RequestHandlers._resources": _OFFER,
    "RequestHandlers._tools": _OFFER,
    "RequestHandlers.handlers": _OFFER,
    "RequestHandlers.info": _OFFER,
    "ServerTool.destructive": _OFFER,
    "ServerTool.reads_only": _OFFER,
    "Prompt.arguments": _OFFER,
    "Tool.is_rare": _OFFER,
    "Tool.sequential": _OFFER,
    "Tool.is_act": _OFFER,
    "Tool.parameters": _OFFER,
    "Tool.pass_through": _OFFER,
    "Tool.reads_foreign_content": _OFFER,
    "AgentSettings.shown": "what the configuration file said last",
    "Route.streamed": _LOADED,
    "Router.exact": _LOADED,
    "Router._patterns": _LOADED,
    "_Pattern.methods": _LOADED,
    "Router._routes": _LOADED,
    "VoiceSubsystem.sessions": _LOADED,
    "Timers._heap": "a timer that was set anew is there twice until the first is due",
}

SOON = 1.0  # s


class LeakCheck:
    """Comparison of the tables' sizes before the first client and after the last."""

    def __init__(self, world: Deployment) -> None:
        self._world = world
        self._before = {name: self._count(name) for name in ("relay", "api")}

    def check(self) -> None:
        """Check that tables, stored sessions and uploads have no entries without an owner.

        All clients must have disconnected, the reference phone too.
        """
        for name in self._before:
            if self._left(name):
                self._world.sim.run_for(SOON)  # a periodic read of a file may be in progress
            left = self._left(name)
            if left:
                violated(Invariant.ACCOUNTING, f"no client is left, and {name} keeps {left}")
        self._check_store()
        self._check_uploads()

    def _left(self, name: str) -> dict[str, int]:
        before = self._before[name]
        now = {place: count - before.get(place, 0) for place, count in self._count(name).items()}
        return {place: more for place, more in now.items() if more > 0 and place not in KEPT}

    def _count(self, name: str) -> dict[str, int]:
        process = getattr(self._world, name)
        assert isinstance(process.core, Engine)
        return table_sizes(process.core)

    def _check_store(self) -> None:
        world = self._world
        sessions = world.relay_service.sessions
        for token_hash, record in world.home.store.sessions.items():
            known = sessions.hashed(token_hash) is not None or token_hash in sessions._tombstones
            expires_at = record["expires_at"]
            over = isinstance(expires_at, float) and expires_at < world.home.wall()
            if not known and not (over and (world.store_trouble or world.store_refused)):
                violated(Invariant.ACCOUNTING, f"{record['token_prefix']} is stored, and is no session")

    def _check_uploads(self) -> None:
        world, relay = self._world, self._world.relay_service
        kept = uploads_kept(relay)
        if relay.media.uploads._used != kept:
            violated(Invariant.ACCOUNTING, f"{relay.media.uploads._used} bytes are counted, and {kept} are kept")
        paths = {upload.path.rpartition("/")[2] for upload in relay.media.uploads._owned.values()}
        there = {*world.home.disk.files(world.home.spool)}
        if there - paths and not world.store_trouble and not (world.outages and len(world.wall.steps) > 1):
            violated(Invariant.ACCOUNTING, f"{sorted(there - paths)} belong to no session")
