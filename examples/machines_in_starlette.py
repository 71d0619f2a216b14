"""State machines only, inside a Starlette app: pairing codes, sessions with grants, the limiter, and bridge commands.

HTTP, WebSockets and the loop are Starlette's; the machines decide by tables which action is permitted, and when.

  pip install starlette uvicorn && uvicorn examples.machines_in_starlette:app --port 8767
  curl -X POST http://127.0.0.1:8767/code                                        {"code": "Q7M2ZK"}
  python -m clients.phone --remote ws://127.0.0.1:8767 --code Q7M2ZK --allow     prints its token with --print-token
  curl -H "Authorization: Bearer <token>" http://127.0.0.1:8767/ping

No machine has a clock or a timer of its own: calls that depend on the time take the `Moment`, and expired entries are
ignored. The tables have limits, but for that of the phones, which has an entry for each socket at most.
"""

import asyncio
import os
import time

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from svc_proto import Moment, Refused, new_code, new_uuid
from svc_proto.machines import (
    AuthRateLimiter,
    BridgeCommands,
    CommandOutcome,
    PairedSessionRegistry,
    PairingCodes,
    PairingMeta,
    PhoneRegistry,
    merge_terms,
    parse_device,
    parse_requested_terms,
    relay_outcome,
)
from svc_proto.wire import Envelope, parse_envelope, write_envelope

SIGN_IN_WITHIN = 30.0  # s

codes, sessions, limiter, phones, commands = (
    PairingCodes(),
    PairedSessionRegistry(),
    AuthRateLimiter(),
    PhoneRegistry(),
    BridgeCommands(),
)
sockets: dict[int, WebSocket] = {}
waiting: dict[str, asyncio.Future[CommandOutcome]] = {}


def now() -> Moment:
    """Return the present time on both clocks, for the machines, which read no clock themselves."""
    return Moment(time.monotonic(), time.time())


def settle(request_id: str, outcome: CommandOutcome | None) -> None:
    """Give the outcome of a command to its caller, if one waits."""
    caller = waiting.pop(request_id, None)
    if caller is not None and outcome is not None and not caller.done():
        caller.set_result(outcome)


async def make_code(request: Request) -> Response:
    """Create a code that one phone may use within ten minutes, and clear the limiter.

    A real app authenticates the caller.
    """
    code = new_code(os.urandom)
    codes.register(code, now(), PairingMeta())
    limiter.clear()
    return JSONResponse({"code": code})


async def command(request: Request) -> Response:
    """Send a GET to the phone, and return its answer, or an error after its disconnection or a timeout.

    Raises `HTTPException` for a caller without a session that may control phones, and when no phone can be chosen.
    """
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    session = sessions.lookup(token, now()) if scheme.lower() == "bearer" else None
    if session is None or not session.holds("bridge", now().wall):
        raise HTTPException(401)
    try:
        phone = phones.choose(None)
    except Refused as refused:
        raise HTTPException(refused.status, refused.message) from None
    request_id, path = new_uuid(os.urandom), request.url.path
    pending = commands.begin(request_id, socket=phone.socket, method="GET", path=path, params={}, body={}, now=now())
    order = {"request_id": request_id, "method": "GET", "path": path, "params": {}, "body": {}}
    answer = waiting[request_id] = asyncio.get_running_loop().create_future()
    await sockets[phone.socket].send_text(write_envelope("bridge", "bridge.command", request_id, order))
    try:
        outcome = await asyncio.wait_for(answer, pending.deadline - now().mono)
    except TimeoutError:
        waiting.pop(request_id, None)
        outcome = commands.timeout(request_id) or relay_outcome("phone_timeout")
    return JSONResponse(outcome.body, outcome.status)


async def phone_socket(socket: WebSocket) -> None:
    """Authenticate a phone with a code or a token, then handle its messages until it disconnects."""
    address = socket.client.host if socket.client else "unknown"
    await socket.accept()
    number = id(socket)
    try:
        first = parse_envelope(await asyncio.wait_for(socket.receive_text(), SIGN_IN_WITHIN))
        if not await sign_in(socket, number, address, first):
            await socket.close(1008)
            return
        while True:
            message = parse_envelope(await socket.receive_text())
            if message is not None and message.type == "bridge.response":
                request_id = str(message.payload.get("request_id"))
                settle(request_id, commands.answer(request_id, number, message.payload, now()))
            elif message is not None and message.type == "bridge.status":
                phones.status(number, dict(message.payload), now())
    except (WebSocketDisconnect, TimeoutError):
        pass
    finally:
        sockets.pop(number, None)
        phones.remove(number)
        for request_id, outcome in commands.socket_lost(number):
            settle(request_id, outcome)


async def sign_in(socket: WebSocket, number: int, address: str, first: Envelope | None) -> bool:
    """Accept a valid token, or a code from an address that is not blocked, and send `auth.ok` or `auth.fail`.

    Returns whether the phone was accepted; it is registered then.
    """
    payload = first.payload if first is not None and (first.channel, first.type) == ("system", "auth") else {}
    device, token = parse_device(payload), str(payload.get("session_token") or "")
    session = sessions.lookup(token, now())
    if session is None and not limiter.blocked_for(address, now()):
        meta = codes.consume(str(payload.get("pairing_code") or ""), now())
        if meta is None:
            limiter.failure(address, now())
        else:
            wanted = merge_terms(meta, parse_requested_terms(payload))
            token, session = sessions.create(
                now(), os.urandom, ttl=wanted.ttl_seconds, preset=wanted.grants, device=device
            )
    identity = first.id if first is not None else new_uuid(os.urandom)
    if session is None:
        await socket.send_text(write_envelope("system", "auth.fail", identity, {"reason": "not accepted"}))
        return False
    limiter.success(address, now())
    sockets[number] = socket
    phones.register(number, device_id=device.id, name=device.name)
    welcome = {"session_token": token, "expires_at": session.expires_at, "grants": session.grants}
    await socket.send_text(write_envelope("system", "auth.ok", identity, welcome))
    return True


app = Starlette(
    routes=[
        Route("/code", make_code, methods=["POST"]),
        *(Route(path, command) for path in ("/ping", "/screen", "/current_app")),
        *(WebSocketRoute(path, phone_socket) for path in ("/", "/ws")),
    ]
)
