"""Methods for prompts, approvals and questions; and the steps before and after a turn.

The agent requests no secrets; an answer with one is reported as expired.
"""

from svc_proto.agent.interface import Content
from svc_proto.api.chat.records import ChatSession
from svc_proto.api.chat.store_requests import ListMessages, TruncateMessages, UpdateChat
from svc_proto.api.content import parse_prompt
from svc_proto.api.errors import check_not_stopping
from svc_proto.api.gateway.attachment_files import delete_files, load_parts
from svc_proto.api.gateway.connection import GatewayConnection, Method, Result
from svc_proto.api.gateway.live_session import LiveGateway, LiveSession, QueuedPrompt
from svc_proto.api.gateway.sessions import build_info
from svc_proto.api.gateway.settings import chosen_model
from svc_proto.api.runs.run import Run
from svc_proto.api.runs.streaming import join_system_prompt
from svc_proto.api.runs.turn_execution import TurnRequest
from svc_proto.basics.brand import HERMES
from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow
from svc_proto.machines.approvals import LASTING, LASTING_TEXT, parse_approval
from svc_proto.schema.gateway_rpc import NO_SUCH_ROW, RpcCall
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_rpc import INVALID_PARAMS, RpcError
from svc_proto.service_clients.authority import MANAGE

__all__ = ["MAX_ROWS", "QUEUE_FULL", "finish_turn", "methods"]

NEVER_ASKED = ("sudo.respond", "secret.respond", "terminal.read.respond")
MAX_QUEUED = 16  # prompts that wait in one session
MAX_TEXT = 10_000_000  # characters of a prompt, as in a body of the other routes (wire api 2.5)
MAX_MESSAGE_ID = 64  # characters
MAX_TITLE = 48  # characters of a title that the server makes
QUEUE_FULL = 4090  # clients show the refusal, instead of sending the prompt again
OTHER_NODE = 5071
MAX_ROWS = 100_000  # messages of a session among which the one to begin again from is searched; later ones: 4004


def methods(gateway: LiveGateway) -> dict[str, Method]:
    """Return the gateway's methods for prompts, approvals and questions by name."""
    theme = _PromptMethods(gateway)
    return {
        "prompt.submit": theme.submit,
        "session.interrupt": theme.interrupt,
        "session.redirect": theme.redirect,
        "session.steer": theme.redirect,
        "approval.respond": theme.approve,
        "clarify.respond": theme.clarify,
        **dict.fromkeys(NEVER_ASKED, _answer_too_late),
    }


def finish_turn(gateway: LiveGateway, session: LiveSession, run: Run | None = None) -> Flow[None]:
    """Give an untitled session a title after a completed turn, and report its state.

    Start the next prompt if one waits and the session is not busy. Without a run the session gets no title.
    """
    session.pending += 1
    try:
        chat = yield from gateway.stored(session.id)
        if run is not None and chat.title is None and run.ended is not None and run.ended.completed:
            chat = yield from _add_title(gateway, chat, run.user_text)
        info = yield from build_info(gateway, session, chat, used=0 if run is None else run.context_used)
    except (RpcError, Refused):
        info = {}  # the session was deleted, or the store fails, which is logged
    finally:
        session.pending -= 1
    others = session.is_busy or bool(session.queue)
    session.send("session.info", {**info, "running": others})
    if session.queue and not session.is_busy:
        yield from _start_next(gateway, session)


def _start_next(gateway: LiveGateway, session: LiveSession) -> Flow[None]:
    prompt = session.queue.popleft()
    try:
        yield from _start(gateway, session, prompt)
    except (RpcError, Refused) as error:
        session.accepted.pop(prompt.message_id, None)
        message = error.message if isinstance(error, Refused) else str(error)
        session.send("message.start", None)
        session.send("message.complete", {"text": "", "status": "error", "error": message, "usage": {}})
        yield from finish_turn(gateway, session)


def _add_title(gateway: LiveGateway, chat: ChatSession, text: str) -> Flow[ChatSession]:
    title = _title_of(text)
    if not title:
        return chat
    request = UpdateChat(id=chat.id, changes={"title": title}, now=gateway.api.engine.now.wall)
    return (yield from gateway.api.run_store_request(request)) or chat


def _title_of(text: str) -> str:
    """Return the beginning of a message as a title of at most `MAX_TITLE` characters, if possible cut between words."""
    line = " ".join(word for word in text.split() if word.isprintable())
    if len(line) <= MAX_TITLE:
        return line
    return (line[:MAX_TITLE].rpartition(" ")[0] or line[: MAX_TITLE - 1]) + "…"


def _start(gateway: LiveGateway, session: LiveSession, prompt: QueuedPrompt) -> Flow[None]:
    """Start a turn with a prompt in a session that is not busy, and delete the prompt's image files in any case.

    Raises `RpcError` or `Refused` if the turn cannot start, or if the credential of the prompt's client was revoked
    before the turn began.
    """
    api = gateway.api
    session.pending += 1
    try:
        check_not_stopping(api.engine)
        chat = yield from gateway.stored(session.id)
        settings = yield from api.settings()
        endpoint = yield from chosen_model(gateway, settings, chat)
        content = yield from _build_content(gateway, prompt)
        personality = settings.prompt_for(session.personality if session.personality is not None else "")
        if session.personality == "none":
            personality = ""
        request = TurnRequest(
            run_id=api.runs.new_id(),
            session_id=session.id,
            prompt=content,
            system=join_system_prompt(chat.system_prompt or settings.system, personality),
            endpoint=endpoint,
            model=settings.name if endpoint is None else endpoint.model,
            max_tokens=settings.max_tokens,
            options={} if session.effort is None else {"reasoning_effort": session.effort},
            title=chat.title,
            may_ask=True,
            authority=api.authority(prompt.request),
            brand=HERMES,  # today's app is the client of this gateway
        )
        prompt.check_credential()
        run = yield from api.runs.start(request, credential_id=prompt.request.credential_id)
        if not isinstance(run, Run):
            raise RpcError(OTHER_NODE, "another node of this service has the session: try again")
        if prompt.refused is not None:  # while the node waited for the session
            run.revoke(prompt.refused)
    finally:
        session.pending -= 1
        api.engine.revocables.pop(prompt, None)
        delete_files(api.engine, prompt.attachments)


def _build_content(gateway: LiveGateway, prompt: QueuedPrompt) -> Flow[Content]:
    """Return the content of a prompt, with its attachments.

    Raises `Refused` if there is no visible text and no image, or if the file of an image cannot be read.
    """
    if not prompt.attachments:
        return parse_prompt({"message": prompt.text})
    parts = yield from load_parts(gateway.api.engine, prompt.attachments)
    shown: list[object] = [{"type": "text", "text": prompt.text}] if prompt.text.strip() else []
    return parse_prompt({"message": [*shown, *parts]})


class _PromptMethods:
    def __init__(self, gateway: LiveGateway) -> None:
        self._gateway = gateway

    def submit(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Start a turn; while a turn is under way or prompts wait, put the prompt at the end of the queue.

        A prompt with the `message_id` of a recently accepted one is not accepted again. Raises `RpcError` or `Refused`
        if the prompt is accepted neither as a turn nor into the queue.
        """
        session = yield from self._gateway.find(connection, call)
        text, message_id = _prompt_text(call), call.params.text("message_id")[:MAX_MESSAGE_ID]
        if not session.accept(message_id):
            return {"status": "streaming", "repeated": True}
        try:
            return (yield from self._accept(connection, call, session, text, message_id))
        except (RpcError, Refused):
            session.accepted.pop(message_id, None)
            raise

    def _accept(
        self, connection: GatewayConnection, call: RpcCall, session: LiveSession, text: str, message_id: str
    ) -> Flow[Result]:
        """Start a turn with a prompt, or queue it; first remove messages as `_truncate` does if the call names one.

        If the turn cannot start, report the session's state to its clients and start the next prompt if one waits.
        Raises `RpcError` if the prompt would have to wait and the queue is full or messages are to be removed, and
        `Refused` if the prompt is blank and has no attachments.
        """
        cut = any(name in call.params for name in ("truncate_before_user_ordinal", "truncate_before_row_id"))
        if not session.attachments_of(connection):
            parse_prompt({"message": text})
        waits = session.is_busy or bool(session.queue)
        is_full = len(session.queue) >= MAX_QUEUED or not self._gateway.has_room_for_text(len(text))
        if waits and (cut or is_full):
            raise RpcError(QUEUE_FULL, "a turn is under way: stop it first, or wait for its end")
        prompt = self._new_prompt(text, connection, message_id)
        try:
            survivors = (yield from self._truncate(session, call, prompt)) if cut else {}
            prompt.attachments = session.take_attachments(connection)
            if waits:
                session.queue.append(prompt)
                return {"status": "queued", "queued": True}
            yield from _start(self._gateway, session, prompt)
        except (RpcError, Refused):  # other prompts may have been queued meanwhile
            self._gateway.api.engine.revocables.pop(prompt, None)
            self._gateway.api.engine.spawn(finish_turn(self._gateway, session))
            raise
        return {"status": "streaming", **survivors}

    def _new_prompt(self, text: str, connection: GatewayConnection, message_id: str = "") -> QueuedPrompt:
        """Return a prompt of a client, which is refused at its start if the client's credential is revoked before."""
        prompt = QueuedPrompt(text, connection.request, message_id)
        if connection.credential_id:
            self._gateway.api.engine.revocables[prompt] = connection.credential_id
        return prompt

    def interrupt(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Stop the present turn, if there is one. Prompts in the queue stay."""
        session = yield from self._gateway.find(connection, call)
        turn = session.turn
        if turn is not None and turn.run.ended is None and not turn.run.stopping:
            self._gateway.api.runs.stop(turn.run.record.id)
        return {"status": "interrupted"}

    def redirect(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Queue a text as the first of the waiting prompts.

        Return the status `rejected` instead if the session is not busy, the text is blank, or there is no room for it.
        """
        session = yield from self._gateway.find(connection, call)
        text = _prompt_text(call)
        is_full = len(session.queue) >= MAX_QUEUED or not self._gateway.has_room_for_text(len(text))
        if not session.is_busy or not text.strip() or is_full:
            return {"status": "rejected"}
        session.queue.appendleft(self._new_prompt(text, connection))
        return {"status": "queued"}

    def approve(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Answer an approval request of the present turn. Raises `Refused` 403 without the right for a lasting one."""
        api, session = self._gateway.api, (yield from self._gateway.find(connection, call))
        answer, turn = parse_approval(call.params), session.turn
        if turn is None:
            return {"resolved": 0, "status": "expired"}
        authority = api.authority(connection.request)
        if answer.choice in LASTING and not authority.holds(MANAGE):
            raise Refused(403, "grant_required", LASTING_TEXT)
        answered = turn.answer(answer.choice, call_id=answer.call_id or "", everything=answer.everything)
        if answer.choice in LASTING:
            for event in answered:
                api.ledger.approval(authority.name, session.id, event.pattern)
        return {"resolved": len(answered), **({} if answered else {"status": "expired"})}

    def clarify(self, connection: GatewayConnection, call: RpcCall) -> Result:
        """Answer a question by its request id, in any live session.

        The status is `expired` if no present turn has the question, or its run is being stopped.
        """
        request_id, text = call.text("request_id"), call.text("answer")
        turns = [session.turn for session in self._gateway.sessions.values()]
        answered = any(turn.answer_question(request_id, text) for turn in turns if turn is not None)
        return {"status": "ok" if answered else "expired"}

    def _truncate(self, session: LiveSession, call: RpcCall, prompt: QueuedPrompt) -> Flow[dict[str, object]]:
        """Remove a message of the user and all after it before a prompt; return the row ids of those that remain.

        The row ids are those of the user's messages: positions in the session, from 1 on. New prompts wait meanwhile. A
        turn of another node is waited for. Raises `RpcError` if the message does not exist, and `Refused` if that turn
        takes too long or the credential of the prompt's client was revoked meanwhile.
        """
        ownership = self._gateway.api.ownership
        session.pending += 1
        try:
            yield from ownership.acquire(session.id)
            try:
                prompt.check_credential()
                return (yield from self._remove_rows(session, call.params))
            finally:
                ownership.release(session.id)
        finally:
            session.pending -= 1

    def _remove_rows(self, session: LiveSession, params: JsonObject) -> Flow[dict[str, object]]:
        api = self._gateway.api
        rows = yield from api.run_store_request(ListMessages(session_id=session.id, limit=MAX_ROWS))
        of_user = [place for place, row in enumerate(rows or (), 1) if row.role == "user"]
        ordinal, row_id = params.integer("truncate_before_user_ordinal", 0), params.get("truncate_before_row_id")
        place: object = row_id
        if ordinal is not None:
            place = of_user[ordinal] if ordinal < len(of_user) else None
        if place not in of_user or (row_id is not None and place != row_id):
            raise RpcError(NO_SUCH_ROW, "the message to begin again from does not exist")
        position = int(str(place))
        request = TruncateMessages(session_id=session.id, keep=position - 1, now=api.engine.now.wall)
        yield from api.run_store_request(request)
        return {"survivor_user_row_ids": [row for row in of_user if row < position]}


def _answer_too_late(connection: GatewayConnection, call: RpcCall) -> Result:
    return {"status": "expired"}


def _prompt_text(call: RpcCall) -> str:
    text = call.text("text")
    if len(text) > MAX_TEXT:
        raise RpcError(INVALID_PARAMS, f"a prompt may have at most {MAX_TEXT} characters")
    return text
