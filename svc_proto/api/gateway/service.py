"""Gateway of the API: JSON-RPC calls of several clients on live sessions (wire terminal 2.4).

A live session has the id of its stored chat session, and continues when its clients disconnect.
"""

from collections.abc import Callable, Generator

from svc_proto.api.chat.records import ChatSession
from svc_proto.api.chat.store_requests import GetChat
from svc_proto.api.errors import check_not_stopping
from svc_proto.api.gateway import attachments, commands, compression, profiles, prompts, sessions, settings
from svc_proto.api.gateway.attachment_files import delete_files, sweep_files
from svc_proto.api.gateway.attachment_upload import AttachmentUpload, UploadCall, UploadSpace
from svc_proto.api.gateway.connection import GatewayConnection, Method
from svc_proto.api.gateway.live_session import GatewayPort, LiveSession
from svc_proto.api.runs.run import Run
from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request
from svc_proto.schema.gateway_rpc import INTERNAL, NO_SESSION, RpcCall
from svc_proto.schema.json_rpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError, write_error, write_result

__all__ = ["ApiGateway"]

MAX_SESSIONS = 256  # live sessions; the one that was opened first and is idle and without clients is dropped
MAX_WAITING_TEXT = 64 * 1024 * 1024  # characters of the prompts and attachments that wait in all sessions
MAX_METHOD_SHOWN = 60  # characters of an unknown method in the error
NO_STORE, DRAINING, BUSY_SERVER = 5008, 5070, 4090  # codes that clients show, instead of sending the prompt again
CODES = {429: BUSY_SERVER, 503: NO_STORE}


class ApiGateway:
    """The live sessions and the methods of the gateway."""

    def __init__(self, api: GatewayPort) -> None:
        self.api = api
        self.sessions: dict[str, LiveSession] = {}  # by id; the one that was opened last is last
        self._upload_space = UploadSpace()
        self._methods: dict[str, Method] = {}
        for theme in (sessions, prompts, compression, attachments, settings, commands, profiles):
            self._methods |= theme.methods(self)
        api.runs.on_run_created = self._on_run_created
        api.engine.spawn(sweep_files(api.engine))

    # --- clients ---

    @property
    def version(self) -> str:
        """Version of the server that clients see."""
        return self.api.config.version

    def new_connection(self, request: Request) -> GatewayConnection:
        """Return the handler of a new WebSocket. Raises `Refused` 503 while the server shuts down."""
        check_not_stopping(self.api.engine)
        return GatewayConnection(self, request)

    def connect(self, connection: GatewayConnection) -> None:
        """Register an open connection, which a revocation of its credential closes; do nothing without a credential."""
        if connection.credential_id:
            self.api.engine.revocables[connection] = connection.credential_id

    def disconnect(self, connection: GatewayConnection) -> None:
        """Remove a closed connection; its sessions continue."""
        self.api.engine.revocables.pop(connection, None)
        for session in self.sessions.values():
            delete_files(self.api.engine, session.detach(connection))

    def handle_call(self, connection: GatewayConnection, call: RpcCall) -> None:
        """Perform a call, and answer it unless it is a notification."""
        self.api.engine.spawn(self._perform(connection, call))

    def new_upload(self, on_full: Callable[[bool], None], is_url: bool) -> AttachmentUpload:
        """Return the receiver of the content of an attachment."""
        return AttachmentUpload(
            self.api.engine, self._upload_space, on_full, is_url=is_url, text_limit=attachments.MAX_TEXT
        )

    # --- sessions ---

    def open(self, chat: ChatSession, connection: GatewayConnection) -> LiveSession:
        """Return the live session of a stored one, and attach a client to it.

        A new live session observes the runs of the stored one. At the limit it replaces an idle one without clients; if
        there is none, the limit is exceeded.
        """
        session = self.sessions.pop(chat.id, None)
        if session is None:
            session = LiveSession(self, chat.id)
            for run in self.api.runs.session_runs(chat.id):
                session.observe(run)
            self._drop_idle()
        self.sessions[chat.id] = session
        session.attach(connection)
        return session

    def find(self, connection: GatewayConnection, call: RpcCall) -> Flow[LiveSession]:
        """Return the live session that a call names, opened from the store if needed, and attach the client.

        Raises `RpcError` if there is no such session.
        """
        identity = call.session_id
        session = self.sessions.get(identity)
        if session is None:
            return self.open((yield from self.stored(identity)), connection)
        session.attach(connection)
        return session

    def stored(self, identity: str, *, code: int = NO_SESSION) -> Flow[ChatSession]:
        """Return a stored session. Raises `RpcError` with `code` if it does not exist."""
        chat = yield from self.api.run_store_request(GetChat(id=identity))
        if chat is None:
            raise RpcError(code, "no such session")
        return chat

    def on_turn_ended(self, session: LiveSession, run: Run) -> None:
        """Start the steps after a turn as a flow of its own, see `prompts.finish_turn`."""
        self.api.engine.spawn(prompts.finish_turn(self, session, run))

    def has_room_for_text(self, size: int) -> bool:
        """Report whether a text of this many characters may wait, beside the others of all sessions."""
        return sum(session.waiting_text_size for session in self.sessions.values()) + size <= MAX_WAITING_TEXT

    # --- helpers ---

    def _on_run_created(self, run: Run) -> None:
        session = self.sessions.get(run.record.session_id)
        if session is not None:
            session.observe(run)

    def _drop_idle(self) -> None:
        if len(self.sessions) < MAX_SESSIONS:
            return
        for key, session in self.sessions.items():
            if not (session.is_busy or session.connections or session.queue):
                delete_files(self.api.engine, session.attachments)
                del self.sessions[key]
                return

    def _perform(self, connection: GatewayConnection, call: RpcCall) -> Flow[None]:
        try:
            method = self._methods.get(call.method)
            if method is None:
                raise RpcError(METHOD_NOT_FOUND, f"method not found: {call.method[:MAX_METHOD_SHOWN]!r}")
            found = method(connection, call)
            result = (yield from found) if isinstance(found, Generator) else found
            answer = write_result(call.identity, result)
        except RpcError as error:
            answer = write_error(error, call.identity)
        except Refused as refused:
            answer = write_error(rpc_error(refused), call.identity)
        except Exception as error:  # noqa: BLE001, RUF100 - the client waits for an answer in any case
            text = f"internal error {self.api.engine.log_bug(error)}"
            answer = write_error(RpcError(INTERNAL, text), call.identity)
        finally:
            connection.call_ended()
            if isinstance(call, UploadCall):
                call.upload.discard()
        if not call.notification:
            connection.send(answer)


def rpc_error(refused: Refused) -> RpcError:
    """Return the JSON-RPC error for a refusal of the API."""
    code = DRAINING if refused.code == "gateway_draining" else CODES.get(refused.status, INVALID_PARAMS)
    return RpcError(code, refused.message)
