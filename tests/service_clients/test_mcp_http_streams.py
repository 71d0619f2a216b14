from itertools import pairwise
from typing import Any

import pytest

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.message import Request, empty_response
from svc_proto.engine.router import Router
from svc_proto.service_clients import mcp_http_transport
from svc_proto.service_clients.mcp_client import McpClient
from svc_proto.service_clients.mcp_http_transport import MAX_NOTES
from tests.service_clients.mcp_http_harness import Server, answer, call, late, run, said, stream


def test_endless_stream_ends_with_the_answer() -> None:
    """Drop the connection after the answer, although the server's stream does not end."""

    def endless(message: dict[str, Any]) -> Any:
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": message["id"]}}
        return stream(said(note), said(answer(message, a=1)), said(answer(message, a=2)), then=1e6)

    server = Server(call=endless)
    assert run(server, call)[0] == {"content": [], "a": 1}
    assert all(channel.gone for channel in server.channels)


def test_broken_stream_is_resumed() -> None:
    def get(request: Request) -> Any:
        match request.headers.get(b"last-event-id"):
            case b"e-1":
                return stream(b"id: e-2\ndata:\n\n")
            case b"e-2":
                return stream(said(answer(server.called, late=True)))
            case _:
                return empty_response(405)

    def timed(client: McpClient, engine: Engine) -> Flow[object]:
        result = yield from call(client, engine)
        return result, round(engine.now.mono - began[0], 1)

    def begin(message: object) -> Any:
        began.append(server.engine.now.mono)
        return stream(b"id: e-1\nretry: 700\ndata:\n\n")

    began: list[float] = []
    server = Server(call=begin, get=get)
    assert run(server, timed)[0] == ({"content": [], "late": True}, 1.7)  # 700 ms, then 1 s without a `retry`
    assert server.methods.count("GET") == 3


@pytest.mark.parametrize("last", [b"e 1", b"x" * 2_000, b""])
def test_broken_stream_without_resumption(last: bytes) -> None:
    server = Server(call=lambda message: stream(b"id: %s\ndata: x\n\n" % last))
    assert run(server, call)[0] == "its answer cannot be read: Expecting value at line 1, column 1"
    assert server.methods.count("GET") == 1


def test_resumptions_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_http_transport, "MAX_RESUMED", 3)

    def broken(message: object) -> Any:
        return stream(b"id: e-1\nretry: 1\ndata:\n\n")

    def resume(request: Request) -> Any:
        return empty_response(405) if request.headers.get(b"last-event-id") is None else broken(request)

    def resume_late(request: Request) -> Any:
        is_last = server.methods.count("GET") == 4  # the first one listens for notifications
        return stream(said(answer(server.called))) if is_last else resume(request)

    lost = "the connection ended before the answer"
    for get, result, gets in ((resume, lost, 4), (resume_late, {"content": []}, 4), (Server().get, lost, 2)):
        server = Server(call=broken, get=get)
        assert run(server, call)[0] == result
        assert server.methods.count("GET") == gets


def test_server_message_stream() -> None:
    def get(request: Request) -> Any:
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        asked = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
        is_over = server.methods.count("GET") > 2
        return empty_response(405) if is_over else stream(said(changed, id="9"), said(asked, id="10"))

    server = Server(get=get)
    changes: list[None] = []

    def wait(client: McpClient, engine: Engine) -> Flow[Any]:
        client._on_changed = lambda: changes.append(None)
        yield from client.open(10.0)
        yield from sleep(engine, 10.0)

    run(server, wait)
    assert len(changes) == 2
    assert [headers.get(b"last-event-id") for name, _, headers in server.seen if name == "GET"] == [None, b"10", b"10"]
    assert [message["result"] for name, message, _ in server.seen if name == "None"] == [{}, {}]


def test_listening_begins_again_after_a_break() -> None:
    times: list[float] = []

    def get(request: Request) -> Any:
        times.append(server.engine.now.mono)
        return stream(b": hi\n\n", then=100.0 if server.methods.count("GET") == 3 else 0.0)

    server = Server(get=get)

    def wait(client: McpClient, engine: Engine) -> Flow[Any]:
        yield from client.open(10.0)
        yield from sleep(engine, 1.5)
        server.router = Router(())  # unavailable for a moment
        yield from sleep(engine, 0.1)

    run(server, wait)
    assert server.methods.count("GET") == 2
    times.clear()
    server = Server(get=get)

    def stay(client: McpClient, engine: Engine) -> Flow[Any]:
        yield from client.open(10.0)
        yield from sleep(engine, 105.0)

    run(server, stay)
    assert [after - before for before, after in pairwise(times)] == pytest.approx([1.0, 2.0, 100.0 + 1.0], abs=0.1)


def test_temporarily_unavailable_server() -> None:
    server = Server(get=lambda request: stream(b": hi\n\n"))  # a stream that ends at once

    def talk(client: McpClient, engine: Engine) -> Flow[None]:
        yield from client.open(10.0)
        yield from sleep(engine, 0.5)
        server.process.stop(0.0)
        yield from sleep(engine, 4.0)
        client._carrier.send(b"{}", None)  # a notification without a recipient
        yield from sleep(engine, 4.0)

    run(server, talk)
    assert server.methods.count("GET") == 1


def test_server_requests_are_answered_a_few_at_a_time() -> None:
    def ask(message: dict[str, Any]) -> Any:
        asked = [said({"jsonrpc": "2.0", "id": number, "method": "ping"}) for number in range(200)]
        return stream(*asked, said(answer(message)))

    def post(message: dict[str, Any], request: Request) -> Any:
        return Server.post(server, message, request) if "method" in message else late(server, empty_response(202))

    server = Server(call=ask, post=post)
    assert run(server, call)[0] == {"content": []}
    assert server.methods.count("None") == MAX_NOTES


def test_a_flood_of_events_is_read_a_second_at_a_time() -> None:
    flood = Server(call=lambda message: stream(*[b'data: {"a": "%s"}\n\n' % (b"x" * 200) * 400] * 40))
    seen: list[int] = []

    def count(client: McpClient, engine: Engine) -> Flow[Any]:
        yield from client.open(10.0)
        try:
            return (yield from client.request("tools/call", {"name": "a"}, within=3.0))
        finally:
            seen.append(client.ignored)

    assert run(flood, count)[0] == "there was no answer in 3 s"
    assert seen[0] < 40 * 400 // 2


def test_an_event_may_be_as_long_as_a_message() -> None:
    server = Server(call=lambda message: stream(said(answer(message, long="x" * 2_000_000))))
    assert len(run(server, call)[0]["long"]) == 2_000_000
