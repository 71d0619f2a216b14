from svc_proto.commands import Signal, SignalName, Spawn
from svc_proto.engine.child_process import INHERITED
from tests.api.harness import CONFIG, ApiHarness
from tests.relay.test_audit import recorded

SERVERS = """\
mcp_servers:
  shop:
    command: /bin/shop
    args: [--all]
    env: {TOKEN: s3cr3t}
  spare: {command: x, enabled: false}
"""


def spawned(book: ApiHarness) -> list[Spawn]:
    return [command for command in book.commands if isinstance(command, Spawn)]


def test_without_servers_nothing_is_loaded() -> None:
    book = ApiHarness()
    assert book.request("GET", "/api/mcp-servers").json == {"servers": []}
    assert book.request("POST", "/api/mcp-servers/reload").json == {"servers": []}
    assert book.api.parts.servers is None


def test_servers_are_read_from_the_file() -> None:
    book = ApiHarness(files={CONFIG: SERVERS})
    rows = book.request("GET", "/api/mcp-servers").json["servers"]
    assert [(row["name"], row["state"]) for row in rows] == [("shop", "not started"), ("spare", "off")]
    assert spawned(book) == []
    names = [row["name"] for row in book.request("GET", "/v1/toolsets").json["data"]]
    assert names[-1] == "mcp-shop"
    reloading = book.call("POST", "/api/mcp-servers/reload")
    book.after(1.0)
    (row, _) = reloading.result.json["servers"]
    assert row["state"] == "failed"
    (order,) = spawned(book)[:1]
    assert (order.argv, order.env, order.inherited_env) == (("/bin/shop", "--all"), (("TOKEN", "s3cr3t"),), INHERITED)
    book.disk.put(CONFIG, b"mcp_servers: {}\n")
    assert book.request("GET", "/api/mcp-servers").json == {"servers": []}
    book.disk.put(CONFIG, b"mcp_servers: [7]\n")
    assert book.request("GET", "/api/mcp-servers").json == {"servers": []}
    assert "s3cr3t" not in repr(book.logs) + repr(book.answers)


def test_a_server_is_switched_and_tested() -> None:
    book = ApiHarness(files={CONFIG: SERVERS})
    assert book.request("PUT", "/api/mcp-servers/shop/enabled", {"enabled": False}).json["enabled"] is False
    off = book.request("POST", "/api/mcp-servers/shop/test").json
    assert (off["ok"], off["error"], off["state"]) == (False, "it is switched off (enabled: false)", "off")
    assert spawned(book) == []
    assert book.request("PUT", "/api/mcp-servers/shop/enabled", {"enabled": True}).status == 200
    testing = book.call("POST", "/api/mcp-servers/shop/test")
    book.after(1.0)
    assert (testing.result.json["ok"], testing.result.json["state"], bool(spawned(book))) == (False, "failed", True)
    assert "s3cr3t" not in repr(book.answers)
    assert book.request("PUT", "/api/mcp-servers/shop/enabled", {"enabled": "no"}).status == 400
    book.disk.fill()
    assert book.request("PUT", "/api/mcp-servers/shop/enabled", {"enabled": False}).status == 500
    changed = [(each.event, dict(each.about)) for each in recorded(book)]
    assert changed == [("setting changed", {"settings": "mcp_servers.shop.enabled"})] * 2
    for path in ("none/test", "none/enabled"):
        method = "POST" if path.endswith("test") else "PUT"
        assert book.request(method, f"/api/mcp-servers/{path}", {"enabled": True}).status == 404
    assert ApiHarness().request("POST", "/api/mcp-servers/none/test").status == 404


def test_servers_end_with_the_api() -> None:
    book = ApiHarness(files={CONFIG: SERVERS})
    book.request("GET", "/api/mcp-servers")
    reloading = book.call("POST", "/api/mcp-servers/reload")
    book.stop()
    book.after(10.0)
    assert reloading.answer is None or reloading.result.status in (200, 503)
    assert SignalName.KILL not in [command.signal for command in book.commands if isinstance(command, Signal)]
    assert not book.node.alive
