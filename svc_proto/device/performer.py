"""Commands on their way through the handset: exactly one `bridge.response` for each, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from svc_proto.device.handset import Handset, HandsetCommand, Later, NeedsUpload, Reply
from svc_proto.device.upload import upload_file
from svc_proto.engine.flow import Flow, Task, TaskState, sleep

if TYPE_CHECKING:
    from svc_proto.device.phone import PhoneConfig
    from svc_proto.engine.core import Engine

__all__ = ["Performer"]

MOST_COMMANDS = 64  # under way at once; a further one is answered with 503


class Performer:
    """Carries out `bridge.command`s. `drop()` when there is nobody left to answer."""

    def __init__(
        self,
        engine: Engine,
        handset: Handset,
        config: PhoneConfig,
        *,
        send: Callable[[str, str, Mapping[str, object]], None],
        tell: Callable[[str, Mapping[str, object]], None],
    ) -> None:
        self._engine = engine
        self._handset = handset
        self._config = config
        self._send = send
        self._tell = tell
        self._under_way: dict[int, Task] = {}
        self._count = 0

    def perform(self, payload: Mapping[str, object], token: str) -> None:
        """Take the payload of a `bridge.command`; `token` is for uploads. A malformed one is ignored."""
        command = _parse(payload)
        if command is None:
            return  # nobody could be answered (wire bridge 1.1)
        if len(self._under_way) >= MOST_COMMANDS:
            self._respond(command, Reply(503, {"error": "too many commands at once"}))
            return
        try:
            performed = self._handset.perform(command, self._engine.now)
        except Exception as error:  # noqa: BLE001, RUF100 - a bug in the handset is the answer to this command only
            self._respond(command, self._apology(error))
            return
        if isinstance(performed, Reply):
            self._respond(command, performed)
        else:
            self._begin(command, performed, token)

    def drop(self) -> None:
        """Give up everything that is under way."""
        tasks, self._under_way = self._under_way, {}
        for task in tasks.values():
            task.cancel()

    def _begin(self, command: HandsetCommand, performed: Later | NeedsUpload, token: str) -> None:
        self._count += 1
        key = self._count

        def done(reply: Reply) -> None:
            self._under_way.pop(key, None)
            self._respond(command, reply)

        def failed(error: Exception) -> None:
            done(self._apology(error))

        flow = self._finish(performed, token)
        task = self._engine.spawn(flow, name="command", on_done=done, on_error=failed)
        if task.state is not TaskState.DONE:
            self._under_way[key] = task

    def _finish(self, performed: Later | NeedsUpload, token: str) -> Flow[Reply]:
        if isinstance(performed, Later):
            yield from sleep(self._engine, performed.seconds)
            return performed.reply
        uploaded = yield from upload_file(self._engine, self._config.http_url, token, performed)
        if uploaded.token is None:
            return Reply(500, {"error": f"the file could not be uploaded: {uploaded.problem}"})
        return self._handset.uploaded(uploaded.token, self._config.scheme)

    def _respond(self, command: HandsetCommand, reply: Reply) -> None:
        try:
            self._send("bridge", "bridge.response", _response(command, reply))
        except Exception as error:  # noqa: BLE001, RUF100 - a result that is not JSON: the handset's bug
            reply = self._apology(error)
            self._send("bridge", "bridge.response", _response(command, reply))
        self._tell("performed", {"method": command.method, "path": command.path, "status": reply.status})

    def _apology(self, error: Exception) -> Reply:
        return Reply(500, {"error": f"internal error, reference {self._engine.bug(error)}"})


def _parse(payload: Mapping[str, object]) -> HandsetCommand | None:
    request_id, method, path = payload.get("request_id"), payload.get("method"), payload.get("path")
    if not (isinstance(request_id, str) and request_id and isinstance(method, str) and isinstance(path, str)):
        return None
    body = payload.get("body")
    if not isinstance(body, dict):  # `params` count only then (wire bridge 1.1)
        params = payload.get("params")
        body = params if isinstance(params, dict) else {}
    return HandsetCommand(method, path, cast("dict[str, object]", body), request_id)


def _response(command: HandsetCommand, reply: Reply) -> dict[str, object]:
    return {"request_id": command.request_id, "status": reply.status, "result": dict(reply.result)}
