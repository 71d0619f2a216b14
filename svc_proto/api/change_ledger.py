"""Ledger of changes of the agent's approvals, settings and notes, and their undoing."""

from typing import Protocol

from attrs import frozen

from svc_proto.agent.interface import MemoryChange
from svc_proto.api.ports import ManagementPort
from svc_proto.basics.errors import Refused
from svc_proto.commands import Level, WriteConfig
from svc_proto.engine.files import read_state
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.sync import Lock
from svc_proto.facts import Failure
from svc_proto.machines.agent_changes import (
    APPROVAL,
    FILE,
    MEMORY,
    SETTING,
    AgentChange,
    changes_by,
    parse_changes,
    write_changes,
)

__all__ = ["ChangeLedger", "UndoneChange"]


class LedgerPort(ManagementPort, Protocol):
    """Members of the API server that the ledger of changes uses."""

    def setting_values(self) -> Flow[dict[str, str]]:
        """Return the values of the settings that can be changed, by name; "" if unset."""


@frozen
class UndoneChange:
    """A change, and the reason why it was not undone; empty if it was."""

    change: AgentChange
    kept: str = ""


class ChangeLedger:
    """Records changes in the background, in order, and undoes those of one principal."""

    def __init__(self, api: LedgerPort) -> None:
        self._api = api
        self._writing = Lock(api.engine)

    def approval(self, principal: str, session_id: str, pattern: str) -> None:
        """Record an approval for more than one call."""
        self._record(self._change(principal, APPROVAL, session_id, after=pattern))

    def memory(self, principal: str, change: MemoryChange) -> None:
        """Record a principal's change of the agent's notes."""
        before, after = change.removed or "", change.added or ""
        self._record(self._change(principal, MEMORY, change.target, before=before, after=after))

    def settings(self, principal: str, before: dict[str, str], after: dict[str, str]) -> None:
        """Record a principal's change of settings. Members of `after` that are equal in `before` are skipped."""
        self._record(
            *(
                self._change(principal, SETTING, name, before=before.get(name, ""), after=value)
                for name, value in after.items()
                if before.get(name, "") != value
            )
        )

    def find(self, name: str) -> Flow[list[AgentChange]]:
        """Return the recorded changes of the named principal, oldest first; those of all if `name` is empty.

        Raises `Refused` 503 if the ledger cannot be read.
        """
        changes = yield from self._read()
        return changes_by(changes, name) if name else list(changes)

    def undo(self, name: str) -> Flow[list[UndoneChange]]:
        """Undo the changes of the named principal, newest first, and remove those undone from the ledger.

        Return all of them, with the reasons why some were not undone. Raises `Refused` 503 if the ledger cannot be read
        or written.
        """
        yield from self._writing.acquire()
        try:
            changes = yield from self._read()
            undone = list[UndoneChange]()
            for change in reversed(changes_by(changes, name)):
                undone.append(UndoneChange(change, (yield from self._undo(change))))
            gone = [each.change for each in undone if not each.kept]
            yield from self._write(tuple(change for change in changes if change not in gone))
            return undone
        finally:
            self._writing.release()

    def _undo(self, change: AgentChange) -> Flow[str]:
        try:
            match change.kind:
                case "approval":
                    return (yield from self._api.parts.approvals.forget(change.target, change.after))
                case "setting":
                    return (yield from self._undo_setting(change))
                case _:
                    return (yield from self._undo_note(change))
        except Refused as refused:
            return refused.message

    def _undo_setting(self, change: AgentChange) -> Flow[str]:
        values = yield from self._api.setting_values()
        if values.get(change.target, "") != change.after:
            return "it was changed again"
        yield from self._api.config_file.change_model({change.target: change.before})
        return ""

    def _undo_note(self, change: AgentChange) -> Flow[str]:
        memory = self._api.parts.memory
        if change.after and change.before:
            done = yield from memory.replace(change.target, change.after, change.before)
        elif change.after:
            done = yield from memory.remove(change.target, change.after)
        else:
            done = yield from memory.add(change.target, change.before)
        return "" if done.status == 200 else done.text

    def _change(self, principal: str, kind: str, target: str, *, before: str = "", after: str = "") -> AgentChange:
        at = self._api.engine.now.wall
        return AgentChange(at=at, principal=principal, kind=kind, target=target, before=before, after=after)

    def _record(self, *changes: AgentChange) -> None:
        if changes:
            self._api.engine.spawn(self._append(changes))

    def _append(self, changes: tuple[AgentChange, ...]) -> Flow[None]:
        yield from self._writing.acquire()
        try:
            yield from self._write((*(yield from self._read()), *changes))
        except Refused:
            self._api.engine.log(Level.ERROR, "change not recorded", kind=changes[0].kind)
        finally:
            self._writing.release()

    def _read(self) -> Flow[tuple[AgentChange, ...]]:
        text = yield from read_state(self._api.engine, FILE)
        if isinstance(text, Failure):
            raise Refused(503, "store_unavailable", "the record of changes cannot be read")
        return parse_changes(text or "")

    def _write(self, changes: tuple[AgentChange, ...]) -> Flow[None]:
        engine = self._api.engine
        kept = yield from run_operation(engine, WriteConfig(engine.new_op(), FILE, write_changes(changes)))
        if isinstance(kept, Failure):
            raise Refused(503, "store_unavailable", "the record of changes cannot be written")
