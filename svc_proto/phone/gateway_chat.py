"""Chat of a phone on the JSON-RPC gateway (wire terminal 2.4). It outlives the sockets of its connection.

A prompt is sent with its attachments, one prompt at a time. Its `message_id` makes a repeated prompt harmless while the
server runs. After the loss of a socket, the stored messages and the ids that a running session names decide which
prompts have arrived: a server that was restarted has lost the prompts that waited.

| prompt   | becomes  | when                                                                                 |
|----------|----------|--------------------------------------------------------------------------------------|
| waiting  | sent     | the prompts before it are accepted; its attachments are uploaded before its text      |
| sent     | accepted | the server answers, or names the id in the state of the running session               |
| accepted | done     | the session is idle; also if the server answers that the prompt is a repeated one     |
| any      | done     | it is among the stored messages after a reconnect                                     |
| sent     | refused  | the server answers with an error                                                      |
| any      | waiting  | the socket is lost, and none of these applies                                         |
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from attrs import define, frozen

from svc_proto.basics import strict_json
from svc_proto.schema.gateway_rpc import ATTACHED_FILE, NOT_STORED
from svc_proto.schema.json_object import JsonObject

__all__ = ["MAX_PROMPTS", "ChatAttachment", "GatewayChat"]

MAX_PROMPTS = 16  # that are not done, as many as the gateway queues; further ones are refused
SOURCE = "reference"  # of a client that reads the history from the answer of `session.resume`
IMAGES = ("png", "jpg", "jpeg", "gif", "webp")  # endings of file names

OnResult: TypeAlias = "Callable[[JsonObject], None]"
Notifier: TypeAlias = Callable[[str, Mapping[str, object]], None]


@frozen
class ChatAttachment:
    """A file that is sent with a prompt."""

    name: str
    data: bytes


@define(eq=False)
class _Prompt:
    message_id: str
    text: str  # the server's references to attachments are put before it
    attachments: tuple[ChatAttachment, ...]
    is_sent: bool = False
    is_accepted: bool = False

    def is_stored_as(self, text: str) -> bool:
        """Report whether a stored message is this prompt, with or without the contents of attachments.

        A prompt without attachments may be stored with those of a client that has disconnected.
        """
        mine, stored = f"{self.text}\n{ATTACHED_FILE}", f"{text}\n{ATTACHED_FILE}"
        return stored.startswith(mine) or (bool(self.attachments) and f"\n\n{mine}" in stored)


class GatewayChat:
    """Chat of one session at a time. Its methods are called only while the core handles a fact.

    Events for `notify`: `answer` (`text`), `answered` (`status`, `error`), `question` (`question`, `choices`), `note`
    (`text`), and `settled` when the last unfinished prompt becomes done (not when it is refused).
    """

    def __init__(self, notify: Notifier, new_id: Callable[[], str]) -> None:
        self.session_id = ""
        self.running = False
        self._notify = notify
        self._new_id = new_id
        self._send: Callable[[str], object] | None = None
        self._close: Callable[[], None] | None = None
        self._calls = 0
        self._waiting: dict[int, OnResult] = {}  # calls without an answer, on this socket
        self._prompts: list[_Prompt] = []
        self._done = Counter[str]()  # texts of own prompts that are done
        self._question: JsonObject | None = None  # payload of the open one
        self._is_ready = False  # the session is attached to this socket

    # --- socket ---

    def connect(self, send: Callable[[str], object], close: Callable[[], None]) -> None:
        """Use a new socket: resume the session if there is one, else send the first waiting prompt.

        `close` is called if the server refuses the resumption, except for a session that is not stored.
        """
        self._send, self._close = send, close
        if self.session_id:
            self._call("session.resume", self._on_resumed, session_id=self.session_id, cols=80, source=SOURCE)
        else:
            self._is_ready = True
            self._advance()

    def disconnect(self) -> None:
        """Drop a lost socket, its open calls and its question; prompts that were not accepted become unsent again."""
        self._send, self._close, self._is_ready, self._question = None, None, False, None
        self._waiting.clear()
        for prompt in self._prompts:
            prompt.is_sent = prompt.is_accepted

    def receive(self, text: str) -> None:
        """Handle the events and responses in a message of the server, one on each line."""
        for line in text.splitlines():
            message = JsonObject.parse_or_empty(line)
            if message.text("method") == "event":
                self._on_event(message.get_object("params"))
            else:
                self._on_answer(message)

    # --- user ---

    @property
    def unfinished(self) -> int:
        """The number of prompts that are neither done nor refused."""
        return len(self._prompts)

    def submit(self, text: str, attachments: tuple[ChatAttachment, ...] = ()) -> bool:
        """Send a prompt as soon as possible; return False if too many prompts are unfinished."""
        if len(self._prompts) >= MAX_PROMPTS:
            return False
        self._prompts.append(_Prompt(self._new_id(), text, attachments))
        self._advance()
        return True

    def decide(self, *, allow: bool, remember: bool = False) -> bool:
        """Answer the open approval or question with yes or no; return False without one.

        For an approval, yes with `remember` allows the same from now on.
        """
        question = self._question
        if question is None:
            return False
        if "request_id" in question:
            return self.answer("Yes" if allow else "No")
        choice = ("always" if remember else "once") if allow else "deny"
        call_id = question.text("call_id")
        self._call("approval.respond", None, session_id=self.session_id, choice=choice, call_id=call_id)
        return True

    def answer(self, words: str) -> bool:
        """Answer the open question with words; return False if none is open, or only an approval."""
        if self._question is None or "request_id" not in self._question:
            return False
        self._call("clarify.respond", None, request_id=self._question.text("request_id"), answer=words)
        return True

    def interrupt(self) -> bool:
        """Request the stop of the present turn; return False if none is known, or while the chat is not connected."""
        if not self.running or not self._is_ready:
            return False
        self._call("session.interrupt", None, session_id=self.session_id)
        return True

    # --- calls ---

    def _call(self, method: str, on_result: OnResult | None, **params: object) -> None:
        assert self._send is not None
        self._calls += 1
        if on_result is not None:
            self._waiting[self._calls] = on_result
        self._send(strict_json.dumps({"jsonrpc": "2.0", "id": self._calls, "method": method, "params": params}))

    def _on_answer(self, message: JsonObject) -> None:
        on_result = self._waiting.pop(message.integer("id") or 0, None)
        if on_result is not None:
            error = message.object_or_none("error")
            on_result(message.get_object("result") if error is None else JsonObject({"error": error}))

    def _on_resumed(self, result: JsonObject) -> None:
        """Handle the response to `session.resume`: finish the prompts that are stored.

        The others are sent again, except those that the running session names as accepted. An error is reported to the
        user. It closes the connection, unless the session is not stored: then a new one is used.
        """
        error = result.get_object("error")
        if error:
            self._notify("note", {"text": f"the chat cannot be resumed: {error.text('message')}"})
            if error.get("code") != NOT_STORED:
                assert self._close is not None
                self._close()
                return
            self.session_id = ""
            self._done.clear()
        rows = [row.text("text") for row in result.objects("messages") if row.text("role") == "user"]
        accepted = result.texts("accepted")
        self.running = result.get("running") is True
        for prompt in [*self._prompts]:
            if sum(prompt.is_stored_as(row) for row in rows) > self._done[prompt.text]:
                self._finish(prompt)
            else:
                prompt.is_sent = prompt.is_accepted = self.running and prompt.message_id in accepted
        if inflight := result.get_object("inflight").text("assistant"):
            self._notify("answer", {"text": inflight})
        self._is_ready = True
        self._advance()

    def _advance(self) -> None:
        """Send the first prompt that is not accepted, unless it is being sent or the chat has no ready socket."""
        prompt = next((each for each in self._prompts if not each.is_accepted), None)
        if not self._is_ready or prompt is None or prompt.is_sent:
            return
        prompt.is_sent = True
        if self.session_id:
            self._upload(prompt, ())
        else:
            self._call("session.create", partial(self._on_created, prompt), cols=80, source=SOURCE)

    def _on_created(self, prompt: _Prompt, result: JsonObject) -> None:
        if not self._is_refused(prompt, result):
            self.session_id = result.text("session_id")
            self._upload(prompt, ())

    def _upload(self, prompt: _Prompt, references: tuple[str, ...], number: int = 0) -> None:
        """Upload the attachments from a number on, then submit the prompt behind their references."""
        if number == len(prompt.attachments):
            text = "\n\n".join([*references, prompt.text])
            members = {"text": text, "message_id": prompt.message_id, "queued": self.running}
            self._call("prompt.submit", partial(self._on_submitted, prompt), session_id=self.session_id, **members)
            return
        file = prompt.attachments[number]

        def uploaded(result: JsonObject) -> None:
            if not self._is_refused(prompt, result):
                reference = result.text("ref_text")
                self._upload(prompt, (*references, reference) if reference else references, number + 1)

        content = b64encode(file.data).decode()
        if file.name.rpartition(".")[2].lower() in IMAGES:
            method, members = "image.attach_bytes", {"content_base64": content, "filename": file.name}
        else:
            url = f"data:application/octet-stream;base64,{content}"
            method, members = "file.attach", {"data_url": url, "name": file.name}
        self._call(method, uploaded, session_id=self.session_id, **members)

    def _on_submitted(self, prompt: _Prompt, result: JsonObject) -> None:
        if self._is_refused(prompt, result):
            return
        prompt.is_accepted = True
        if result.get("repeated") is True and not self.running:
            self._finish(prompt)  # its turn has failed before it was stored
        else:
            self.running = True
        self._advance()

    def _is_refused(self, prompt: _Prompt, result: JsonObject) -> bool:
        """Report whether the answer is an error; if so, report that, remove the prompt and send the next one."""
        error = result.object_or_none("error")
        if error is None:
            return False
        self._notify("answered", {"status": "refused", "error": JsonObject.of(error).text("message")})
        self._prompts.remove(prompt)
        self._advance()
        return True

    def _finish(self, prompt: _Prompt) -> None:
        self._prompts.remove(prompt)
        self._done[prompt.text] += 1
        if not self._prompts:
            self._notify("settled", {})

    # --- events ---

    def _on_event(self, event: JsonObject) -> None:
        if event.text("session_id") != self.session_id:
            return
        payload = event.get_object("payload")
        match event.text("type"):
            case "message.start":
                self.running = True
            case "message.delta":
                self._notify("answer", {"text": payload.text("text")})
            case "message.complete":
                self._notify("answered", {"status": payload.text("status"), "error": payload.text("error")})
            case "approval.request" | "clarify.request":
                self._question = payload
                question, choices = payload.text("question", "command"), payload.texts("choices")
                self._notify("question", {"question": question, "choices": choices})
            case "approval.expire" | "clarify.expire":
                self._question = None
            case "session.info":
                self._on_info(payload)

    def _on_info(self, payload: JsonObject) -> None:
        """Finish the accepted prompts when the session is idle."""
        self.running = payload.get("running") is True
        for prompt in [] if self.running or not self._is_ready else [*self._prompts]:
            if prompt.is_accepted:
                self._finish(prompt)
