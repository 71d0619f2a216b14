"""Leak check: after all clients have disconnected, tables must not have more entries than before the first.

A table of a core that keeps entries without clients must be listed with the reason.
"""

from collections.abc import Mapping

from attrs import fields

from fuzz.simulation.deployment import Deployment
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.resource_accounting import table_sizes, uploads_kept
from svc_proto.engine.core import Engine
from svc_proto.schema.model_profile import ModelProfile

_REASONS: Mapping[str, str] = {  # tables of the cores that keep entries without clients
    "sessions outlive the connections of their devices": """
        PairedSessionRegistry._accessed SessionMap._groups _Group._expiries _Group.sessions SessionIndex._devices
        SessionIndex._groups PairedSession.grants PairingTerms.grants ApiGateway.sessions LiveSession.accepted""",
    "records that the store could not delete": "PairedSessionRegistry._tombstones",
    "live sessions that the store could not save": "SessionRecords._unsaved",
    "codes that no device has used": """
        PairingCodes._codes PairingMeta.carries_key PairingMeta.endpoints PairingMeta.grants
        PairingMeta.keep_earlier""",
    "public routes of invites, until the owner removes them": "LocalAuthorizer.has_public_route",
    "addresses with failed attempts in the last minute": "AuthRateLimiter._counting",
    "addresses that are blocked for five minutes": "AuthRateLimiter._blocked _AddressRecord.failures",
    "addresses that the log named in the last minute": "LogThrottle._said",
    "media live for their time": """
        UploadRegistry._owned UploadRegistry._used MediaEntry.owned MediaRegistry._entries MediaEntry.sensitive""",
    "history that clients can request": """
        MediaService._expired BridgeCommands._ring BridgeCommandRecord.params NotificationBuffer._stored
        ConnectedPhone.status""",
    "counters for a monitor, at most one for each route": """
        EngineMetrics.answers EngineMetrics.json_deviations EngineMetrics.waits Histogram.counts""",
    "the failure of the last check of the store, until the next check": "MonitoringRoutes._reasons",
    "sessions of tmux, which outlive their clients": "ShellLauncher.begun",
    "voice sessions that have ended, for clients that try to resume them": """
        OutputSessionManager._over LabSessionManager._over AgentSessionManager._over""",
    "results of key checks, cached for some seconds": "ApiBearerVerifier._known",
    "an ended answer can be requested for an hour": """
        RunScheduler._ended RunManager._runs Run._needs_break Run._may_ask Run._stops_alone ResponseBuilder._calls
        ResponseBuilder._output Subscriber._run_ended Task.done ToolCall.args TurnEnded.interrupted
        IdempotencyKeys._entries""",
    "a client may request a response again": """
        ResponseStore._conversations ResponseStore._loaded ResponseStore._sessions ResponseStore._texts""",
    "what was allowed for a chat": "ApprovalMemory._sessions",
    "learned abilities of at most 64 model servers": """
        ModelProfiles._loaded ModelProfiles._profiles ModelProfiles._stored""",  # and all fields of a profile
    "parts that are loaded at their first use": """
        ApiGateway._methods Route.streamed Router.exact Router._patterns _Pattern.methods Router._routes
        VoiceSubsystem.sessions""",
    "selections of tools that were made, 16 at the most": "ModelAgent._known_rows",
    "files that wait for the next prompt": "LiveSession.attachments",
    "the list of tools for an MCP client is used by its next request": """
        McpHttpServer._answers RequestHandlers._pending RequestHandlers._prompts RequestHandlers._resources
        RequestHandlers._tools RequestHandlers.handlers RequestHandlers.info ServerTool.destructive
        ServerTool.reads_only Prompt.arguments Tool.is_rare Tool.sequential Tool.is_act Tool.parameters
        Tool.pass_through Tool.reads_foreign_content""",
    "the settings as they are since the key was changed": "ApiConfig.enabled",
    "what the configuration file said last": "AgentSettings.shown",
    "a timer that was set anew is there twice until the first is due": "Timers._heap",
}
KEPT = (*" ".join(_REASONS.values()).split(), *(f"ModelProfile.{each.name}" for each in fields(ModelProfile)))

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
