import pytest

from svc_proto.basics.errors import Refused
from svc_proto.machines.grants import CHANNELS
from svc_proto.machines.pairing_codes import (
    CODE_TABLE,
    MAX_ENDPOINTS,
    CodeState,
    CodeTrigger,
    PairingCodes,
    PairingMeta,
    merge_terms,
    normalize_code,
    parse_meta,
    parse_registration,
    parse_requested_terms,
)
from tests.machines.fixed_inputs import at
from tests.machines.specified_tables import check_table

# SPEC.md, States and transitions, Pairing code: state, trigger, next state.
SPEC_ROWS = [
    ("(none)", (CodeTrigger.REGISTER,), "Registered"),  # by POST /pairing/register, POST /pairing/mint or the command
    ("Registered", (CodeTrigger.CONSUME,), "Consumed"),  # by the first system/auth envelope with the code
    ("Registered", (CodeTrigger.TEN_MINUTES,), "Expired"),
]


def test_table_matches_the_specification() -> None:
    check_table(CODE_TABLE, CodeState, CodeTrigger, SPEC_ROWS)


@pytest.mark.parametrize(("age", "good"), [(0.0, True), (599.999, True), (600.0, False), (600.001, False)])
@pytest.mark.parametrize("start", [0.0, 0.1, 1e6 + 0.7])
def test_a_code_lives_ten_minutes(start: float, age: float, good: bool) -> None:
    codes = PairingCodes()
    meta = PairingMeta(ttl_seconds=5.0)
    codes.register("Q7M2ZK", at(start), meta)
    assert codes.next_expiry() == start + 600.0
    assert codes.consume(" q7m2zk\n", at(start + age)) == (meta if good else None)
    assert len(codes) == 0


def test_codes_are_replaced_purged_and_dropped_at_the_cap() -> None:
    codes = PairingCodes()
    codes.register("Q7M2ZK", at(0), PairingMeta(ttl_seconds=1.0))
    codes.register("q7m2zk", at(500), PairingMeta(ttl_seconds=2.0))
    assert codes.purge(at(1_099.9)) == []
    assert codes.consume("Q7M2ZK", at(1_099.9)) == PairingMeta(ttl_seconds=2.0)
    codes = PairingCodes()
    codes.register("AAAAAA", at(0), PairingMeta())
    codes.register("BBBBBB", at(1), PairingMeta())
    assert codes.purge(at(600)) == ["AAAAAA"]
    assert codes.next_expiry() == 601.0
    codes = PairingCodes(cap=2)
    for code in ("AAAAAA", "BBBBBB", "CCCCCC"):
        codes.register(code, at(0), PairingMeta())
    assert codes.consume("AAAAAA", at(1)) is None
    assert codes.consume("BBBBBB", at(1)) is not None


@pytest.mark.parametrize("code", ["", "Q7M2Z", "Q7M2ZKK", "Q7M2Z-", "Q7M 2Z", "AAAAß", "\uff21AAAAA", "AAAAA\u0661"])
def test_invalid_codes(code: str) -> None:
    codes = PairingCodes()
    with pytest.raises(Refused) as caught:
        normalize_code(code)
    assert caught.value.extra == {"field": "code"}
    with pytest.raises(Refused):
        codes.register(code, at(0), PairingMeta())
    assert codes.consume(code, at(0)) is None


def test_a_sharp_s_is_not_a_double_s() -> None:
    codes = PairingCodes()
    codes.register("AAAASS", at(0), PairingMeta())
    assert codes.consume("AAAAß", at(0)) is None
    assert codes.consume("aaaass", at(0)) is not None


def test_a_whole_registration() -> None:
    body = {"code": " q7m2zk ", "ttl_seconds": 604800, "grants": {"bridge": 3600}, "transport_hint": "ws"}
    body["endpoints"] = [{"role": "lan"}]
    meta = PairingMeta(
        ttl_seconds=604800.0, grants={"bridge": 3600.0}, transport_hint="ws", endpoints=[{"role": "lan"}]
    )
    assert parse_registration(body, with_endpoints=True) == ("Q7M2ZK", meta)
    without = parse_registration({**body, "endpoints": "not read"}, with_endpoints=False)
    assert without[1].endpoints is None


def test_members_of_the_operator() -> None:
    grants = {**dict.fromkeys(CHANNELS, False), "bridge:read": 0}
    meta = parse_meta({"grants": grants}, with_endpoints=False)
    assert meta == PairingMeta(grants={**dict.fromkeys(CHANNELS), "bridge:read": 0.0})
    assert parse_requested_terms({"grants": grants}) == PairingMeta(grants=dict.fromkeys(CHANNELS))
    members = {"ttl_seconds": None, "grants": None, "transport_hint": None, "endpoints": None}
    assert parse_meta(members, with_endpoints=True) == PairingMeta()
    most: list[object] = [0] * MAX_ENDPOINTS
    assert parse_meta({**members, "endpoints": most}, with_endpoints=True) == PairingMeta(endpoints=most)
    meta = parse_meta({"keep_earlier": True}, with_endpoints=False)
    assert meta == PairingMeta(keep_earlier=True)
    assert merge_terms(meta, parse_requested_terms({})).keep_earlier
    assert not merge_terms(PairingMeta(), parse_requested_terms({"keep_earlier": True})).keep_earlier
    assert not parse_meta({"carries_key": None}, with_endpoints=False).carries_key
    meta = parse_meta({"carries_key": True}, with_endpoints=False)
    assert merge_terms(meta, parse_requested_terms({"carries_key": False})).carries_key
    assert not merge_terms(PairingMeta(), parse_requested_terms({"carries_key": True})).carries_key
    assert parse_meta({"own_key": True}, with_endpoints=False) == PairingMeta(own_key=True)
    own = PairingMeta(key_hash="ab12")
    assert merge_terms(own, PairingMeta(key_hash="cd34")).key_hash == "ab12"
    # Only the relay itself sets the hash of a key.
    hashed: dict[str, object] = {"key_hash": "ab12"}
    assert parse_meta(hashed, with_endpoints=False) == parse_requested_terms(hashed) == PairingMeta()
    assert PairingMeta().grants_chat
    assert PairingMeta(grants={"bridge": None, "chat": 0.0}).grants_chat
    assert not PairingMeta(grants={"chat": None}).grants_chat


@pytest.mark.parametrize(
    ("bodies", "field"),
    [
        ([[]], "body"),
        ([{}, {"code": 123456}, {"code": "  "}, {"code": "bad"}], "code"),
        ([{"code": "bad", "ttl_seconds": True}, {"code": "bad", "ttl_seconds": -1}], "ttl_seconds"),
        ([{"code": "bad", "ttl_seconds": float("inf")}, {"code": "bad", "ttl_seconds": 315_360_000.5}], "ttl_seconds"),
        ([{"code": "bad", "grants": {"chat": None}, "transport_hint": 5}], "grants.chat"),
        ([{"code": "bad", "transport_hint": 5, "endpoints": 5}], "transport_hint"),
        ([{"code": "bad", "transport_hint": "tls"}], "transport_hint"),
        ([{"code": "bad", "endpoints": {}}, {"code": "bad", "endpoints": [0] * (MAX_ENDPOINTS + 1)}], "endpoints"),
        ([{"code": "bad", "carries_key": 1}], "carries_key"),
        ([{"code": "bad", "own_key": "yes"}], "own_key"),
        ([{"code": "bad", "keep_earlier": 1}], "keep_earlier"),
    ],
)
def test_a_bad_registration_is_refused_in_order(bodies: list[object], field: str) -> None:
    for body in bodies:
        with pytest.raises(Refused) as caught:
            parse_registration(body, with_endpoints=True)
        assert (caught.value.status, caught.value.code, caught.value.extra) == (400, "invalid_field", {"field": field})


def test_operator_terms_precede_requested_ones() -> None:
    assert parse_requested_terms({"ttl_seconds": 60, "grants": {"chat": 5, "tui": "x"}}) == PairingMeta(
        ttl_seconds=60.0, grants={"chat": 5.0}
    )
    assert parse_requested_terms({"ttl_seconds": "60", "grants": 5, "transport_hint": "wss"}) == PairingMeta()
    assert parse_requested_terms({}) == PairingMeta()
    phone = PairingMeta(ttl_seconds=60.0, grants={"chat": 5.0})
    assert merge_terms(PairingMeta(ttl_seconds=0.0), phone) == PairingMeta(ttl_seconds=0.0, grants={"chat": 5.0})
    full = PairingMeta(ttl_seconds=1.0, grants={}, transport_hint="ws", endpoints=[])
    assert merge_terms(full, phone) == full
    assert merge_terms(PairingMeta(), phone) == phone
