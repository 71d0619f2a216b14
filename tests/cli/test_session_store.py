import json

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from svc_proto.cli.session_store import (
    RemoveSession,
    StoredSession,
    UpdateSession,
    apply_change,
    is_damaged,
    latest_api,
    parse_sessions,
    record_members,
    status_json,
)

PIN = "sha256/" + "A" * 43 + "="
URL = "ws://192.0.2.10:8767"
FILE = {
    "version": 1,
    "sessions": {
        URL: {
            "token": "1c2d", "server_version": "1.0.0", "paired_at": 1795225960, "cert_pin_sha256": None,
            "grants": {"chat": 1797818023.4, "bridge": None}, "ttl_expires_at": 1797818023.4, "endpoint_role": "lan",
            "prefer_secure_routes": False, "tools_consented": False, "computer_use_consented": False
        }
    },
}  # fmt: skip
SESSION = StoredSession(
    url=URL,
    token="1c2d",
    server_version="1.0.0",
    paired_at=1795225960,
    grants={"chat": 1797818023.4, "bridge": None},
    expires_at=1797818023.4,
    role="lan",
)


def test_the_file_of_the_wire_reference() -> None:
    assert parse_sessions(json.dumps(FILE)) == {URL: SESSION}
    assert "1c2d" not in repr(SESSION)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sessions": []}', '{"sessions": {"ws://h": 7}}', "\ufffd"])
def test_unusable_file_is_an_empty_store(text: str) -> None:
    assert parse_sessions(text) == {}


@pytest.mark.parametrize(("text", "damaged"), [("", False), (" \n", False), ("{}", False), ("{", True), ("[]", True)])
def test_damage(text: str, damaged: bool) -> None:
    assert is_damaged(text) is damaged


@pytest.mark.parametrize("token", [None, 7, "", "a b", "\u00e9", "a\n"])
def test_record_without_token_is_ignored(token: object) -> None:
    assert parse_sessions(json.dumps({"sessions": {"ws://h": {"token": token}}})) == {}


def test_members_of_a_wrong_type_count_as_absent() -> None:
    members = {
        "token": "t",
        "server_version": 1,
        "paired_at": True,
        "cert_pin_sha256": "nonsense",
        "grants": {"chat": "soon", "tui": None, "bridge": 1e15},
        "ttl_expires_at": "never",
        "endpoint_role": [],
        "route_candidates": {},
        "route_cert_pins": [],
        "tools_consented": 1,
    }
    (found,) = parse_sessions(json.dumps({"sessions": {"ws://h": members}})).values()
    assert found == StoredSession(url="ws://h", token="t", grants={"tui": None})


def test_routes_and_their_pins() -> None:
    routes = {"route_candidates": [7, {"role": "lan"}], "route_cert_pins": {"a": PIN, "b": "x"}}
    members = {"token": "t", "grants": [], **routes}
    (found,) = parse_sessions(json.dumps({"sessions": {"ws://h": members}})).values()
    assert (found.grants, found.candidates, found.route_pins) == (None, ({"role": "lan"},), {"a": PIN})


def test_a_new_record() -> None:
    text = apply_change("", UpdateSession(URL, record_members(SESSION)))
    assert text.startswith('{\n  "version": 1,\n  "sessions": {\n')
    assert parse_sessions(text) == {URL: SESSION}
    assert list(json.loads(text)["sessions"][URL])[:10] == list(FILE["sessions"][URL])  # type: ignore[index] # an object


def test_a_pairing_overwrites_an_expiry_and_keeps_the_consent() -> None:
    old = json.loads(json.dumps(FILE))
    old["sessions"][URL].update(tools_consented=True, unknown=7, api_url="http://h:8642", api_key="s3cret")
    old["later"] = True
    fresh = StoredSession(url=URL, token="new")
    found = json.loads(apply_change(json.dumps(old), UpdateSession(URL, record_members(fresh))))
    record = found["sessions"][URL]
    assert (record["ttl_expires_at"], record["tools_consented"], record["unknown"]) == (None, True, 7)
    assert found["later"] is True
    assert parse_sessions(json.dumps(found)) == {URL: evolve(fresh, tools_consented=True)}


def test_the_api_of_an_invite() -> None:
    known = {"token": "t", "api_url": "http://h:8642", "api_key": "s3cret"}
    odd = {"token": "t", "paired_at": 9, "api_url": "ftp://h", "api_key": "a b"}
    found = parse_sessions(json.dumps({"sessions": {"ws://a": known, "ws://b": odd}}))
    assert (found["ws://a"].api_url, found["ws://a"].api_key) == ("http://h:8642", "s3cret")
    assert (found["ws://b"].api_url, found["ws://b"].api_key) == (None, "")
    assert "s3cret" not in repr(found)
    assert "s3cret" not in json.dumps(status_json(found, reveal=True))
    assert latest_api(found) == found["ws://a"]
    assert latest_api({**found, "ws://c": evolve(found["ws://a"], paired_at=1)}).paired_at == 1  # type: ignore[union-attr]
    assert latest_api({}) is None


def test_removal_requires_the_token_and_leaves_other_records() -> None:
    text = apply_change(json.dumps(FILE), UpdateSession("ws://other", {"token": "x"}))
    assert list(parse_sessions(text)) == [URL, "ws://other"]
    for kept in (RemoveSession(URL, "another"), RemoveSession("ws://third", "1c2d")):
        assert list(parse_sessions(apply_change(text, kept))) == [URL, "ws://other"]
    assert list(parse_sessions(apply_change(text, RemoveSession(URL, "1c2d")))) == ["ws://other"]
    assert json.loads(apply_change('{"sessions": {"a": 7}}', RemoveSession("a", "x")))["sessions"] == {"a": 7}
    assert "Büro" in apply_change("", UpdateSession(URL, {"device_name": "Büro"}))


def test_status() -> None:
    found = status_json({URL: SESSION}, reveal=False)[URL]
    dates = {"pairedAt": 1795225960, "ttlExpiresAt": 1797818023.4}
    flags = dict.fromkeys(("preferSecureRoutes", "toolsConsented", "computerUseConsented"), False)
    grants = {"chat": 1797818023.4, "bridge": None}
    named = {"token": "(redacted)", "serverVersion": "1.0.0", "endpointRole": "lan", "certPinSha256": None}
    assert found == {**named, **dates, **flags, "grants": grants}
    full = StoredSession(url=URL, token="t", candidates=({"role": "lan"},), route_pins={"a": PIN})
    shown = status_json({URL: full}, reveal=True)[URL]
    assert isinstance(shown, dict)
    assert (shown["token"], shown["routeCandidates"], shown["routeCertPins"]) == ("t", [{"role": "lan"}], {"a": PIN})
    assert shown["grants"] is None
    assert status_json({}, reveal=True) == {}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from([*FILE["sessions"][URL], "route_candidates", "route_cert_pins"]),  # type: ignore[index] # an object
        ANYTHING,
    )
)
@settings(max_examples=25)
def test_any_record_can_be_read_changed_and_read_again(members: dict[str, object]) -> None:
    text = json.dumps({"sessions": {"ws://h": {**members, "token": "t"}}})
    (found,) = parse_sessions(text).values()
    again = parse_sessions(apply_change(text, UpdateSession("ws://h", {})))
    assert again == {"ws://h": found}
    json.dumps(status_json(again, reveal=False))
