"""Execution of bridge commands through the safety gates and the phone backend.

| result of the gate | effect on the command                                                                    |
|--------------------|------------------------------------------------------------------------------------------|
| a reply            | the reply is sent at once                                                                |
| later, an upload   | the reply is sent after the delay, or after the upload has succeeded or failed           |
| awaiting           | denied, or given up by the gate (as after a time-out): the refusal is sent; allowed: the |
|                    | gate checks the command again, and its result is one of the other two                    |

All commands belong to one connection: when it is lost, waiting commands are never executed and running ones are
abandoned. A command with the request id of one of the last `MAX_REMEMBERED_IDS` is ignored.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping

from attrs import frozen

from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task, sleep
from svc_proto.phone.backend import CommandReply, CommandResponse, DelayedReply, PhoneCommand, UploadReply
from svc_proto.phone.safety.confirmation import AwaitingConfirmation
from svc_proto.phone.safety.gate import SafetyGate
from svc_proto.phone.safety.settings import ConfirmationPolicy
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.service_client import ServiceCallError, ServiceFault
from svc_proto.wire.multipart import Part

__all__ = ["CommandExecutor"]

MAX_COMMANDS = 64  # executed at once; a further one is answered with 503
MAX_REMEMBERED_IDS = 1024  # request ids that are kept; the oldest is dropped
MAX_ID_CHARS = 200  # characters of a request id, which is a UUID (wire bridge 1.1); a longer one is malformed
UPLOAD_TIMEOUT = 15.0  # s, wire bridge 3.4
MAX_PATH_CHARS = 100  # characters of a path in a log record


@frozen
class _AwaitingConfirmation:
    """Command that waits for the user's confirmation."""

    confirmation_id: str
    command: PhoneCommand
    relay: RelayClient


class CommandExecutor:
    """Executor of `bridge.command`s; call `stop()` when the connection is lost.

    `advance` calls `on_change`, since the gate may have changed: after a command that reached the gate, a decision, a
    switch, a deadline, and at `stop`.
    """

    def __init__(
        self,
        engine: Engine,
        gate: SafetyGate,
        *,
        answers: ConfirmationPolicy,
        scheme: str,
        send: Callable[[str, str, Mapping[str, object]], None],
        notify: Callable[[str, Mapping[str, object]], None],
        on_change: Callable[[], None],
    ) -> None:
        self.answers = answers
        self.lapsed_at: float | None = None  # when a confirmation last lapsed without a decision, monotonic seconds
        self._engine = engine
        self._gate = gate
        self._scheme = scheme
        self._send = send
        self._notify = notify
        self._on_change = on_change
        self._deadline = engine.timers.timer(self.advance)
        self._awaiting: dict[str, _AwaitingConfirmation] = {}  # by request id
        self._running: dict[int, Task] = {}
        self._request_ids: OrderedDict[str, None] = OrderedDict()  # request ids
        self._count = 0

    def execute(self, payload: JsonObject, relay: RelayClient) -> None:
        """Execute the command of a `bridge.command` payload; ignore a malformed or repeated one.

        While `MAX_COMMANDS` delayed replies and uploads are pending, a further command is answered with 503.
        """
        command = _parse(payload)
        if command is None:
            return  # without a request id no answer is possible (wire bridge 1.1)
        if not self._remember_id(command.request_id):
            self._engine.log(Level.WARNING, "repeated command", path=command.path[:MAX_PATH_CHARS])
            return
        if len(self._running) >= MAX_COMMANDS:
            self._respond(command, CommandReply(503, {"error": "too many commands at once"}))
            return
        try:
            response = self._gate.execute(command, self._engine.now)
        except Exception as error:  # noqa: BLE001, RUF100 - a bug in the backend fails this command only
            response = self._bug_reply(command, error)
        if isinstance(response, AwaitingConfirmation):
            self._request_confirmation(_AwaitingConfirmation(response.confirmation_id, command, relay))
        else:
            self._answer(command, response, relay)
        self.advance()

    def decide(self, confirmation_id: str, *, allow: bool, remember: bool = False) -> bool:
        """Apply the user's decision; return False if the confirmation is not open.

        With `remember` an allowed verb or action is trusted from now on.
        """
        self.advance()  # expire first, whatever the user decides
        awaiting = next((each for each in self._awaiting.values() if each.confirmation_id == confirmation_id), None)
        if awaiting is None:
            return False
        del self._awaiting[awaiting.command.request_id]
        self._answer(awaiting.command, self._apply_decision(awaiting, allow=allow, remember=remember), awaiting.relay)
        self.advance()
        return True

    def advance(self) -> None:
        """Apply deadlines of the gate, answer the commands that it gave up, set the timer, and call `on_change`."""
        for request_id, response in self._gate.advance(self._engine.now):
            awaiting = self._awaiting.pop(request_id)
            self.lapsed_at = self._engine.now.mono
            self._answer(awaiting.command, response, awaiting.relay)
        self._deadline.schedule(self._gate.next_deadline())
        self._on_change()

    def stop(self) -> None:
        """Abandon all commands that are running or wait for the user."""
        tasks, self._running = self._running, {}
        for task in tasks.values():
            task.cancel()
        if self._awaiting:
            self.lapsed_at = self._engine.now.mono
        self._awaiting.clear()
        self._gate.connection_lost()
        self.advance()

    def _remember_id(self, request_id: str) -> bool:
        if request_id in self._request_ids:
            return False
        self._request_ids[request_id] = None
        if len(self._request_ids) > MAX_REMEMBERED_IDS:
            self._request_ids.popitem(last=False)
        return True

    # --- confirmations --------------------------------------------------------------------------------------------

    def _request_confirmation(self, awaiting: _AwaitingConfirmation) -> None:
        self._awaiting[awaiting.command.request_id] = awaiting
        if self.answers is not ConfirmationPolicy.ASK:
            self.decide(awaiting.confirmation_id, allow=self.answers is ConfirmationPolicy.ALLOW)
            return
        (open_,) = (each for each in self._gate.confirmations() if each.confirmation_id == awaiting.confirmation_id)
        self._notify(
            "asked",
            {
                "confirmation": awaiting.confirmation_id,
                "action": open_.question.action,
                "verb": open_.question.verb,
                "text": open_.question.text,
                "seconds": open_.deadline - self._engine.now.mono,
            },
        )

    def _apply_decision(self, awaiting: _AwaitingConfirmation, *, allow: bool, remember: bool) -> CommandResponse:
        try:
            decided = self._gate.decide(awaiting.confirmation_id, allow=allow, remember=remember, now=self._engine.now)
        except Exception as error:  # noqa: BLE001, RUF100 - a bug in the backend, as above
            return self._bug_reply(awaiting.command, error)
        assert decided is not None  # the confirmation was open: `advance` has removed lapsed ones
        _, response = decided
        return response

    # --- answers --------------------------------------------------------------------------------------------------

    def _answer(self, command: PhoneCommand, response: CommandResponse, relay: RelayClient) -> None:
        if isinstance(response, CommandReply):
            self._respond(command, response)
        else:
            self._begin(command, response, relay)

    def _begin(self, command: PhoneCommand, response: DelayedReply | UploadReply, relay: RelayClient) -> None:
        self._count += 1
        key = self._count

        def done(reply: CommandReply) -> None:
            self._running.pop(key, None)
            self._respond(command, reply)

        def failed(error: Exception) -> None:
            done(self._bug_reply(command, error))

        flow = self._finish(command, response, relay)
        task = self._engine.spawn(flow, on_done=done, on_error=failed)
        if not task.done:
            self._running[key] = task

    def _finish(
        self, command: PhoneCommand, response: DelayedReply | UploadReply, relay: RelayClient
    ) -> Flow[CommandReply]:
        if isinstance(response, DelayedReply):
            yield from sleep(self._engine, response.seconds)
            return response.reply
        kind, name = response.content_type, response.file_name
        part = Part(name="file", filename=name, content_type=kind, data=response.data)
        try:
            token = yield from relay.upload_file(self._engine, part, within=UPLOAD_TIMEOUT)
        except ServiceCallError as error:
            reply = CommandReply(500, {"error": f"the file could not be uploaded: {_problem(error)}"})
            self._gate.upload_failed(command.request_id, reply)
            return reply
        return self._gate.on_uploaded(token, self._scheme, request_id=command.request_id)

    def _respond(self, command: PhoneCommand, reply: CommandReply) -> None:
        try:
            self._send("bridge", "bridge.response", _response(command, reply))
        except Exception as error:  # noqa: BLE001, RUF100 - a result that is not JSON: a bug in the backend
            reply = self._bug_reply(command, error)
            self._send("bridge", "bridge.response", _response(command, reply))
        self._notify("performed", {"method": command.method, "path": command.path, "status": reply.status})

    def _bug_reply(self, command: PhoneCommand, error: Exception) -> CommandReply:
        reply = CommandReply(500, {"error": f"internal error, reference {self._engine.log_bug(error)}"})
        self._gate.log.finish(command.request_id, reply)
        return reply


def _parse(payload: JsonObject) -> PhoneCommand | None:
    request_id, method, path = payload.text("request_id"), payload.string("method"), payload.string("path")
    if not 0 < len(request_id) <= MAX_ID_CHARS or method is None or path is None:
        return None
    body = payload.object_or_none("body")
    if body is None:
        body = payload.get_object("params")  # used only without a body (wire bridge 1.1)
    return PhoneCommand(method, path, body, request_id)


def _response(command: PhoneCommand, reply: CommandReply) -> dict[str, object]:
    return {"request_id": command.request_id, "status": reply.status, "result": dict(reply.result)}


def _problem(error: ServiceCallError) -> str:
    if error.fault is ServiceFault.UNAVAILABLE:
        return "the relay gave no token"
    return error.brief if error.answer is None else f"the relay answered {error.status}"
