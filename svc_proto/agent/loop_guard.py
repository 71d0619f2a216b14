"""Guard against a model that repeats itself: equal calls, cycles of calls, acts without progress.

    guard = LoopGuard()
    notice = guard.record(call, result, is_act=True)      # for the model, in its result
    if guard.reason is not None: ...         # the turn ends, with these words for people

Two calls are equal if tool, arguments and result are equal, apart from numbers of looks; two acts also need equal
latest screens.
"""

import re

from attrs import define, field, frozen

from svc_proto.agent.interface import ToolCall
from svc_proto.agent.unfinished_work import UnfinishedWork
from svc_proto.basics import strict_json
from svc_proto.basics.entropy import sha256_hex
from svc_proto.schema.effects.screen_tree import ScreenTree

__all__ = ["LoopGuard", "ScreenTrail", "fingerprint_of"]

EQUAL_NOTICE, EQUAL_END = 3, 5  # equal calls in a row
PATIENCE = {"phone_media": 4}  # times the limits above: volume and tracks change without a trace on the screen
CYCLES = (2, 3, 4, 5)  # calls of one round
CYCLE_END = 12  # calls in rounds that end the turn; three rounds also do. Two rounds have a notice
ACTS_NOTICE, ACTS_END = 6, 8  # acts since the screen was last one that the turn had not seen
MAX_RECORDS = 64  # calls that are compared
MAX_UNFINISHED = 20  # acts in the report of a turn
MAX_OUTCOME = 160  # characters of an error in it
_LOOK = re.compile(r"\bscreen [0-9]+\b")  # the number of a look, which is another one for an equal screen
DENIED = "denied"
DENIALS = (
    "The user did not allow",
    "The user has already denied",
    "This call needs the user's approval",
    "user_denied",
)


def fingerprint_of(tree: ScreenTree) -> str:
    """Return a digest of a screen: its app, and the texts, classes, places and states of its nodes."""
    rows = [
        (node.labels, node.class_name, node.bounds, node.focused, node.selected, node.reported_checked)
        for node in tree.nodes
    ]
    return sha256_hex(repr((tree.package, rows)))[:16]


@frozen
class _Look:
    """Number of screens read so far, and of those that differed from the screen before."""

    count: int = 0
    changes: int = 0


@define
class ScreenTrail:
    """Digest of the latest screen of a turn, the set of all its screens' digests, and counts of looks and idle acts."""

    current: str = ""
    idle_acts: int = 0  # acts since the last screen that was new in this turn
    latest: _Look = _Look()
    at_act: _Look | None = None  # as the last act was sent; None: no screen was read for it
    _seen: set[str] = field(factory=set)

    def see(self, tree: ScreenTree) -> None:
        """Record a screen that was read, by its digest; one that is new in this turn resets `idle_acts`."""
        digest = fingerprint_of(tree)
        self.latest = _Look(self.latest.count + 1, self.latest.changes + (digest != self.current))
        self.current = digest
        if digest not in self._seen:
            self._seen.add(digest)
            self.idle_acts = 0

    def act(self, *, shows: bool = True) -> None:
        """Record that an acting command is about to be sent; `shows`: its effect would be visible on the screen."""
        self.idle_acts += shows
        self.at_act = self.latest if shows and self.latest.count else None


@frozen
class _Act:
    call: ToolCall
    look: _Look | None
    outcome: str  # empty: done


class LoopGuard:
    """Guard of one turn against a model that repeats itself. `reason` is set once the turn must end."""

    def __init__(self) -> None:
        self.trail = ScreenTrail()
        self.work = UnfinishedWork()
        self.reason: str | None = None
        self._keys: list[str] = []
        self._acts: list[_Act] = []

    def record(self, call: ToolCall, result: str, *, is_act: bool) -> str | None:
        """Record a call with its result; return a notice for the model or None.

        There is a notice if equal calls or a cycle of calls repeat, or if acts bring up no new screen. Sets `reason`
        once the turn must end for it.
        """
        trail = self.trail
        outcome = _outcome_of(result)
        if is_act or outcome == DENIED:
            self._acts = [*self._acts[-MAX_RECORDS:], _Act(call, trail.at_act, outcome)]
        trail.at_act = None
        # The number of a look is another one for an equal screen, in an argument as in a result.
        arguments = strict_json.dumps({name: call.args[name] for name in sorted(call.args) if name != "look"})
        said = _LOOK.sub("screen", result)
        key = sha256_hex(f"{call.name} {arguments} {said} {trail.current if is_act else ''}")
        self._keys = [*self._keys[-MAX_RECORDS:], key]
        notices = (self._equal(call.name), self._cycle(), self._idle() if is_act else None)
        return next((notice for notice in notices if notice is not None), None)

    def unfinished(self, prompt: str = "", answer: str = "") -> tuple[str, ...]:
        """Return at most `MAX_UNFINISHED` lines for people about what the turn has not completed.

        The lines name acts that failed or changed nothing on the screen, denied calls, and what was left open.
        """
        following = self.trail.latest
        lines: list[str] = []
        for act in reversed(self._acts):
            look, outcome = act.look, act.outcome
            if look is not None:
                if not outcome and following.count > look.count and following.changes == look.changes:
                    outcome = "nothing changed on the screen"
                following = look
            if outcome:
                lines.append(" ".join(filter(None, (act.call.name, act.call.preview))) + f": {outcome}")
        return (*dict.fromkeys(reversed(lines)), *self.work.lines(prompt, answer))[-MAX_UNFINISHED:]

    def _equal(self, name: str) -> str | None:
        newest = self._keys[-1]
        count = next((place for place, key in enumerate(reversed(self._keys)) if key != newest), len(self._keys))
        patience = PATIENCE.get(name, 1)
        if count >= EQUAL_END * patience:
            self.reason = f"The agent was stopped: it made the same call {count} times, with the same result."
        if count < EQUAL_NOTICE * patience:
            return None
        return f"You have made this call {count} times with the same result. Do something else, or tell the user."

    def _cycle(self) -> str | None:
        keys = self._keys
        for size in CYCLES:
            if len(set(keys[-size:])) < 2:
                continue
            pairs = list(zip(reversed(keys), reversed(keys[:-size]), strict=False))
            length = size + next((place for place, (one, other) in enumerate(pairs) if one != other), len(pairs))
            if length >= min(CYCLE_END, 3 * size):
                self.reason = f"The agent was stopped: it repeated the same {size} calls, with the same results."
            if length >= 2 * size:
                return f"You repeat the same {size} calls with the same results. Do something else, or tell the user."
        return None

    def _idle(self) -> str | None:
        acts = self.trail.idle_acts
        if acts >= ACTS_END:
            self.reason = f"The agent was stopped: its last {acts} acts brought up nothing new on the screen."
        return None if acts < ACTS_NOTICE else f"Your last {acts} acts brought up no new screen. Try another way."


def _outcome_of(result: str) -> str:
    """Return the reason why a call failed, for people; empty for a call that succeeded."""
    if not result.startswith("error: "):
        return ""
    if any(words in result for words in DENIALS):
        return DENIED
    return result.removeprefix("error: ").partition("\n")[0][:MAX_OUTCOME]
