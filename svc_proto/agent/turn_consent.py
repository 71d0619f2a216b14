"""Consent in one turn: what the model has read, and what the owner has allowed and denied.

A denial covers, for the rest of the turn and by any tool, effects with the same recipient, in the same app, or of the
same kind; the app does not count for soft effects, the kind not for those of `_WIDE`. After `MAX_DENIALS` all further
effects that need consent are refused without a question.
"""

from __future__ import annotations

from typing import Protocol

from attrs import define, field

from svc_proto.agent.loop_guard import LoopGuard
from svc_proto.agent.private_data import PrivateData
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.sync import Lock
from svc_proto.schema.effects.command_effects import Effect, digits_of
from svc_proto.schema.effects.effect_kinds import EffectKind
from svc_proto.schema.effects.effect_words import is_harmless
from svc_proto.schema.effects.screen_tree import ScreenTree
from svc_proto.schema.json_object import JsonObject

__all__ = ["MAX_DENIALS", "CallConsent", "TurnConsent"]

MAX_DENIALS = 3  # questions of one turn that the owner denied; then further effects are refused without a question
MAX_COMPLETIONS = 3  # presses that complete one approved effect
MAX_CONFIRMATION = 6  # texts of a dialog that confirms an approved effect by the same label
# Kinds that are so wide that a denial covers the same recipient alone.
_WIDE = (EffectKind.INTENT, EffectKind.DISCLOSURE, EffectKind.ELSEWHERE)
_REPEATABLE = (EffectKind.SETTING, EffectKind.SECRET, EffectKind.DISCLOSURE, EffectKind.ELSEWHERE)


@define
class _Grant:
    effect: Effect
    seen: frozenset[str]  # labels of the screen at the approval
    left: int = MAX_COMPLETIONS


@define(eq=False)
class TurnConsent:
    """State of one turn. `has_read`: the model has read what others wrote. `apps`: those of the task; empty: all."""

    private: PrivateData
    asking: Lock  # one question of a turn at a time
    has_read: bool
    loop: LoopGuard
    apps: tuple[str, ...] = ()
    phone: JsonObject | None = None  # status of the phone, once it is known
    source: str = ""  # app whose screen was read last
    _denied: list[Effect] = field(factory=list)
    _granted: list[_Grant] = field(factory=list)

    @classmethod
    def begin(
        cls,
        engine: Engine,
        prompt: str = "",
        *,
        has_read: bool = False,
        loop: LoopGuard | None = None,
        apps: tuple[str, ...] = (),
    ) -> TurnConsent:
        """Return the state of a turn that begins."""
        return cls(PrivateData(prompt), Lock(engine), has_read, LoopGuard() if loop is None else loop, apps)

    def deny(self, effect: Effect) -> None:
        """Record that the owner denied an effect, or did not answer."""
        self._denied.append(effect)

    def grant(self, effect: Effect, tree: ScreenTree) -> None:
        """Record that the owner allowed an effect on a screen.

        Consent to use another app covers no further steps but its repetition, and ends no earlier approval.
        """
        if effect.kind is EffectKind.ELSEWHERE:
            self._granted.insert(0, _Grant(effect, frozenset(), left=0))
            return
        self._granted.append(_Grant(effect, frozenset(tree.texts)))

    def leave_screen(self) -> None:
        """Record that the screen of the last approval was left: the approval covers no further steps."""
        if self._granted:
            self._granted[-1].left = 0

    def is_denied(self, effect: Effect) -> bool:
        """Report whether a denial of this turn covers an effect; after `MAX_DENIALS` every effect counts as denied."""
        return len(self._denied) >= MAX_DENIALS or any(_covers_denied(each, effect) for each in self._denied)

    def is_granted(self, effect: Effect, tree: ScreenTree) -> bool:
        """Report whether an approval of this turn covers an effect.

        Each approval covers the same effect again, if its kind is in `_REPEATABLE`. The last one also covers the steps
        that complete its effect: each call that reports such a step uses up one of `MAX_COMPLETIONS`.
        """
        for grant in self._granted:
            same = (grant.effect.kind, grant.effect.place) == (effect.kind, effect.place)
            if same and grant.effect == effect and effect.kind in _REPEATABLE:
                return True
        if not self._granted:
            return False
        last = self._granted[-1]
        is_new = bool(effect.label) and (
            not set(effect.label.split(" / ")) & last.seen or _is_confirmation(tree, last.seen)
        )
        kinds = (last.effect.kind, EffectKind.CONFIRMATION)
        if not last.left or not is_new or effect.kind not in kinds or not _is_same_recipient(last.effect, effect):
            return False
        last.left -= 1
        last.seen |= frozenset(tree.texts)
        return True

    def taint(self, reads: bool) -> None:
        """Set `has_read` if `reads` is true: the model has read results that others wrote."""
        self.has_read = self.has_read or reads


class CallConsent(Protocol):
    """Access of one running tool call to the owner's consent."""

    @property
    def session_id(self) -> str:
        """Return the id of the chat that the call belongs to."""
        ...

    @property
    def turn(self) -> TurnConsent:
        """Return the consent state of the turn that the call belongs to."""
        ...

    def request(self, effect: Effect, tree: ScreenTree) -> Flow[None]:
        """Obtain the owner's consent to an effect: a stored approval or an answer. Raises `ToolError` without it."""
        ...

    def ask(self, question: str) -> Flow[str | None]:
        """Return the owner's answer to a question of the agent; None if this turn shows no questions.

        The answer is `once` for yes, `deny` for no or for none in time, or a text.
        """
        ...


def _is_confirmation(tree: ScreenTree, seen: frozenset[str]) -> bool:
    """Report whether the top window has few texts, and among them one that only leaves and is not in `seen`."""
    top = [node for node in tree.nodes if node.window == tree.nodes[0].window]
    labels = [label for node in top for label in node.labels]
    return len(labels) <= MAX_CONFIRMATION and any(is_harmless([each]) and each not in seen for each in labels)


def _covers_denied(denied: Effect, effect: Effect) -> bool:
    recipients = (denied.recipient, effect.recipient)
    if all(recipients) and (denied.recipient == effect.recipient or _is_same_number(*recipients)):
        return True
    if denied.place and denied.place == effect.place and not (denied.soft or effect.soft):
        return True
    return denied.kind is effect.kind and denied.kind not in _WIDE


def _is_same_number(one: str, other: str) -> bool:
    digits = digits_of(one)
    return bool(digits) and digits == digits_of(other)


def _is_same_recipient(granted: Effect, effect: Effect) -> bool:
    both = granted.recipient and effect.recipient
    return not both or granted.recipient == effect.recipient or _is_same_number(granted.recipient, effect.recipient)
