from typing import Any

import pytest
from attrs import evolve

from runtimes.files.env_file import parse_env_file
from svc_proto.api.config import ApiConfig
from svc_proto.commands import WriteConfig
from tests.api.harness import KEY, ApiHarness
from tests.api.test_host_settings import ENV, PUBLIC, TOKEN
from tests.relay.test_audit import recorded
from tests.support.playbook import REMOTE


def book(env: str = "", **config: Any) -> ApiHarness:
    return ApiHarness(evolve(ApiConfig(key=KEY), **config), files={ENV: env} if env else {})


def rows(answer: list[dict[str, Any]]) -> dict[str, object]:
    return {each["name"]: each["value"] if each["value"] is not None else each["is_set"] for each in answer}


def test_settings_are_written_into_the_env_file() -> None:
    there = book("# mine\nexport SVC_BRAND=svc\nOTHER='a b'\n")
    texts = {"public_url": "", "brand": "svc", "pair_scope": "", "pair_ttl": ""}
    assert rows(there.request("GET", "/api/host").json["settings"]) == {**texts, "metrics_token": False}
    body = {"public_url": PUBLIC, "brand": "hermes", "metrics_token": TOKEN}
    answer = there.request("PATCH", "/api/host", body)
    assert answer.status == 200
    assert TOKEN not in answer.body.decode()
    written = there.files[ENV].decode()
    assert written.startswith("# mine\nexport SVC_BRAND=hermes\nOTHER='a b'\n")
    found = parse_env_file(written)
    assert (found["SVC_PUBLIC_URL"], found["SVC_METRICS_TOKEN"]) == (PUBLIC, TOKEN)
    assert [(each.event, each.principal, dict(each.about)) for each in recorded(there)] == [
        ("setting changed", "owner", {"settings": "SVC_BRAND, SVC_METRICS_TOKEN, SVC_PUBLIC_URL"})
    ]
    assert not any(TOKEN in str(record) for record in there.logs)


def test_defaults_of_new_codes_are_stored_and_audited() -> None:
    there = book()
    assert there.request("PATCH", "/api/host", {"pair_scope": "chat", "pair_ttl": "86400"}).status == 200
    assert parse_env_file(there.files[ENV].decode()) == {"SVC_PAIR_SCOPE": "chat", "SVC_PAIR_TTL": "86400"}
    assert [dict(each.about) for each in recorded(there)] == [{"settings": "SVC_PAIR_SCOPE, SVC_PAIR_TTL"}]
    assert there.request("PATCH", "/api/host", {"pair_scope": ""}).status == 200
    assert rows(there.request("GET", "/api/host").json["settings"])["pair_scope"] == ""


def test_an_empty_change_writes_nothing() -> None:
    there = book()
    assert there.request("PATCH", "/api/host", {}).status == 200
    assert ENV not in there.files
    assert recorded(there) == []


def test_values_of_the_environment_stay() -> None:
    there = book("SVC_BRAND=svc\n", host_environment={"SVC_BRAND": "hermes"})
    brand = there.request("GET", "/api/host").json["settings"][1]
    assert (brand["value"], brand["in_environment"]) == ("hermes", True)
    refused = there.request("PATCH", "/api/host", {"brand": "svc"})
    assert (refused.status, refused.json["error"]["code"]) == (409, "set_in_environment")
    assert there.files[ENV] == b"SVC_BRAND=svc\n"


def test_a_server_without_a_key_changes_nothing_for_other_hosts() -> None:
    there = book(key="", host="0.0.0.0")
    for method, path, body in (("PATCH", "/api/host", {"brand": "svc"}), ("POST", "/api/key/rotate", {})):
        refused = there.request(method, path, body, key="", peer=REMOTE)
        assert (refused.status, refused.json["error"]["code"]) == (409, "keyless")
    assert ENV not in there.files


def test_a_server_without_a_key_serves_its_own_host() -> None:
    there = book(key="")
    assert there.request("PATCH", "/api/host", {"brand": "hermes"}, key="").status == 200
    assert there.files[ENV] == b"SVC_BRAND=hermes\n"
    assert there.request("POST", "/api/key/rotate", {}, key="").status == 409


@pytest.mark.parametrize("path", ["/api/host", "/api/key/rotate"])
def test_files_that_cannot_be_read_or_written(path: str) -> None:
    method, body = ("PATCH", {"brand": "svc"}) if path == "/api/host" else ("POST", {})
    broken = book("A=1\nB='")
    assert broken.request(method, path, body).status == 500
    assert broken.request("GET", "/api/host").status == 500
    denied = book("A=1\n")
    denied.disk.denied.add(ENV)
    assert denied.request(method, path, body).status == 500
    full = book("A=1\n")
    full.refuse = (WriteConfig,)
    answer = full.request(method, path, body)
    assert answer.status == 500
    assert "no space left on the device" in answer.json["error"]["message"]
    full.refuse = ()
    assert full.request(method, path, body).status == 200


def test_a_new_key_counts_at_once() -> None:
    there = book(f"API_SERVER_KEY={KEY}\n")
    answer = there.request("POST", "/api/key/rotate", {})
    assert (answer.status, answer.json) == (200, {"ok": True, "changed": True})
    new = parse_env_file(there.files[ENV].decode())["API_SERVER_KEY"]
    assert new != KEY
    assert there.request("GET", "/api/sessions").status == 401
    assert there.request("GET", "/api/sessions", key=new).status == 200
    assert [each.event for each in recorded(there)] == ["key rotated"]
    assert new.encode() not in answer.body


def test_a_key_of_the_environment_stays() -> None:
    there = book(f"API_SERVER_KEY={KEY}\n", key_in_environment=True)
    refused = there.request("POST", "/api/key/rotate", {})
    assert refused.status == 409
    assert there.files[ENV] == f"API_SERVER_KEY={KEY}\n".encode()
