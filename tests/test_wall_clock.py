"""Lifetimes on the monotonic and on the wall clock, when an operator or NTP sets the wall clock."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import frozen

from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.moment import Moment
from svc_proto.engine.flow import Flow
from svc_proto.machines.bridge_commands import RESPONSE_TIMEOUT, BridgeCommands
from svc_proto.machines.media_registry import MediaRegistry
from svc_proto.machines.paired_session_registry import ACCESS_LIFETIME, PairedSessionRegistry
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.machines.pairing_codes import CODE_LIFETIME, PairingMeta
from svc_proto.machines.run_scheduler import KEEP_ENDED, RunScheduler, RunTrigger
from svc_proto.relay.voice.access import CACHE_SECONDS, ApiBearerVerifier
from tests.api.scripted_agent import TurnHarness
from tests.support.playbook import START, counting_entropy

CORE = Path(__file__).parent.parent / "svc_proto"
DAY = 86_400.0
HOUR = 3_600.0

IsAlive = Callable[[Moment], bool]


@frozen
class Lifetime:
    """A lifetime of `lasts` seconds. Each call of `begin` starts another one at `START`."""

    begin: Callable[[], IsAlive]
    lasts: float

    def is_alive(self, mono: float, wall: float) -> bool:
        """Begin a lifetime, let the clocks advance by `mono` and `wall` seconds, and report whether it is alive."""
        return self.begin()(Moment(START.mono + mono, START.wall + wall))


# --- on the monotonic clock: lifetimes of modules that read the wall clock as well, by `READERS` --------------------


def key_of_a_pairing_code() -> IsAlive:
    keys = PairingApiKeys()
    key, key_hash = keys.new_key(counting_entropy())
    keys.codes.register("ABC123", START, PairingMeta(key_hash=key_hash))
    return lambda now: keys.accepts(key, now) is not None


def media_token() -> IsAlive:
    registry = MediaRegistry(ttl=HOUR, cap=1)
    entry, _ = registry.register(
        START, counting_entropy(), path="a", content_type="image/png", file_name=None, size=1, sensitive=False
    )
    return lambda now: registry.lookup(entry.token, now) is not None


def bridge_command() -> IsAlive:
    commands = BridgeCommands()
    commands.begin("r1", socket=2, method="POST", path="/tap", params={}, body={}, now=START)
    return lambda now: commands.answer("r1", 2, {"status": 200}, now) is not None


def ended_run() -> IsAlive:
    runs = RunScheduler(1)
    run = runs.add("run_1", "s", may_wait=True, now=START)
    runs.startable(START)
    runs.finish(run, RunTrigger.FINISH, START)
    return lambda now: runs.get("run_1", now) is not None


def accepted_bearer() -> IsAlive:
    book = TurnHarness()
    probe = CountedProbe(book.engine, "http://api")
    book.spawn(probe.is_valid("bearer"))

    def is_alive(now: Moment) -> bool:
        book.step_clock((now.wall - now.mono) - (book.now.wall - book.now.mono))
        book.after(now.mono - book.now.mono)
        book.spawn(probe.is_valid("bearer"))
        return probe.asked == 1

    return is_alive


class CountedProbe(ApiBearerVerifier):
    """Verifier that accepts every bearer without a request, and counts the requests that it has left out."""

    asked = 0

    def _request(self, headers: tuple[tuple[bytes, bytes], ...]) -> Flow[bool]:
        self.asked += 1
        yield from ()
        return True


MONOTONIC = {
    "key of a pairing code": Lifetime(key_of_a_pairing_code, CODE_LIFETIME),
    "media token": Lifetime(media_token, HOUR),
    "bridge command": Lifetime(bridge_command, RESPONSE_TIMEOUT),
    "ended run": Lifetime(ended_run, KEEP_ENDED),
    "bearer that the API has accepted": Lifetime(accepted_bearer, CACHE_SECONDS),
}


@pytest.mark.parametrize("step", [-DAY, 0.0, DAY])
@pytest.mark.parametrize("name", MONOTONIC)
def test_a_step_of_the_wall_clock_neither_ends_nor_prolongs_it(name: str, step: float) -> None:
    row = MONOTONIC[name]
    assert row.is_alive(row.lasts - 0.5, row.lasts - 0.5 + step)
    assert not row.is_alive(row.lasts + 0.5, row.lasts + 0.5 + step)


# --- on the wall clock --------------------------------------------------------------------------------------------


def paired_session() -> IsAlive:
    sessions = PairedSessionRegistry()
    token, _ = sessions.create(START, counting_entropy(), ttl=HOUR)
    return lambda now: sessions.lookup(token, now) is not None


def grant() -> IsAlive:
    _, session = PairedSessionRegistry().create(START, counting_entropy(), ttl=DAY, preset={"bridge": HOUR})
    return lambda now: session.holds("bridge", now.wall)


def key_of_a_session() -> IsAlive:
    keys = PairingApiKeys()
    entropy = counting_entropy()
    key, key_hash = keys.new_key(entropy)
    keys.sessions.create(START, entropy, ttl=DAY, preset={"chat": HOUR}, key_hash=key_hash)
    return lambda now: keys.accepts(key, now) is not None


def access_token() -> IsAlive:
    sessions, entropy = PairedSessionRegistry(), counting_entropy()
    _, session = sessions.create(START, entropy, ttl=DAY)
    access, _, _ = sessions.issue(session, "client", START, entropy)
    return lambda now: sessions.find_by_access_token(access, now) is not None


def refresh_token() -> IsAlive:
    sessions, entropy = PairedSessionRegistry(), counting_entropy()
    token, session = sessions.create(START, entropy, ttl=HOUR)
    _, refresh, _ = sessions.issue(session, "client", START, entropy)
    assert session.token_hash == sha256_hex(token)
    return lambda now: sessions.find_by_refresh_token(f"{token}.{refresh}", now) == (session, True)


WALL = {
    "paired session": Lifetime(paired_session, HOUR),
    "grant": Lifetime(grant, HOUR),
    "key of a paired session": Lifetime(key_of_a_session, HOUR),
    "access token": Lifetime(access_token, ACCESS_LIFETIME),
    "refresh token": Lifetime(refresh_token, HOUR),
}


@pytest.mark.parametrize("name", WALL)
def test_a_step_of_the_wall_clock_moves_its_end(name: str) -> None:
    row = WALL[name]
    assert row.is_alive(row.lasts - 0.5, row.lasts - 0.5)
    assert not row.is_alive(row.lasts + 0.5, row.lasts + 0.5)
    assert not row.is_alive(1.0, 1.0 + DAY)  # set forward: it ends at once
    assert row.is_alive(DAY, row.lasts - 0.5)  # set back: it lasts until the wall clock reaches its end


# --- no other reader ----------------------------------------------------------------------------------------------

# Lifetimes within a process are monotonic. Only lifetimes that outlive the process, or that another machine has fixed,
# may use the wall clock: a module that is added to the first group needs a row in `WALL`.
READERS = {
    "ends by it": """
        cli/host_devices.py machines/pairing_api_keys.py machines/paired_session_registry.py relay/access.py
        relay/websocket/message_dispatch.py relay/websocket/client_connection.py relay/mcp_phone_control.py
        relay/oauth/authorization_server.py relay/service.py relay/session_records.py relay/voice/access.py
        voice/connection.py""",
    "ends by it after months": "dashboard/sign_in.py",
    "is learned anew by it after a day": "agent/model_profiles.py",
    "deletes files that are older": """
        api/gateway/attachment_files.py relay/media/media_service.py voice/event_log.py""",
    "deletes chats that are older": "dashboard/app_proxy.py",
    "warns of an end": "cli/doctor.py cli/health_gathering.py",
    "announces an end": """
        cli/operator_pairing.py phone/safety/master_toggle.py machines/media_registry.py relay/routes/pairing.py
        relay/media/upload_registry.py voice/session.py""",
    "counts the time until a date": "agent/model_client.py",
    "answers with the time of day": "agent/sentence_actions.py",
    "stamps": """
        api/gateway/compression.py api/gateway/prompts.py api/gateway/sessions.py api/gateway/settings.py
        api/mcp_agent.py api/projections/turn_events.py api/routes/completions.py api/routes/responses.py
        api/routes/runs.py api/routes/sessions.py api/routes/status.py api/runs/run.py
        api/cluster/response_store.py api/runs/turn_execution.py cli/desktop_sessions.py cluster/node.py
        phone/attachment_fetcher.py phone/service.py phone/safety/activity_log.py engine/responses.py
        machines/bridge_commands.py machines/run_scheduler.py service_clients/server_stats.py
        relay/routes/inbox.py voice/agent/agent_mode.py agent/system_prompt.py api/change_ledger.py
        engine/audit_log.py machines/owner_messages.py monitoring/health_monitor.py""",
    "passes a `Moment` on": "basics/moment.py relay/cluster/codes.py relay/cluster/coordinator.py",
}


def test_no_other_module_reads_the_wall_clock() -> None:
    found = {path.relative_to(CORE).as_posix() for path in CORE.rglob("*.py") if _reads_wall(path.read_text())}
    assert found == {module for modules in READERS.values() for module in modules.split()}


def _reads_wall(source: str) -> bool:
    if ".wall" not in source:  # parsing takes longer than all the rest
        return False
    return any(isinstance(node, ast.Attribute) and node.attr == "wall" for node in ast.walk(ast.parse(source)))
