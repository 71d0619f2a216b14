"""Records of changes that principals made at the agent: approvals, settings and notes.

The file holds private texts, as the files of memory and approvals do.
"""

from collections.abc import Iterable

from attrs import asdict

from svc_proto.basics import strict_json
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.schema.json_object import JsonObject

__all__ = [
    "APPROVAL",
    "FILE",
    "MAX_CHANGES",
    "MEMORY",
    "SETTING",
    "AgentChange",
    "changes_by",
    "parse_changes",
    "write_changes",
]

FILE = "agent-changes.json"  # in the state folder
MAX_CHANGES = 1_000  # the oldest is dropped
APPROVAL, SETTING, MEMORY = "approval", "setting", "memory"
KINDS = (APPROVAL, SETTING, MEMORY)


@fast_frozen(kw_only=True)
class AgentChange:
    """A change by one principal. `target` is the chat of an approval, the name of a setting, or the list of a note."""

    at: float  # wall time in epoch seconds
    principal: str  # as in `Authority.name`
    kind: str
    target: str
    before: str = ""  # empty: there was none
    after: str = ""  # empty: removed


def parse_changes(text: str) -> tuple[AgentChange, ...]:
    """Parse the file; entries of an unknown kind are skipped."""
    found = JsonObject.parse_or_empty(text).objects("changes")
    return tuple(
        AgentChange(
            at=each.number("at") or 0.0,
            principal=each.text("principal"),
            kind=each.text("kind"),
            target=each.text("target"),
            before=each.text("before"),
            after=each.text("after"),
        )
        for each in found
        if each.text("kind") in KINDS
    )


def write_changes(changes: Iterable[AgentChange]) -> str:
    """Return the text of the file with the newest `MAX_CHANGES` changes."""
    return strict_json.dumps({"changes": [asdict(change) for change in (*changes,)[-MAX_CHANGES:]]}) + "\n"


def changes_by(changes: Iterable[AgentChange], name: str) -> list[AgentChange]:
    """Return the changes of a principal, named by its prefix, its device or both, in the given order."""
    return [change for change in changes if name in (change.principal, *_names(change.principal))]


def _names(principal: str) -> tuple[str, str]:
    prefix, _, device = principal.partition(" ")
    return prefix, device or prefix
