"""Paired sessions of a clustered relay, merged from the store and the messages of other nodes.

All sessions are read at the start, a page at a time. A session that this node does not have is looked up in the store
by its token.
"""

from collections.abc import Mapping
from itertools import chain
from math import inf
from typing import Protocol, TypeVar

from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.cluster.node import RETRY, Node
from svc_proto.commands import Level, Query, StoreRequest
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task, run_operation, sleep
from svc_proto.engine.sync import Condition, Semaphore
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.paired_session import PairedSession
from svc_proto.machines.paired_session_registry import PairedSessionRegistry
from svc_proto.relay.session_records import SessionRecords
from svc_proto.schema.json_object import as_text
from svc_proto.store_requests import SESSIONS_PAGE, DeleteSession, LoadSessionChanges, LoadSessionRevision, LoadSessions

__all__ = ["CATCH_UP_TIMEOUT", "UNKNOWN", "ClusterSessions", "load_revision"]

T = TypeVar("T")

CATCH_UP_TIMEOUT = 5.0  # s for reading the changed sessions, after which the caller continues without
READ_AGAIN = 1.0  # s after the store did not answer
ENDED_TTL = 3_600.0  # s for which the hash of a revoked session is kept
MAX_ENDED = 10_000  # the oldest is dropped
CHANGE_TTL = 60.0  # s for which the time of a change is kept; a store query never takes that long
MAX_CHANGES = 10_000  # the oldest is dropped
MAX_LOOKUPS = 64  # concurrent lookups of unknown tokens in the store; further ones wait
MAX_WAITING = 10_000  # lookups that wait; a further one is refused with 503
LOOKUP_TIMEOUT = 5.0  # s for which a lookup waits, and then is refused with 503
LOAD_TIMEOUT = 5.0  # s for which a request waits for the reading of all sessions, and then is refused with 503
UNKNOWN_TTL = 10.0  # s for which an unknown token is not looked up again
MAX_UNKNOWN = 10_000  # the oldest is dropped
UNKNOWN = -1  # revision that no store has
MAX_COPIED = 1_000  # hashes that are copied without a pause, in a fraction of a millisecond
COPY_PAUSE = 0.001  # s in which the loop does other work
OVER = "the session was revoked"


class ClusterSessionsPort(Protocol):
    """Members of the relay that the sessions of a cluster use."""

    engine: Engine
    sessions: PairedSessionRegistry
    records: SessionRecords

    def grants_changed(self, session: PairedSession) -> None:
        """Close the MCP sessions and voice sockets, and unregister the phones, that lack a grant of the session now."""

    def name_changed(self, session: PairedSession) -> None:
        """Register the phones of a session under its new name."""

    def watch_sessions(self) -> None:
        """Set the timer for the next expiry of a session, or cancel it if no session expires."""

    def close_connections(self, session: PairedSession, reason: str) -> bool:
        """End a session at this node; return False if it had ended already."""

    def forget_session(self, session: PairedSession) -> None:
        """Revoke a session that no client uses; erase its record in the background."""


class ClusterSessions:
    """Synchronisation of one node's paired sessions with the store and with the other nodes."""

    def __init__(self, relay: ClusterSessionsPort, node: Node, revision: int, *, are_loaded: bool = True) -> None:
        """Create the synchronisation.

        The sessions here are those of the store up to `revision`, if they are loaded.
        """
        self._relay = relay
        self._node = node
        self._ended: ExpiringMap[str, bool] = ExpiringMap(MAX_ENDED)
        self._changes: ExpiringMap[str, tuple[float, float]] = ExpiringMap(MAX_CHANGES)  # by hash, see `note_change`
        self._read = Condition(relay.engine)
        self._task: Task | None = None  # that reads changed sessions
        self._again = False
        self._revision = revision  # of the store, up to which the sessions here are those of the store
        self._lookups = Semaphore(relay.engine, MAX_LOOKUPS)
        self._unknown: ExpiringMap[str, bool] = ExpiringMap(MAX_UNKNOWN)  # hashes that the store does not have
        self.are_loaded = are_loaded
        self._loaded = Condition(relay.engine)

    @property
    def ended(self) -> list[str]:
        """Return the recorded hashes of ended sessions; those of before `ENDED_TTL` remain until another one ends."""
        return [token_hash for token_hash, _ in self._ended.items()]

    def stop(self) -> None:
        """Cancel the reading of changed sessions."""
        if self._task is not None:
            self._task.cancel()

    def catch_up(self) -> Flow[None]:
        """Start to read the changed sessions, and wait at most `CATCH_UP_TIMEOUT` until they are read."""
        self.read_again()
        yield from self.caught_up()

    def caught_up(self, within: float = CATCH_UP_TIMEOUT) -> Flow[None]:
        """Wait at most `within` seconds until a reading of the changed sessions ends."""
        yield from self._read.wait(self._relay.engine.now.mono + within)

    def wait_until_loaded(self, within: float = LOAD_TIMEOUT) -> Flow[None]:
        """Wait until all sessions are loaded at this node. Raise `Refused` 503 after `within` seconds."""
        if not self.are_loaded and (yield from self._loaded.wait(self._relay.engine.now.mono + within)) is not None:
            raise Refused(503, "busy", "this node has just started and reads its sessions", headers=RETRY)

    def lookup(self, token: str) -> Flow[PairedSession | None]:
        """Read the session of a token from the store, apply it, and return this node's session of the token or None.

        A token that the store lacked in the last `UNKNOWN_TTL` seconds is not looked up. Raise `Refused` 503 at the
        limits, and if the store does not answer while not all sessions are loaded.
        """
        token_hash, engine = sha256_hex(token), self._relay.engine
        if self._unknown.get(token_hash, engine.now.mono):
            return None
        if self._lookups.waiting >= MAX_WAITING or not (yield from self._lookups.acquire(LOOKUP_TIMEOUT)):
            raise Refused(503, "busy", "too many tokens are being looked up", headers=RETRY)
        queried_at = engine.now.mono
        try:
            records = yield from self._query(LoadSessions(token_hash))
        finally:
            self._lookups.release()
        if isinstance(records, Failure) and not self.are_loaded:
            raise Refused(503, "store_unavailable", "the session store does not answer", headers=RETRY)
        for record in () if isinstance(records, Failure) else records:
            self._was_read(record, queried_at)
        session = self._relay.sessions.hashed(token_hash)
        if records == () and session is None:
            self._unknown.purge(engine.now.mono)
            self._unknown.put(token_hash, True, engine.now.mono + UNKNOWN_TTL)
        return session

    def apply_record(self, record: Mapping[str, object], at: float) -> None:
        """Apply a record that another node stored at `at` (Redis's clock).

        It is ignored if it is invalid, if the session has ended, or if this node has a later state of it.
        """
        token_hash = as_text(record.get("token_hash"))
        if token_hash is None or self._is_ahead(token_hash, at):
            return
        self.note_change(token_hash, at)
        self._apply_record(token_hash, record)

    def note_change(self, token_hash: str, at: float) -> None:
        """Record that this node has the session's state of time `at` (Redis's clock).

        For `CHANGE_TTL` older records are then ignored.
        """
        mono = self._relay.engine.now.mono
        self._changes.purge(mono)
        self._changes.put(token_hash, (at, mono), mono + CHANGE_TTL)

    def _is_ahead(self, token_hash: str, at: float) -> bool:
        """Report whether this node has an unstored change from `at` (Redis's clock) or later, or noted a later one."""
        now, session = self._relay.engine.now.mono, self._relay.sessions.hashed(token_hash)
        changed = None if session is None else self._relay.records.unsaved_since(session)
        if changed is not None and at <= self._node.cluster_time - (now - changed):
            return True
        changed_at, _ = self._changes.get(token_hash, now) or (-inf, 0.0)
        return at < changed_at

    def _was_read(self, record: Mapping[str, object], queried_at: float) -> None:
        """Apply a record of the store that a query at `queried_at` (monotonic s) returned.

        It is ignored if this node has an unsaved change of the session, saved or received one since the query, or has
        recorded the end of the session.
        """
        token_hash = as_text(record.get("token_hash"))
        if token_hash is None:
            return
        session = self._relay.sessions.hashed(token_hash)
        if session is not None and not self._relay.records.is_stored(session):
            return
        _, received_at = self._changes.get(token_hash, self._relay.engine.now.mono) or (0.0, -inf)
        if received_at < queried_at:
            self._apply_record(token_hash, record)

    def _apply_record(self, token_hash: str, record: Mapping[str, object]) -> None:
        relay = self._relay
        if self._ended.get(token_hash, relay.engine.now.mono):
            return
        try:
            session = relay.sessions.apply_record(record, relay.engine.now)
        except Refused as refused:
            relay.engine.log(Level.WARNING, "stored session skipped", problem=refused.message)
            return
        self._unknown.discard(token_hash)
        if session is not None:
            relay.grants_changed(session)
            relay.name_changed(session)
        elif not self.are_loaded and relay.sessions.hashed(token_hash) is None:  # it expired while no relay ran
            relay.engine.spawn(self._query(DeleteSession(token_hash)))
        relay.watch_sessions()

    def note_end(self, token_hash: str) -> None:
        """Store the hash of an ended session for `ENDED_TTL`, so that an old record does not bring the session back."""
        mono = self._relay.engine.now.mono
        self._ended.purge(mono)
        self._ended.put(token_hash, True, mono + ENDED_TTL)

    def end_local(self, token_hash: str) -> None:
        """End a session at this node that another node has revoked, or that is gone from the store."""
        self.note_end(token_hash)
        relay, session = self._relay, self._relay.sessions.hashed(token_hash)
        if session is not None and relay.close_connections(session, OVER) and not relay.records.is_stored(session):
            relay.forget_session(session)  # a pending write must not bring it back

    def read_again(self) -> None:
        """Start to read the changed sessions; while they are being read, read them once more afterwards."""
        self._again = True
        if self._task is None:
            self._task = self._relay.engine.spawn(self._read_until_current())

    def _read_until_current(self) -> Flow[None]:
        while self._again:
            self._again = False
            if not (yield from self._read_changes()):
                self._again = True
                yield from sleep(self._relay.engine, READ_AGAIN)
        self._task = None
        self._read.notify_all()

    def _read_changes(self) -> Flow[bool]:
        """Read the sessions that changed since the last reading; return whether the store has answered.

        All sessions are read if they are not loaded yet, or if the store does not have all these changes any more.
        """
        if not self.are_loaded:
            return (yield from self._read_sessions())
        while True:
            queried_at = self._relay.engine.now.mono
            changes = yield from self._query(LoadSessionChanges(self._revision, limit=SESSIONS_PAGE))
            if isinstance(changes, Failure):
                return changes.kind is FailureKind.NOT_FOUND and (yield from self._read_sessions())
            for change in changes:
                self._revision = change.revision
                if change.record is not None:
                    self._was_read({**change.record, "token_hash": change.token_hash}, queried_at)
                else:
                    self.end_local(change.token_hash)
            if len(changes) < SESSIONS_PAGE:
                return True

    def _read_sessions(self) -> Flow[bool]:
        """Read all sessions, a page at a time; return whether the store answered.

        A stored session of this node that is missing, in the list and in a second lookup, is ended.
        """
        revision = yield from load_revision(self._relay.engine)
        if revision == UNKNOWN:
            return False
        sessions = self._relay.sessions
        missing, unread = (yield from self._copy_hashes()), sessions.unread
        after = ""
        while True:
            queried_at = self._relay.engine.now.mono
            records = yield from self._query(LoadSessions(after=after, limit=SESSIONS_PAGE))
            if isinstance(records, Failure):
                return False
            for record in records:
                after = as_text(record.get("token_hash")) or after
                missing.get(after[:1], {}).pop(after, None)
                self._was_read(record, queried_at)
            unread = sessions.unread = max(unread - len(records), 0)
            if len(records) < SESSIONS_PAGE:
                break
        for token_hash in chain.from_iterable(missing.values()):
            session = self._relay.sessions.hashed(token_hash)
            if session is None or not self._relay.records.is_stored(session):
                continue
            found = yield from self._query(LoadSessions(token_hash))  # it may have been stored meanwhile
            if found == ():
                self.end_local(token_hash)
        self._revision = revision
        sessions.unread = 0
        if not self.are_loaded:
            self.are_loaded = True
            self._relay.engine.log(Level.INFO, "sessions loaded", sessions=len(sessions))
            self._loaded.notify_all()
        return True

    def _copy_hashes(self) -> Flow[dict[str, dict[str, None]]]:
        """Return the token hashes of this node's sessions, by their first character."""
        sessions = self._relay.sessions
        copied: dict[str, dict[str, None]] = {}
        for name in sessions.hash_groups():
            copied[name] = sessions.copy_hashes(name)
            if len(copied[name]) > MAX_COPIED:
                yield from sleep(self._relay.engine, COPY_PAUSE)
        return copied

    def _query(self, request: StoreRequest[T]) -> Flow[T | Failure]:
        return (yield from _query(self._relay.engine, request))


def load_revision(engine: Engine) -> Flow[int]:
    """Return the revision of the last change in the store; `UNKNOWN` without an answer."""
    revision = yield from _query(engine, LoadSessionRevision())
    return UNKNOWN if isinstance(revision, Failure) else revision


def _query(engine: Engine, request: StoreRequest[T]) -> Flow[T | Failure]:
    return (yield from run_operation(engine, Query(engine.new_op(), request)))
