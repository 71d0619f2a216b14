"""Stored records of paired sessions: saved at the request of callers, erased when the session ends.

A session whose record could not be erased is a tombstone. It is refused, and the relay tries again to erase it. Its
hash is written to a file of the service home, so that it is refused after a restart, too.
"""

from collections.abc import Mapping
from typing import TypeVar

from svc_proto.basics.errors import Refused
from svc_proto.commands import Level, Query, StoreRequest, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_state
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.sync import shield
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.paired_session import PairedSession
from svc_proto.machines.paired_session_registry import PairedSessionRegistry
from svc_proto.schema.json_object import as_text
from svc_proto.store_requests import SESSIONS_PAGE, CountSessions, DeleteSession, LoadSessions, SaveSession

__all__ = ["TOMBSTONES", "SessionRecords"]

T = TypeVar("T")

TOMBSTONES = "revoked-sessions"  # file of the service home: the SHA-256 of a token on each line
STORE_TIMEOUT = 31.0  # s, a little more than the store's own timeout
ERASE_AGAIN = 60.0  # s between two attempts to erase a record


class SessionRecords:
    """Writer and reader of the stored records of sessions; failed erasures are tried again."""

    def __init__(self, engine: Engine, sessions: PairedSessionRegistry, *, shared: bool = False) -> None:
        self._engine = engine
        self._sessions = sessions
        self._timer = engine.timers.timer(self._again)
        self._shared = shared  # whether other relays use the file, too
        self._has_store = True
        self._written = ""  # our hashes in the file of tombstones
        self._unsaved: dict[str, float] = {}  # by hash: monotonic s of the last change that is not stored yet

    @property
    def are_revocations_stored(self) -> bool:
        """Report whether all records that could not be erased would be refused after a restart, too."""
        return self._written == self._tombstones()

    def save(self, session: PairedSession, *, again: bool = False) -> Flow[Failure | None]:
        """Store a session so that it survives a crash; return a `Failure` if the store did not store it, else None.

        `again`: if the store had the session's last state but lacks its record now, the failure is `NOT_FOUND`, and
        nothing is stored. Return None, too, if the runtime has no store.
        """
        change = SaveSession(session.token_hash, session.to_record(), again and self.is_stored(session))
        self._unsaved[session.token_hash] = self._engine.now.mono
        return (yield from self._write(change, "session not stored", session))

    def erase(self, session: PairedSession) -> Flow[Failure | None]:
        """Remove an ended session from the store; return a `Failure` if the store did not, else None."""
        return (yield from self._write(DeleteSession(session.token_hash), "session not erased", session))

    def erase_later(self, session: PairedSession) -> None:
        """Erase the record of a session in the background."""
        self._engine.spawn(self.erase(session))

    def unsaved_since(self, session: PairedSession) -> float | None:
        """Return the time (monotonic s) of the session's last unsaved change; None if there is none."""
        return self._unsaved.get(session.token_hash)

    def is_stored(self, session: PairedSession) -> bool:
        """Report whether no change of the session is unsaved; True without a store."""
        return self.unsaved_since(session) is None

    def stop(self) -> None:
        """Try once more to erase all tombstones."""
        self._timer.cancel()
        self._again()

    def load_tombstones(self) -> Flow[Failure | None]:
        """Load the tombstones, and count the stored sessions, which are read later; return a `Failure`, or None."""
        revoked = yield from self._read_revoked()
        if isinstance(revoked, Failure):
            return revoked
        stored = yield from self._query(CountSessions())
        if isinstance(stored, Failure):
            return stored
        self._sessions.unread = stored
        for token_hash in revoked:
            records = yield from self._query(LoadSessions(token_hash))
            if isinstance(records, Failure):
                return records
            for record in records:
                self._restore(record, revoked)
        return None

    def load(self) -> Flow[Failure | None]:
        """Load the stored sessions; return a `Failure` if these, or the tombstones of any, cannot be read, else None.

        If the runtime has no store, sessions are kept in memory only.
        """
        engine, after = self._engine, ""
        revoked: list[str] | Failure | None = None
        while True:
            records = yield from self._query(LoadSessions(after=after, limit=SESSIONS_PAGE))
            if isinstance(records, Failure) and records.kind is FailureKind.UNSUPPORTED:
                self._has_store = False
                engine.log(Level.WARNING, "no store: sessions end with this process")
                return None
            if isinstance(records, Failure):
                return records
            if not records:
                return None
            if revoked is None:
                revoked = yield from self._read_revoked()
            if isinstance(revoked, Failure):
                return revoked
            for record in records:
                self._restore(record, revoked)
            if len(records) < SESSIONS_PAGE:
                return None
            after = str(records[-1].get("token_hash"))

    def _read_revoked(self) -> Flow[list[str] | Failure]:
        """Return the token hashes of the tombstones, or a `Failure` if their file cannot be read."""
        text = yield from read_state(self._engine, TOMBSTONES)
        if isinstance(text, Failure):
            return text
        self._written = text or ""
        return self._written.split()

    def _restore(self, record: Mapping[str, object], revoked: list[str]) -> None:
        engine, token_hash = self._engine, as_text(record.get("token_hash"))
        try:
            if token_hash in revoked:
                session = PairedSession.from_record(record)
                self._sessions.remember_revoked(session)
                self.erase_later(session)
                return
            restored = self._sessions.restore(record, engine.now)
        except Refused as refused:
            engine.log(Level.WARNING, "stored session skipped", problem=refused.message)
            return
        if restored is None and token_hash is not None:  # the session expired while no relay ran
            engine.spawn(self._query(DeleteSession(token_hash)))

    def _query(self, request: StoreRequest[T]) -> Flow[T | Failure]:
        return (yield from run_operation(self._engine, Query(self._engine.new_op(), request)))

    def _again(self) -> None:
        for session in self._sessions.tombstones():
            self.erase_later(session)

    def _write(self, change: StoreRequest[None], problem: str, session: PairedSession) -> Flow[Failure | None]:
        # The write is completed even if the caller is cancelled.
        engine = self._engine
        if not self._has_store:
            self._unsaved.pop(session.token_hash, None)
            return None

        def write() -> Flow[Failure | None]:
            answer = yield from self._query(change)
            failure = answer if isinstance(answer, Failure) and answer.kind is not FailureKind.NOT_FOUND else None
            if failure is not None:
                engine.log(
                    Level.ERROR,
                    problem,
                    problem=failure.kind.value,
                    session=session.token_prefix,
                    device=session.device_name,
                )
            if failure is None or not session.is_active(engine.now.wall):
                self._unsaved.pop(session.token_hash, None)
            if isinstance(change, DeleteSession):
                yield from self._erasing_ended(session, failed=failure is not None)
            return answer

        return (yield from shield(engine, write(), within=STORE_TIMEOUT))

    def _erasing_ended(self, session: PairedSession, *, failed: bool) -> Flow[None]:
        engine = self._engine
        if not failed:
            self._sessions.forget_revoked(session)
        else:
            self._sessions.remember_revoked(session)
            if self._timer.when is None and not engine.stopping:
                self._timer.set(engine.now.mono + ERASE_AGAIN)
        text = self._tombstones()
        if text == self._written and not (self._shared and text):  # another relay may have replaced the file
            return
        remote_records = (yield from self._read_remote_records()) if self._shared else ""
        kept: Failure | None
        if isinstance(remote_records, Failure):  # replacing the file would undo revocations of other relays
            kept = remote_records
        else:
            kept = yield from run_operation(engine, WriteConfig(engine.new_op(), TOMBSTONES, remote_records + text))
        if not isinstance(kept, Failure):
            self._written = text  # the host executes these writes in order
        elif failed:
            engine.log(Level.ERROR, "revoked session would be back after a restart", problem=kept.kind.value)

    def _read_remote_records(self) -> Flow[str | Failure]:
        found = yield from read_state(self._engine, TOMBSTONES)
        if isinstance(found, Failure):
            return found
        ours = {*self._written.split(), *self._tombstones().split()}
        return "".join(f"{line}\n" for line in (found or "").split() if line not in ours)

    def _tombstones(self) -> str:
        return "".join(f"{session.token_hash}\n" for session in self._sessions.tombstones())
