from typing import Any

import pytest

from svc_proto.dashboard import app_proxy
from svc_proto.dashboard.sign_in import COOKIE
from tests.api.harness import CONFIG
from tests.dashboard.app_client import AppClient, AppHarness
from tests.support.http_harness import SILENT
from tests.support.playbook import REMOTE


@pytest.fixture
def phone() -> AppClient:
    return AppHarness().sign_in()


def chat(phone: AppClient, text: str = "/echo hello", **params: object) -> str:
    """Chat in a new session and return its id."""
    socket = phone.socket()
    session = socket.new_session(**params)
    socket.call("prompt.submit", session_id=session, text=text)
    phone.book.after(5.0)
    return session


def test_chats_are_listed_page_by_page_and_archived_on_request(phone: AppClient) -> None:
    first, second = chat(phone, source="webui"), chat(phone)
    phone.socket().new_session()  # without a message
    page = phone.request("GET", "/api/sessions?limit=100&offset=0&order=recent&min_messages=1").json
    assert [row["id"] for row in page["sessions"]] == [second, first]
    row = page["sessions"][1]
    assert (row["source"], row["profile"], row["is_active"], row["message_count"]) == ("webui", "default", True, 2)
    assert (row["pinned"], row["archived"]) == (False, False)
    assert len(phone.request("GET", "/api/sessions?limit=1&offset=1").json["sessions"]) == 1
    assert len(phone.request("GET", "/api/sessions?limit=x&min_messages=-1").json["sessions"]) == 3
    for offset, count in (("9" * 9, 0), ("9" * 10, 3)):
        assert len(phone.request("GET", f"/api/sessions?offset={offset}").json["sessions"]) == count
    everywhere = phone.request("GET", "/api/profiles/sessions?profile=all&limit=100").json["sessions"]
    assert {row["profile"] for row in everywhere} == {"default"}
    assert phone.request("GET", "/api/profiles/sessions?profile=work").json["sessions"] == []
    phone = AppHarness().sign_in()
    kept, gone = chat(phone), chat(phone)
    assert phone.request("PATCH", f"/api/sessions/{gone}", {"archived": True, "profile": "default"}).status == 200
    assert phone.request("PATCH", f"/api/sessions/{kept}", {"title": "Kept", "pinned": True}).json["title"] == "Kept"

    def listed(which: str) -> list[str]:
        return [row["id"] for row in phone.request("GET", f"/api/sessions?archived={which}").json["sessions"]]

    assert (listed("exclude"), listed("only"), listed("include")) == ([kept], [gone], [gone, kept])


def test_a_chat_is_read_in_windows_and_deleted(phone: AppClient) -> None:
    session = chat(phone)
    path = f"/api/sessions/{session}/messages"
    latest = phone.request("GET", f"{path}?limit=1&offset=0&order=latest").json
    assert [(row["role"], row["id"], row["row_id"]) for row in latest["messages"]] == [("assistant", 2, 2)]
    assert latest["pagination"] == {"limit": 1, "offset": 0, "order": "latest", "returned": 1}
    whole = phone.request("GET", f"{path}?limit=9999&order=oldest").json
    assert [row["row_id"] for row in whole["messages"]] == [1, 2]
    assert whole["pagination"]["limit"] == 500
    export = phone.request("GET", f"/api/sessions/{session}/export").json
    assert (export["session"]["id"], len(export["messages"])) == (session, 2)
    assert phone.request("GET", f"/api/sessions/{session}").json["id"] == session
    assert phone.request("GET", "/api/sessions/search?q=hello").json["count"] == 2
    session = chat(phone)
    assert phone.request("DELETE", f"/api/sessions/{session}").json == {"ok": True}
    assert phone.request("GET", f"/api/sessions/{session}/messages").status == 404


def test_old_chats_are_pruned_after_a_look(phone: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    old, used = chat(phone), chat(phone)
    phone.book.step_clock(10 * 86_400.0)
    socket = phone.socket()
    socket.call("session.resume", session_id=used)
    socket.call("prompt.submit", session_id=used, text="/echo again")
    phone.book.after(5.0)
    new = chat(phone, source="webui")
    wanted = {"dry_run": True, "older_than_days": 7, "profile": "default"}
    found = phone.request("POST", "/api/sessions/prune", wanted).json
    assert (found["matched"], [row["id"] for row in found["sessions"]]) == (1, [old])
    assert found["oldest_started_at"] == found["newest_started_at"]
    by_source = {"source": "webui", "include_archived": True}
    assert phone.request("POST", "/api/sessions/prune", by_source).json["sessions"][0]["id"] == new
    assert phone.request("POST", "/api/sessions/prune", {"source": "moon"}).json["oldest_started_at"] is None
    assert phone.request("POST", "/api/sessions/prune", {}).status == 400
    done = phone.request("POST", "/api/sessions/prune", {**wanted, "dry_run": False}).json
    assert done == {"ok": True, "removed": 1}
    assert [row["id"] for row in phone.request("GET", "/api/sessions").json["sessions"]] == [new, used]
    phone = AppHarness().sign_in()
    for number in range(101):
        phone.book.step_clock(10 * 86_400.0 * (number == 90))
        phone.request("POST", "/api/agent/sessions", {"title": str(number)})
    assert phone.request("POST", "/api/sessions/prune", {"older_than_days": 10}).json["matched"] == 90
    monkeypatch.setattr(app_proxy, "MAX_PRUNED", 100)
    assert phone.request("POST", "/api/sessions/prune", {"older_than_days": 7}).json["matched"] == 89


@pytest.mark.parametrize(
    ("path", "members"),
    [
        ("/api/config", {"agent": {"personalities": {}}}),
        ("/api/config/schema", {"fields": {}, "category_order": []}),
        ("/api/profiles/active", {"active": "default", "current": "default"}),
        ("/api/skills", {"skills": []}),
        ("/api/model/info", {"model": ""}),
        ("/api/model/options", {"provider": "builtin"}),
        ("/api/mcp/servers", {"servers": []}),
        ("/api/memory", {"active": "builtin"}),
        ("/api/audio/elevenlabs/voices", {"available": False, "voices": []}),
    ],
)
def test_sections_of_the_settings(phone: AppClient, path: str, members: dict[str, Any]) -> None:
    answer = phone.request("GET", path)
    assert answer.status == 200
    assert members.items() <= answer.json.items()


def test_mcp_servers_are_switched_and_tested() -> None:
    phone = AppHarness(files={CONFIG: "mcp_servers: {spare: {command: /bin/x, enabled: false}}\n"}).sign_in()
    (row,) = phone.request("GET", "/api/mcp/servers").json["servers"]
    assert (row["name"], row["enabled"]) == ("spare", False)
    assert phone.request("POST", "/api/mcp/servers/spare/test").json["state"] == "off"
    assert phone.request("PUT", "/api/mcp/servers/spare/enabled", {"enabled": True}).json["enabled"] is True
    (row,) = phone.request("GET", "/api/mcp/servers").json["servers"]
    assert (row["enabled"], row["transport"]) == (True, "stdio")
    assert phone.request("POST", "/api/mcp/servers/none/test").status == 404
    book = AppHarness()
    cookie = f"{COOKIE}={book.sign_in().token}".encode()
    del book.servers[8642]
    book.http = lambda asked: SILENT
    call = book.call("POST", "/api/mcp/servers/slow/test", headers=[(b"cookie", cookie)], peer=REMOTE)
    book.after(20.0)
    assert call.answer is None
    book.after(10.0)
    assert call.result.status == 502


def test_the_one_profile_and_its_model(phone: AppClient) -> None:
    (row,) = phone.request("GET", "/api/profiles").json["profiles"]
    assert (row["name"], row["is_default"], row["skill_count"], row["gateway_running"]) == ("default", True, 0, True)
    assert phone.request("POST", "/api/profiles/active", {"name": "default"}).json["ok"] is True
    assert phone.request("POST", "/api/profiles/active", {"name": "work"}).status == 404
    assert phone.request("GET", "/api/dashboard/plugins").json == []
    set_path = "/api/model/set"
    options = phone.request("GET", "/api/model/options").json
    assert phone.request("POST", set_path, {"scope": "vision", "model": options["model"]}).status == 400
    assert phone.request("POST", set_path, {"scope": "main", "provider": "custom", "model": "x"}).status == 400
    assert phone.request("POST", set_path, {"scope": "main", "model": options["model"]}).json["ok"] is True


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/cron/jobs"), ("GET", "/api/env"), ("PUT", "/api/config"), ("POST", "/api/git/review/pr-list")],
)
def test_sections_that_this_service_lacks(phone: AppClient, method: str, path: str) -> None:
    assert phone.request(method, path, {} if method != "GET" else None).status in (404, 405)
