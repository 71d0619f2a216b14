"""Tests of media: screenshots, uploads, large files, and links that are swapped."""

import base64
import os
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from svc_proto.wire.limits import Limits
from tests.loops.environment import Environment, bearer
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.support.scenario_plan import PLAIN

MIB = 1024 * 1024
LARGE = 100 * MIB  # the limit of SPEC.md "Limits"
PEAK = 12 * MIB  # of memory during the transfer of a large file
ENOUGH = 4 * PEAK
SECRET = b"a secret of this host"
INSIDE = b"what every client may have"
PNG = b"\x89PNG\r\n\x1a\n"
FORM = "multipart/form-data; boundary=xyz"
FORM_BEGIN = b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="large.bin"\r\n\r\n'
FORM_END = b"\r\n--xyz--\r\n"


@pytest.fixture
def live(host: Environment, tmp_path: Path) -> Environment:
    """Return a real environment with a relay that serves files by their paths only from `public` of `tmp_path`."""
    (tmp_path / "public").mkdir()
    host.start_relay(temp_dir=str(tmp_path / "public"), workspace=str(tmp_path / "nowhere"))
    return host


def register(world: Environment, path: Path) -> str:
    answer = world.http("POST", "/media/register", {"path": str(path), "content_type": "application/octet-stream"})
    assert answer.status == 200, answer
    return str(answer.json["token"])


def uploads(folder: Path) -> list[Path]:
    return sorted((folder / "spool").glob("*"))


def test_json_upload_clipboard_and_notifications(relayed: Environment) -> None:
    world = relayed
    ws = world.pair()
    content = base64.b64encode(PNG + os.urandom(300_000)).decode()
    body = {"file_name": "a.png", "content_type": "image/png", "content": content}
    token = world.http("POST", "/media/upload", body, headers=bearer(ws.token)).json["token"]
    got = world.http("GET", f"/media/{token}", headers=bearer(ws.token))
    assert base64.b64encode(got.body).decode() == content
    image = {"format": "png", "bytes_base64": content}
    pasted = world.http("POST", "/clipboard/inbox", image, headers=bearer(ws.token))
    assert pasted.json["size_bytes"] == 300_008
    ws.send_envelope("notifications", "notification.posted", {"title": "Hi"})
    ws.pong()
    assert world.http("GET", "/notifications/recent").json["notifications"] == [{"title": "Hi"}]


# --- large files ----------------------------------------------------------------------------------------------------


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def check_memory() -> None:
    """Check that the peak of memory traced in this process, which runs the relay too, is below `PEAK`."""
    assert tracemalloc.get_traced_memory()[1] < PEAK


@pytest.fixture
def much(live: Environment, full: bool) -> int:
    """Return a size in bytes: the greatest permitted on one loop or with --full, and a smaller one on the others."""
    return LARGE if full or live.name == PLAIN else ENOUGH


def test_a_hundred_mebibytes_go_out_in_little_memory(
    live: Environment, tmp_path: Path, much: int, traced: None
) -> None:
    large = tmp_path / "public" / "large.bin"
    with large.open("wb") as file:
        file.seek(much - 4)
        file.write(b"tail")
    token = live.pair().token
    path = f"/media/{register(live, large)}"
    wire = live.connect()
    get = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    wire.send(get + get.replace(b"\r\n\r\n", b"\r\nRange: bytes=-4\r\n\r\n"))
    assert b"content-length: %d\r\n" % much in wire.read_until(b"\r\n\r\n")
    left = much - 4
    while left:
        left -= len(wire.read_exactly(min(left, MIB)))
    assert wire.read_exactly(4) == b"tail"
    assert b"HTTP/1.1 206 " in wire.read_until(b"\r\n\r\n")
    assert wire.read_exactly(4) == b"tail"
    check_memory()


def test_a_hundred_mebibytes_come_in_in_little_memory(
    live: Environment, tmp_path: Path, much: int, traced: None
) -> None:
    ws = live.pair()
    wire = live.connect()
    size = len(FORM_BEGIN) + much + len(FORM_END)
    wire.send(
        f"POST /media/upload HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {ws.token}\r\n"
        f"Content-Type: {FORM}\r\nContent-Length: {size}\r\n\r\n".encode()
    )
    wire.send(FORM_BEGIN)
    piece = os.urandom(MIB)
    for _ in range(much // MIB):
        wire.send(piece)
    wire.send(FORM_END)
    assert b"HTTP/1.1 200 " in wire.read_until(b"\r\n\r\n")
    (path,) = uploads(tmp_path)
    assert path.stat().st_size == much
    assert path.stat().st_mode & 0o777 == 0o600
    with path.open("rb") as file:
        file.seek(much - MIB)
        assert file.read() == piece
    check_memory()
    ws.close()
    ws.wire.close()
    wire.close()
    assert live.relay.stop() == 0
    assert uploads(tmp_path) == []


def test_an_upload_that_breaks_off_leaves_nothing(live: Environment, tmp_path: Path) -> None:
    live.start_relay(limits=Limits(body_timeout=5.0))  # a loop that reports no reset notices the timeout
    token = live.pair().token
    wire = live.connect()
    wire.send(
        f"POST /media/upload HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: {FORM}\r\nContent-Length: {LARGE}\r\n\r\n".encode()
    )
    wire.send(FORM_BEGIN + bytes(MIB))
    live.eventually(lambda: bool(uploads(tmp_path)))
    wire.abort()
    live.eventually(lambda: not uploads(tmp_path))


def test_a_file_over_tls(world: Environment, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if world.virtual_time:
        pytest.skip("no real disk")
    data = os.urandom(3 * MIB + 5)
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "a").write_bytes(data)
    world.start_relay(tls=True, temp_dir=str(tmp_path / "public"))
    token = world.pair(tls=True).token
    client = world.client(tls=True)
    for _ in range(2):
        answer = client.request("GET", f"/media/by-path?path={tmp_path}/public/a", headers=bearer(token))
        assert (answer.status, answer.body) == (200, data)


# --- links that are swapped -----------------------------------------------------------------------------------------


INSTANTS = 60  # events of the simulation after which a link is swapped; a fetch has fewer


@pytest.mark.parametrize("first", ["public", "private"])
@pytest.mark.parametrize("what", ["file", "folder", "token"])
def test_a_link_that_is_swapped_at_any_instant_never_leaks(
    virtual_world: SimulatedEnvironment, what: str, first: str
) -> None:
    """A link is swapped after 0 to `INSTANTS` - 1 events of a fetch; no response has the secret."""
    disk = virtual_world.relay_host.disk
    disk.put("/tmp/real/f", INSIDE)
    disk.put("/home/user/private/f", SECRET)
    token = virtual_world.pair().token
    targets = {"public": "/tmp/real", "private": "/home/user/private"}
    leaf, tail = ("", "/f") if what == "folder" else ("/f", "")
    disk.symlink("/tmp/swapped", "/tmp/real" + leaf)
    path = f"/media/by-path?path=/tmp/swapped{tail}"
    if what == "token":
        disk.put("/tmp/registered", INSIDE)
        path = f"/media/{register(virtual_world, Path('/tmp/registered'))}"
    name = "/tmp/registered" if what == "token" else "/tmp/swapped"
    client = virtual_world.client()
    last = "private" if first == "public" else "public"
    seen = set()
    for instant in range(INSTANTS):
        disk.remove(name)
        disk.symlink(name, targets[first] + leaf)
        calling = client.begin("GET", path, headers=bearer(token))
        with suppress(TimeoutError):  # the fetch may end before
            virtual_world.wait_until(passed(instant), timeout=1.0)
        disk.symlink(name, targets[last] + leaf)
        answer = calling.finish()
        assert SECRET not in answer.body
        assert answer.status in (200, 403, 404)
        assert (answer.status == 200) == (answer.body == INSIDE)
        seen.add(answer.status)
    assert len(seen) == 2  # swapped before the check, and after it


def passed(events: int) -> Callable[[], bool]:
    """Return a condition that is true from call `events + 1` on."""
    left = iter(range(events))
    return lambda: next(left, None) is None
