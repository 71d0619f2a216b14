import json
from typing import cast

import pytest

from svc_proto.basics.brand import HERMES, SVC, Brand
from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.errors import Refused
from svc_proto.machines.grants import CHANNELS
from svc_proto.machines.paired_session import (
    MAX_DEVICE_TEXT,
    SESSION_TABLE,
    DeviceInfo,
    PairedSession,
    PairingTerms,
    SessionState,
    SessionTrigger,
    parse_device,
    parse_new_name,
    parse_patch,
    recognize_client,
)
from svc_proto.machines.paired_session_registry import PairedSessionRegistry
from tests.machines.fixed_inputs import WALL, at, source
from tests.machines.specified_tables import check_table

# SPEC.md, States and transitions, Paired session: state, trigger, next state.
SPEC_ROWS = [
    ("Active", (SessionTrigger.REVOKE,), "Revoked"),  # by DELETE /sessions/{token_prefix} or the dashboard's proxy
    ("Active", (SessionTrigger.PATCH,), "Active"),
    ("Active", (SessionTrigger.LIFETIME_ELAPSED,), "Expired"),
]


def test_table_matches_the_specification() -> None:
    check_table(SESSION_TABLE, SessionState, SessionTrigger, SPEC_ROWS)


def test_holding_a_grant() -> None:
    session = PairedSessionRegistry().create(at(0), source(), ttl=100.0, preset={"bridge": 10.0})[1]
    assert session.holds("bridge", WALL + 9)
    assert not session.holds("bridge", WALL + 10)
    assert session.holds("chat", WALL + 99)
    assert not session.holds("chat", WALL + 100)
    assert not session.holds("unheard", WALL)
    session.expires_at = WALL + 5
    assert not session.holds("bridge", WALL + 5)


def test_a_session_and_its_terms_survive_its_record() -> None:
    sessions = PairedSessionRegistry()
    token, session = sessions.create(
        at(0), source(), ttl=0.0, preset={"bridge": 60.0, "chat": 0.0, "tui": None, "files": None}, key_hash="ab12"
    )
    session.first_seen -= 1.0
    record = session.to_record()
    assert (record["knows_key"], record["key_hash"], record["expires_at"]) == (False, "ab12", "never")
    assert cast("dict[str, object]", record["grants"])["chat"] == "never"
    stored = json.loads(json.dumps(record))
    assert PairedSession.from_record(stored) == session
    other = PairedSessionRegistry()
    assert other.restore(stored, at(1)) == session
    assert other.lookup(token, at(1)) is not None
    sessions.patch(session, at(0), ttl=10.0, grants=None)
    assert PairedSessionRegistry().restore(session.to_record(), at(10)) is None
    session = PairedSessionRegistry().create(
        at(0.3), source(), ttl=0.0, preset={"bridge": 60.0, "tui": None, "voice:stt": None}
    )[1]
    spans = {**dict.fromkeys(CHANNELS, 0.0), "bridge": 60.0}
    assert session.given == PairingTerms(
        0.0, {name: spans[name] for name in CHANNELS if name not in ("tui", "voice:stt")}
    )
    stored = json.loads(json.dumps(session.to_record()))
    again = PairedSession.from_record(stored)
    assert (again.given, again.grants) == (session.given, session.grants)  # no voice grants come back
    assert again.preset == ("bridge", "tui", "voice:stt")


def test_records_of_older_files_are_read_if_they_have_an_expiry() -> None:
    record: dict[str, object] = {
        "token": "1c2d3e4f-0000-4000-8000-000000000000", "created_at": 1.5, "expires_at": "never",
        "grants": {"chat": 99.0, "bridge": None, "voice:stt": 5},
    }  # fmt: skip
    session = PairedSession.from_record(record)
    assert session.token_hash == sha256_hex("1c2d3e4f-0000-4000-8000-000000000000")
    assert session.token_prefix == "1c2d3e4f"
    assert (session.device_name, session.transport_hint, session.last_seen) == ("Unknown device", "unknown", 1.5)
    assert session.grants == {
        "chat": 99.0,
        "bridge": None,
        "voice:stt": 5.0,
        "voice:config": 99.0,
        "voice:tts": 99.0,
        "voice:realtime": 99.0,
    }
    assert PairedSession.from_record({**record, "token": "1c2d3e4f"}).token_prefix == "1c2d3e4f"
    bare = PairedSession.from_record({**record, "expires_at": 50, "grants": {"bridge": "never"}})
    assert bare.grants == dict.fromkeys(("bridge", "voice:config", "voice:stt", "voice:tts", "voice:realtime"), 50.0)
    record = (
        PairedSessionRegistry().create(at(0), source(), ttl=3600.0, preset={"bridge": 60.0, "tui": 0.5})[1].to_record()
    )
    del record["given"], record["knows_key"], record["key_hash"]
    grants = cast("dict[str, object]", record["grants"])
    del grants["terminal"]
    # The session was renewed 600 s after the pairing; an end in the past must not be read as "never".
    session = PairedSession.from_record({**record, "last_seen": WALL + 600})
    assert session.knows_key  # the usual case
    assert session.key_hash == ""
    given = session.given
    assert given.ttl == given.grants["chat"] == 3000.0
    assert (given.grants["bridge"], given.grants["tui"]) == (1.0, 1.0)
    assert given.grants.keys() == set(CHANNELS) - {"terminal"}
    record = PairedSessionRegistry().create(at(0), source())[1].to_record()
    del record["expires_at"]
    with pytest.raises(Refused):
        PairedSession.from_record(record)
    others: tuple[object, ...] = ([], {"token": 5}, {"token": "1c2d3e4"}, {})
    for bad in others:
        with pytest.raises(Refused, match=r"^(session|token) must be "):
            PairedSession.from_record(bad)


BAD_TERMS: list[object] = [None, {"ttl_seconds": None, "grants": {}}, {"ttl_seconds": 5}]
BAD_MEMBERS: dict[str, list[object]] = {
    "token_hash": [5, "short"],
    "token_prefix": ["short", None],
    "device_name": [5],
    "created_at": [None],
    "last_seen": ["today"],
    "expires_at": ["soon", float("nan"), True],
    "grants": [None, {"chat": "x"}],
    "preset": [[5]],
    "knows_key": ["yes"],
    "key_hash": [5],
    "given": [*BAD_TERMS, {"ttl_seconds": 5, "grants": {"chat": "never"}}],
}


@pytest.mark.parametrize(("name", "value"), [(name, bad) for name, values in BAD_MEMBERS.items() for bad in values])
def test_a_bad_record_is_refused(name: str, value: object) -> None:
    record = PairedSessionRegistry().create(at(0), source())[1].to_record()
    with pytest.raises(Refused):
        PairedSession.from_record({**record, name: value})


def test_payloads_of_clients_are_parsed() -> None:
    payload: dict[str, object] = {
        "device_name": " Kitchen ", "device_hostname": "kitchen", "device_id": "5b6e", "device_model": "x" * 999,
        "device_platform": 16, "client_surface": "android", "device_form_factor": "\ud800",
    }  # fmt: skip
    assert parse_device(payload) == DeviceInfo(
        name="Kitchen", id="5b6e", model="x" * 200, platform="unknown", surface="android", form_factor="?"
    )
    assert parse_device({"device_name": "", "device_hostname": "host"}).name == "host"
    assert parse_device({}) == DeviceInfo()
    assert parse_patch({"ttl_seconds": 60}) == (60.0, None)
    assert parse_patch({"ttl_seconds": 1000.5}) == (1000.5, None)  # SPEC.md: a number
    assert parse_patch({"ttl_seconds": 60.0, "grants": {"chat": 0}}) == (60.0, {"chat": 0.0})
    assert parse_patch({"ttl_seconds": None, "grants": {}}) == (None, {})
    assert parse_patch({"grants": {"terminal": False}}) == (None, {"terminal": None})
    assert parse_patch({"device_name": "Kitchen"}) == (None, None)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({}, None),
        ({"device_name": None}, None),
        ({"device_name": " Phone  of\nAda \u202e"}, "Phone of Ada"),
        ({"device_name": "\u6f22\u5b57"}, "\u6f22\u5b57"),
        ({"device_name": "x" * MAX_DEVICE_TEXT}, "x" * MAX_DEVICE_TEXT),
    ],
)
def test_parsing_a_new_name(body: object, name: str | None) -> None:
    assert parse_new_name(body) == name


@pytest.mark.parametrize("name", ["", " \n", "x" * (MAX_DEVICE_TEXT + 1), 7])
def test_a_bad_name_is_refused(name: object) -> None:
    with pytest.raises(Refused, match="device_name"):
        parse_new_name({"device_name": name})


@pytest.mark.parametrize(
    ("bodies", "field"),
    [
        ([[]], "body"),
        ([{}, {"ttl_seconds": None}, {"ttl_seconds": float("nan")}, {"ttl_seconds": True}], "ttl_seconds"),
        ([{"ttl_seconds": -1}, {"ttl_seconds": 10**400}], "ttl_seconds"),
        ([{"grants": []}], "grants"),
    ],
)
def test_a_bad_patch_is_refused(bodies: list[object], field: str) -> None:
    for body in bodies:
        with pytest.raises(Refused) as caught:
            parse_patch(body)
        assert (caught.value.status, caught.value.extra) == (400, {"field": field})


UNKNOWN: list[dict[str, object]] = [{"names": "other"}, {"names": ["svc"]}, {"supports": {}}, {}]
UNKNOWN += [{"supports": ["typed_stream_events"]}, {"client_surface": "android"}]


@pytest.mark.parametrize(
    ("payload", "brand"),
    [
        ({"supports": {"typed_stream_events": True, "event_schema_version": 1}}, HERMES),
        ({"supports": {"event_schema_version": 1}}, HERMES),
        ({"supports": {"typed_stream_events": False}, "names": "svc"}, SVC),
        ({"names": "hermes"}, HERMES),
        *((payload, None) for payload in UNKNOWN),
    ],
)
def test_a_client_is_recognized_by_its_sign_in(payload: dict[str, object], brand: Brand | None) -> None:
    assert recognize_client(payload) is brand
