from collections.abc import Mapping
from typing import Any

import pytest

from svc_proto.cli import relay_requests
from svc_proto.cli.error_text import PAIRED
from svc_proto.cli.errors import CliError
from svc_proto.cli.session_store import StoredSession
from svc_proto.commands import Exit
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.service_client import ServiceFault
from svc_proto.wire.events import Headers
from tests.cli.harness import REFUSED, OneShotHarness, Reply, UpstreamRequest, as_json
from tests.support.http_codec import Response

RELAY = RelayClient("the relay", "http://h:8767", token="t")
SESSION = StoredSession(url="ws://h:8767", token="t")
OK = {"channel": "system", "type": "auth.ok", "id": "1", "payload": {"session_token": "t"}}


# --- terminals ----------------------------------------------------------------------------------------------------


def listing(answer: Mapping[str, Any] | str | None) -> OneShotHarness[list[JsonObject]]:
    def socket(message: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
        if message["type"] == "auth":
            return [OK]
        if answer is None:
            return None
        return [] if isinstance(answer, str) else [{**answer, "id": message["id"]}]

    return OneShotHarness(lambda engine: relay_requests.list_terminals(engine, SESSION), socket=socket)


def test_terminals() -> None:
    for payload, rows in (({"sessions": [{"name": "a"}, 7]}, [{"name": "a"}]), ({}, [])):
        assert listing({"channel": "terminal", "type": "terminal.sessions", "payload": payload}).run() == rows


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"channel": "system", "type": "error", "payload": {"message": "no grant"}}, "no grant"),
        ({"channel": "system", "type": "error", "payload": {}}, "no reason given"),
        (None, "connection lost: reset"),
        ("silence", "no answer in time"),
    ],
)
def test_no_terminals(answer: Mapping[str, Any] | str | None, says: str) -> None:
    assert listing(answer).fails() == Exit(1, f"the relay lists no terminals: {says}")


def test_a_terminal_is_ended() -> None:
    def answering(kind: str, **payload: object) -> OneShotHarness[None]:
        def socket(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
            if message["type"] == "auth":
                return [OK]
            return [{"channel": "terminal", "type": f"terminal.{kind}", "id": "9", "payload": payload}]

        return OneShotHarness(lambda engine: relay_requests.kill_terminal(engine, SESSION, "work"), socket=socket)

    there = answering("detached", session_name="work", reason="client kill")
    assert there.run() is None
    (asked,) = [message for message in there.said if message["type"] == "terminal.kill"]
    assert asked["payload"] == {"session_name": "work"}
    says = "the session work was not ended: there is no such session; svc-relay sessions lists those there are"
    assert answering("error", session_name="work", message="there is no such session").fails() == Exit(1, says)


def test_other_envelopes_are_ignored() -> None:
    there = listing("silence")
    sessions = {"channel": "terminal", "type": "terminal.sessions", "id": "z", "payload": {"sessions": []}}
    other = {"channel": "x", "type": "y", "id": "other", "payload": {}}
    there.script = [(1, lambda w: w.push(other)), (2, lambda w: w.push(sessions))]
    assert there.run() == []


def test_rows_of_terminals() -> None:
    shown = {"name": "a", "live": True, "attached": 2, "created_at": 40, "shell": "/bin/sh"}
    rows = relay_requests.terminal_rows([JsonObject(shown), JsonObject({"name": 7})], 100.0)
    assert rows == [("a", "attached", "2", "1m", "/bin/sh"), ("", "waiting", "-", "-", "")]


# --- notifications ------------------------------------------------------------------------------------------------


def test_notifications() -> None:
    found = as_json({"notifications": [{"title": "x"}, 7]})
    there = OneShotHarness(lambda engine: relay_requests.list_notifications(engine, RELAY, 5), http=found)
    assert there.run() == [{"title": "x"}]
    assert there.asked[0].path == "/notifications/recent?limit=5"


def test_no_notifications() -> None:
    there = OneShotHarness(lambda engine: relay_requests.list_notifications(engine, RELAY, 5), http=(401, b""))
    assert there.fails() == Exit(1, PAIRED[ServiceFault.UNAUTHORIZED])


def test_rows_of_notifications() -> None:
    shown = {"package_name": "org.mail", "title": "Hi\n\x1b[2J", "text": None, "posted_at": 40_000}
    rows = relay_requests.notification_rows([JsonObject(shown), JsonObject()], 100.0)
    assert rows == [("1m ago", "org.mail", "Hi  [2J", ""), ("-", "", "", "")]


# --- media --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/tmp/caf\udce9", "/media/by-path?path=%2Ftmp%2Fcaf%E9"),  # a name that is no UTF-8
        ("k3yKk3yKk3yKk3yKk3yKk3", "/media/k3yKk3yKk3yKk3yKk3yKk3"),
        (" MEDIA:svc-relay://abcdefgh ", "/media/abcdefgh"),
        ("MEDIA:hermes-relay://abcdefgh", "/media/abcdefgh"),
        ("MEDIA:/tmp/a b?.png", "/media/by-path?path=%2Ftmp%2Fa%20b%3F.png"),
        ('MEDIA:"/tmp/my photo.png"', "/media/by-path?path=%2Ftmp%2Fmy%20photo.png"),
    ],
)
def test_where_media_are(text: str, path: str) -> None:
    assert relay_requests.media_path(text) == path


@pytest.mark.parametrize("text", ["", "'", "short", "../etc/passwd", "a/bcdefgh", "abc defgh"])
def test_no_media(text: str) -> None:
    with pytest.raises(CliError) as caught:
        relay_requests.media_path(text)
    assert caught.value.code == 2


class MediaServer:
    """Server of one file, in ranges unless `ranges` is False."""

    def __init__(self, data: bytes, name: str = 'inline; filename="../a.png"') -> None:
        self.data = data
        self.name = name
        self.ranges = True

    def http(self, asked: UpstreamRequest) -> Response:
        named = (b"content-disposition", self.name.encode())
        if not self.ranges:
            return Response(200, Headers([named]), self.data)
        first, last = map(int, (asked.headers.get(b"range") or b"").removeprefix(b"bytes=").split(b"-"))
        last = min(last, len(self.data) - 1)
        if first > last:
            return Response(416, Headers([named]), b'{"error": "no"}')
        placed = (b"content-range", b"bytes %d-%d/%d" % (first, last, len(self.data)))
        return Response(206, Headers([named, placed]), self.data[first : last + 1])


def fetching(server: MediaServer) -> OneShotHarness[relay_requests.FetchedMedia]:
    return OneShotHarness(lambda engine: relay_requests.save_media(engine, RELAY, "/media/x"), http=server.http)


def pieces(world: OneShotHarness[relay_requests.FetchedMedia]) -> bytes:
    return b"".join(bytes(tell.fields["data"]) for tell in world.told if tell.event == "piece")  # type: ignore[call-overload] # bytes


def test_a_file_in_pieces() -> None:
    there = fetching(MediaServer(bytes(range(256)) * 40_000))
    assert there.run() == relay_requests.FetchedMedia("a.png", "application/json", 10_240_000)
    assert pieces(there) == bytes(range(256)) * 40_000
    assert len(there.asked) == 3


@pytest.mark.parametrize(
    ("disposition", "name"), [("inline", ""), ('inline; filename=".."', ""), ('x; filename="c:\\b"', "b")]
)
def test_names_stay_in_the_folder(disposition: str, name: str) -> None:
    assert fetching(MediaServer(b"x", disposition)).run().name == name


def test_an_empty_file() -> None:
    there = fetching(MediaServer(b""))
    assert there.run() == relay_requests.FetchedMedia("a.png", "application/octet-stream", 0)
    assert pieces(there) == b""


def test_a_server_without_ranges() -> None:
    server = MediaServer(b"all of it")
    server.ranges = False
    there = fetching(server)
    assert there.run().size == 9
    assert len(there.asked) == 1


def test_a_file_that_becomes_shorter_is_not_saved() -> None:
    server = MediaServer(bytes(relay_requests.CHUNK_SIZE + 1))

    def http(asked: UpstreamRequest) -> Response:
        answer = server.http(asked)
        server.data = b"short"
        return answer

    there = OneShotHarness(lambda engine: relay_requests.save_media(engine, RELAY, "/media/x"), http=http)
    assert there.fails() == Exit(1, "the relay refuses: no (status 416)")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (REFUSED, "the relay at http://h:8767 cannot be reached: connection refused"),
        ((404, b""), "the relay has no such file: a token lasts a day, and no longer than the relay runs"),
        ((401, b""), PAIRED[ServiceFault.UNAUTHORIZED]),
        (Response(206, Headers([(b"content-range", b"bytes 0-4/5")]), b""), "the relay sent an empty piece: try again"),
    ],
)
def test_no_file(answer: Reply, says: str) -> None:
    there: OneShotHarness[relay_requests.FetchedMedia] = OneShotHarness(
        lambda engine: relay_requests.save_media(engine, RELAY, "/media/x"), http=answer
    )
    assert there.fails() == Exit(1, says)


# --- the phone ----------------------------------------------------------------------------------------------------


def test_arguments() -> None:
    found = relay_requests.parse_arguments(["text=a=b", "x:=3", "list:=[1]", "empty="])
    assert found == {"text": "a=b", "x": 3, "list": [1], "empty": ""}


@pytest.mark.parametrize("arguments", [["x"], ["=1"], [":=1"], ["a=1", "a:=2"], ["a:=x"]])
def test_bad_arguments(arguments: list[str]) -> None:
    with pytest.raises(CliError) as caught:
        relay_requests.parse_arguments(arguments)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("method", "arguments", "path", "body"),
    [
        *(("GET", {}, "/ping", b""), ("GET", {"a": "b c", "n": 3}, "/ping?a=b+c&n=3", b"")),
        *(("POST", {"text": "x"}, "/ping", b'{"text":"x"}'), ("POST", {}, "/ping", b"{}")),
    ],
)
def test_calls(method: str, arguments: dict[str, object], path: str, body: bytes) -> None:
    there = OneShotHarness(
        lambda engine: relay_requests.call_phone(engine, RELAY, method, "/ping", arguments), http=as_json({"a": 1}, 403)
    )
    assert there.run() == (403, {"a": 1})
    assert (there.asked[0].method, there.asked[0].path, there.asked[0].body) == (method, path, body)


def test_revoked_session() -> None:
    there = OneShotHarness(lambda engine: relay_requests.call_phone(engine, RELAY, "GET", "/ping", {}), http=(401, b""))
    assert "pair again" in there.fails().reason
