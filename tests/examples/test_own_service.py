"""Tests of a custom service: over real sockets with the runtime `threads`, and in virtual time."""

import http.client
import json
import os
import socket
import threading
from collections.abc import Iterator

import pytest

from examples.codecs import ask
from examples.own_service import PAUSE, Notes
from runtimes.host.host import Program
from runtimes.loops.waker import HostHandle
from runtimes.net.listener import bind
from runtimes.run import run
from svc_proto import Accepted, Address, ChannelId, Moment, Received, Send, Started
from svc_proto.engine import Engine

HOME = Address("127.0.0.1", 8080)


@pytest.fixture
def port() -> Iterator[int]:
    listener, handle = bind("127.0.0.1", 0), HostHandle()
    program = Program(core=Engine(Notes(), entropy=os.urandom), listeners=[listener])
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(run(program, "threads", handle=handle)))
    thread.start()
    with listener.sock:
        yield listener.address.port
        handle.stop()
        thread.join(10.0)
    assert codes == [0]


def test_notes(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60.0)

    def call(method: str, path: str, body: str | None = None) -> tuple[int, object]:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    assert call("POST", "/notes", '{"text": "one"}') == (201, {"notes": 1})
    assert call("GET", "/notes") == (200, {"notes": ["one"]})
    assert call("GET", "/notes/0") == (200, {"text": "one"})
    assert call("GET", "/notes/1") == (404, {"error": "not_found", "message": "there is no such note"})
    assert call("POST", "/notes", "[]")[0] == 400
    assert call("POST", "/notes", '{"text": 1}')[0] == 400
    assert call("DELETE", "/notes")[0] == 405
    connection.close()


def test_subscribers_get_new_notes(port: int) -> None:
    told: list[str] = []
    with socket.create_connection(("127.0.0.1", port), 10.0) as listener:
        thread = threading.Thread(target=lambda: told.extend(ask(listener, "/live", "I am here")))
        thread.start()
        writer = http.client.HTTPConnection("127.0.0.1", port, timeout=60.0)
        while not told and thread.is_alive():  # the first notes may come before the subscription
            writer.request("POST", "/notes", '{"text": "news"}')
            writer.getresponse().read()
        thread.join(10.0)
        writer.close()
    assert told == ["news"]


def test_a_flow_waits_in_virtual_time() -> None:
    core, ch = Engine(Notes(), entropy=bytes), ChannelId(2)
    core.handle(Started(), Moment(0.0, 0.0))
    core.handle(Accepted(ch, HOME, HOME), Moment(0.0, 0.0))
    assert core.handle(Received(ch, b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"), Moment(0.0, 0.0)) == []
    (sent,) = core.handle(None, Moment(PAUSE, PAUSE))
    assert isinstance(sent, Send)
    assert sent.data.startswith(b"HTTP/1.1 204 No Content\r\n")
