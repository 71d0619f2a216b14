"""Test of the example in which state machines of svc_proto run inside a Starlette app, called as by an ASGI server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast

import pytest

pytest.importorskip("starlette")

from examples.machines_in_starlette import app, limiter

Message = MutableMapping[str, Any]
PEER = ("192.0.2.7", 50_000)


async def call(method: str, path: str, token: str = "") -> tuple[int, Any]:
    """Send a request to the example app; return the status, and the body, parsed if it is JSON."""
    said: list[Message] = []
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {token}".encode())],
        "client": PEER,
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        said.append(message)

    await app(scope, receive, send)
    head, *body = said
    text = b"".join(each.get("body", b"") for each in body)
    return head["status"], json.loads(text) if text.startswith((b"{", b"[")) else text


class Phone:
    """Client of the example app's WebSocket, in the part of an ASGI server."""

    def __init__(self) -> None:
        self.to_app: asyncio.Queue[Message] = asyncio.Queue()
        self.from_app: asyncio.Queue[Message] = asyncio.Queue()
        scope = {"type": "websocket", "path": "/ws", "query_string": b"", "headers": [], "client": PEER}
        put = cast("Callable[[Message], Awaitable[None]]", self.from_app.put)
        self.task = asyncio.ensure_future(app(scope, self.to_app.get, put))
        self.to_app.put_nowait({"type": "websocket.connect"})

    async def says(self) -> Any:
        """Return the app's next message, parsed, or the close code; an accept is skipped."""
        message = await asyncio.wait_for(self.from_app.get(), 60.0)
        if message["type"] == "websocket.accept":
            return await self.says()
        return json.loads(message["text"]) if message["type"] == "websocket.send" else message["code"]

    def say(self, channel: str, kind: str, **payload: object) -> None:
        text = json.dumps({"channel": channel, "type": kind, "id": "1", "payload": payload})
        self.to_app.put_nowait({"type": "websocket.receive", "text": text})

    async def leave(self) -> None:
        self.to_app.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await asyncio.wait_for(self.task, 60.0)


async def paired() -> tuple[Phone, str]:
    """Return a phone that has paired and is connected, and its session token."""
    _, answer = await call("POST", "/code")
    phone = Phone()
    phone.say("system", "auth", pairing_code=answer["code"], device_name="Pixel", device_id="p1")
    welcome = await phone.says()
    assert welcome["type"] == "auth.ok"
    return phone, welcome["payload"]["session_token"]


async def the_main_job() -> None:
    phone, token = await paired()
    assert (await call("GET", "/ping", "wrong"))[0] == 401
    asked = asyncio.ensure_future(call("GET", "/ping", token))
    order = (await phone.says())["payload"]
    assert (order["method"], order["path"]) == ("GET", "/ping")
    phone.say("bridge", "bridge.response", request_id=order["request_id"], status=200, result={"pong": True})
    assert await asked == (200, {"pong": True})
    await phone.leave()
    assert (await call("GET", "/ping", token))[0] == 503
    again = Phone()
    again.say("system", "auth", session_token=token)
    assert (await again.says())["type"] == "auth.ok"
    await again.leave()


async def a_phone_that_goes() -> None:
    phone, token = await paired()
    asked = asyncio.ensure_future(call("GET", "/screen", token))
    await phone.says()
    await phone.leave()
    assert (await asked)[0] == 502


async def guesses() -> None:
    _, answer = await call("POST", "/code")
    for _ in range(5):
        phone = Phone()
        phone.say("system", "auth", pairing_code="AAAAAA")
        assert (await phone.says())["type"] == "auth.fail"
        assert await phone.says() == 1008
        await phone.task
    phone = Phone()
    phone.say("system", "auth", pairing_code=answer["code"])
    assert (await phone.says())["type"] == "auth.fail"  # the address is blocked, and the code is still valid
    await phone.leave()


@pytest.mark.parametrize("story", [the_main_job, a_phone_that_goes, guesses])
def test_a_story(story: Callable[[], Awaitable[None]]) -> None:
    limiter.clear()
    asyncio.run(cast("Any", story()))
