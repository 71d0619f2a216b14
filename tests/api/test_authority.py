from typing import Any

import pytest

from svc_proto.machines.grants import CHANNELS
from svc_proto.machines.paired_session import DeviceInfo, PairedSession
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.machines.pairing_codes import PairingMeta
from svc_proto.service_clients.authority import BRIDGE, MANAGE, POWERS, authority_headers
from tests.api.harness import KEY
from tests.api.scripted_agent import TurnHarness
from tests.support.playbook import counting_entropy

Preset = dict[str, float | None] | None
CODE = "Q7M2ZK"
NOTHING = dict.fromkeys(CHANNELS)
CHAT = {**NOTHING, "chat": 0.0}


class KeyHolder:
    """API server with pairing keys, and the key of a code with these grants, whose pairing is completed if `paired`."""

    def __init__(self, preset: Preset, *, paired: bool = True) -> None:
        self.keys = PairingApiKeys()
        self.book = TurnHarness(keys=self.keys)
        self.key, key_hash = self.keys.new_key(counting_entropy())
        self.keys.codes.register(CODE, self.book.now, PairingMeta(grants=preset, key_hash=key_hash))
        self.session: PairedSession | None = None
        if paired:
            self.keys.codes.consume(CODE, self.book.now)
            device = DeviceInfo(name="Tablet")
            members: Any = {"preset": preset, "key_hash": key_hash, "device": device}
            self.session = self.keys.sessions.create(self.book.now, counting_entropy(), **members)[1]

    def held(self, **more: Any) -> tuple[str, set[str]]:
        """Start a turn with the key; return the name and powers of its authority."""
        self.book.chat(self.book.session(), key=self.key, **more)
        authority = self.book.hand.turn.authority
        return authority.name, {power for power in POWERS if authority.holds(power)}

    def begin_run(self, key: str = "") -> str:
        """Start a run with `key`, by default the key of the pairing; return its id."""
        run: str = self.book.request("POST", "/v1/runs", {"input": "go"}, key=key or self.key).json["run_id"]
        return run

    def answer(self, run: str, choice: str, key: str = "") -> int:
        """Answer the approval request of a run; return the status."""
        body = {"choice": choice, "call_id": "call_7"}
        return self.book.request("POST", f"/v1/runs/{run}/approval", body, key=key or self.key).status


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(
    ("preset", "powers"),
    [
        (None, {BRIDGE, MANAGE}),
        (CHAT, set()),
        ({**CHAT, "bridge": 0.0}, {BRIDGE}),
        ({**CHAT, "manage": 0.0}, {MANAGE}),
        ({"terminal": None}, {BRIDGE}),
    ],
)
def test_a_run_has_the_authority_of_its_pairing(preset: Preset, powers: set[str], paired: bool) -> None:
    other = KeyHolder(preset, paired=paired)
    name, held = other.held()
    assert held == powers
    assert name.endswith("Tablet") if paired else name.startswith("key ")


def test_a_grant_that_ends_is_missing_from_running_turns() -> None:
    other = KeyHolder({"bridge": 60.0})
    assert other.held()[1] == {BRIDGE, MANAGE}
    other.book.after(61)
    authority = other.book.hand.turn.authority
    assert [authority.holds(power) for power in POWERS] == [False, True]
    assert other.session is not None
    other.keys.sessions.revoke(other.session, other.book.now)
    assert not any(authority.holds(power) for power in POWERS)


def test_the_relay_names_the_principal_and_what_it_does_not_hold() -> None:
    book = TurnHarness()
    for headers, name, powers in (
        ((), "owner", {BRIDGE, MANAGE}),
        (authority_headers("0a1b2c3d Phone", ("chat", "bridge", "manage")), "0a1b2c3d Phone", set()),
        (authority_headers("é\r\nx-evil: 1", ("manage",)), "???x-evil: 1", {BRIDGE}),
    ):
        book.chat(book.session(), headers=[*headers])
        authority = book.hand.turn.authority
        assert (authority.name, {power for power in POWERS if authority.holds(power)}) == (name, powers)


def test_a_pairing_cannot_name_another_principal_and_can_only_renounce() -> None:
    other = KeyHolder(None)
    headers = [*authority_headers("owner", ("manage",))]
    assert other.held(headers=headers) == (f"{other.session and other.session.token_prefix} Tablet", {BRIDGE})


def test_changes_need_the_right_manage() -> None:
    """Check one route; `test_authority_table` compares all routes with the table of authority."""
    change = ("PATCH", "/api/config", {"model": "other"})
    for preset, allowed in ((CHAT, False), (None, True), ({**CHAT, "manage": 0.0}, True)):
        other = KeyHolder(preset)
        answer = other.book.request(*change, key=other.key)
        assert (answer.status == 403) is not allowed, (preset, answer)
        if not allowed:
            assert "manage" in str(answer.json)
            assert other.book.request(*change, key=KEY).status != 403
            renounced = [*authority_headers("Voice", ("manage",))]
            assert other.book.request(*change, key=KEY, headers=renounced).status == 403
    assert KeyHolder(CHAT).book.request("GET", "/api/config").status == 200


@pytest.mark.parametrize(
    ("preset", "choice", "status"),
    [(CHAT, "always", 403), (CHAT, "session", 403), (CHAT, "once", 200), (CHAT, "deny", 200), (None, "always", 200)],
)
def test_an_answer_that_outlives_its_call_needs_manage(preset: Preset, choice: str, status: int) -> None:
    other = KeyHolder(preset)
    run = other.begin_run()
    other.book.hand.request_approval()
    assert other.answer(run, choice) == status
    if status == 403:
        assert other.answer(run, choice, KEY) == 200


@pytest.mark.parametrize(("preset", "status"), [(CHAT, 403), ({**CHAT, "bridge": 0.0}, 403), (None, 200)])
def test_an_answer_for_the_run_of_another_client_needs_manage(preset: Preset, status: int) -> None:
    other = KeyHolder(preset)
    run = other.begin_run(KEY)
    other.book.hand.request_approval()
    assert other.answer(run, "once") == status
