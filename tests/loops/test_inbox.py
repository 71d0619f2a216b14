"""The clipboard inbox and the notifications, on every loop (wire core 7)."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

from tests.loops.virtual import VirtualWorld
from tests.loops.world import REMOTE, World, bearer

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
    return world.http("POST", "/clipboard/inbox", body, headers=bearer(token), peer=REMOTE)


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
        assert relayed.contents(answer.json["path"]) == data
    assert len(inbox(relayed, tmp_path)) == len(IMAGES)


def test_many_pastes_at_once_are_as_many_files(relayed: World, tmp_path: Path) -> None:
    token = relayed.pair().token
    body = {"format": "gif", "bytes_base64": base64.b64encode(b"GIF87a").decode()}
    callers = [relayed.client().begin("POST", "/clipboard/inbox", body, headers=bearer(token)) for _ in range(20)]
    paths = {caller.finish().json["path"] for caller in callers}
    assert len(paths) == len(inbox(relayed, tmp_path)) == 20


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
