"""The clipboard inbox and the notifications, on every loop (wire core 7)."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.loops.virtual import VirtualWorld
from tests.loops.world import REMOTE, World, bearer

MIB = 1024 * 1024
IMAGES = {
    "png": b"\x89PNG\r\n\x1a\n",
    "jpg": b"\xff\xd8\xff\xe0",
    "JPEG": b"\xff\xd8\xff\xdb",
    "gif": b"GIF89a",
    "WebP": b"RIFF\x10\x00\x00\x00WEBP",
}


def paste(world: World, token: str, kind: str, data: bytes, **more: object) -> Any:
    """Paste an image; the answer."""
    body = {"format": kind, "bytes_base64": base64.b64encode(data).decode(), **more}
    return world.post("/clipboard/inbox", body, headers=bearer(token), peer=REMOTE)


def contents(world: World, path: str) -> bytes:
    """Of a file on the relay's host."""
    if isinstance(world, VirtualWorld):
        return world.relay_host.disk.get(path)
    file = Path(path)
    assert file.stat().st_mode & 0o777 == 0o600
    return file.read_bytes()


def inbox(world: World, tmp_path: Path) -> list[str]:
    """The names of the files in the inbox."""
    if isinstance(world, VirtualWorld):
        return sorted(world.relay_host.disk.files(f"{world.relay_host.state}/images/inbox"))
    return sorted(os.listdir(tmp_path / "images" / "inbox"))


def test_a_paste_of_every_format(relayed: World, tmp_path: Path) -> None:
    token = relayed.pair().token
    for kind, magic in IMAGES.items():
        data = magic + os.urandom(5000)
        answer = paste(relayed, token, kind, data, filename_hint="../../Übung shot")
        assert answer.status == 200, answer
        assert {key: value for key, value in answer.json.items() if key != "path"} == {
            "ok": True,
            "size_bytes": len(data),
            "swept_stale": 0,
        }
        folder, _, name = answer.json["path"].rpartition("/")
        assert folder.endswith("/images/inbox")
        assert name.startswith("clip_")
        assert name.endswith(f"_bungshot.{kind.lower().replace('jpg', 'jpeg')}")
        assert contents(relayed, answer.json["path"]) == data
    assert len(inbox(relayed, tmp_path)) == len(IMAGES)


def test_many_pastes_at_once_are_as_many_files(relayed: World, tmp_path: Path) -> None:
    token = relayed.pair().token
    body = json.dumps({"format": "gif", "bytes_base64": base64.b64encode(b"GIF87a").decode()}).encode()
    callers = [relayed.client().begin("POST", "/clipboard/inbox", headers=bearer(token), body=body) for _ in range(20)]
    paths = {caller.finish().json["path"] for caller in callers}
    assert len(paths) == len(inbox(relayed, tmp_path)) == 20


@pytest.mark.repetition  # of the limit that the route's own tests have
def test_as_much_as_an_image_may_have_and_a_byte_more(relayed: World, tmp_path: Path) -> None:
    token = relayed.pair().token
    data = IMAGES["png"] + bytes(25 * MIB - 8)
    assert paste(relayed, token, "png", data).json["size_bytes"] == 25 * MIB
    answer = paste(relayed, token, "png", data + b"x")
    assert (answer.status, answer.code) == (413, "too_large")
    assert len(inbox(relayed, tmp_path)) == 1


def test_old_pastes_are_swept(relayed: World, tmp_path: Path) -> None:
    token = relayed.pair().token
    first = paste(relayed, token, "gif", b"GIF89a").json["path"]
    if isinstance(relayed, VirtualWorld):
        relayed.pass_time(301.0)
    else:
        old = Path(first).stat().st_mtime - 301
        os.utime(first, (old, old))
    answer = paste(relayed, token, "gif", b"GIF87a").json
    assert answer["swept_stale"] == 1
    assert inbox(relayed, tmp_path) == [answer["path"].rpartition("/")[2]]


@pytest.mark.parametrize(
    ("headers", "status"), [({}, 401), ({"authorization": "Bearer nobody"}, 401)], ids=["without", "wrong"]
)
def test_who_may_paste_and_read(relayed: World, headers: dict[str, str], status: int) -> None:
    assert relayed.post("/clipboard/inbox", {}, headers=headers).status == status
    assert relayed.http("GET", "/notifications/recent", headers=headers, peer=REMOTE).status == status
    assert relayed.http("GET", "/notifications/recent", headers=headers).status == 200
    token = relayed.pair().token
    assert relayed.http("GET", "/notifications/recent", headers=bearer(token), peer=REMOTE).status == 200


def test_the_newest_hundred_notifications_of_all_phones(relayed: World) -> None:
    phones = [relayed.fake_phone(name) for name in ("One", "Two")]
    for number in range(130):
        phone = phones[number % 2]
        phone.say("notifications", "notification.posted", {"title": f"n{number}", "text": None, "posted_at": number})
        phone.pong()
    phones[0].say("notifications", "notification.posted", {"title": "x" * 20_000})  # more than one may have
    phones[0].say("notifications", "notification.removed", {"title": "no such type"})
    phones[0].pong()
    for limit, count in (("", 20), ("?limit=1", 1), ("?limit=100", 100), ("?limit=9999", 100)):
        answer = relayed.http("GET", f"/notifications/recent{limit}").json
        assert (answer["ok"], answer["count"]) == (True, count)
        assert [entry["title"] for entry in answer["notifications"]] == [f"n{129 - at}" for at in range(count)]
    (newest,) = relayed.http("GET", "/notifications/recent?limit=1").json["notifications"]
    assert newest == {"title": "n129", "text": None, "posted_at": 129}


def test_a_restart_empties_the_notifications(world: World) -> None:
    relay = world.start_relay(durable=True)
    phone = world.fake_phone()
    phone.say("notifications", "notification.posted", {"title": "Hi"})
    phone.pong()
    assert world.http("GET", "/notifications/recent").json["count"] == 1
    phone.wire.close()
    assert relay.stop(2.0) == 0
    relay.restart()
    assert world.http("GET", "/notifications/recent").json == {"ok": True, "notifications": [], "count": 0}


def test_a_client_that_only_posts_costs_nobody_else_anything(relayed: World) -> None:
    """Notifications need no grant and get no answer, so a flood of them is bounded by the ring alone."""
    noisy, phone = relayed.pair("Noisy", grants={"chat": 0}), relayed.fake_phone()
    text = "x" * 10_000
    for _ in range(500):
        noisy.say("notifications", "notification.posted", {"title": text})
    calling = relayed.client().begin("GET", "/ping", headers=bearer(phone.token))
    phone.respond(phone.command()["request_id"], {})
    assert calling.finish().status == 200
    noisy.pong()
    assert relayed.http("GET", "/notifications/recent?limit=100").json["count"] == 100
