"""Phone control for the agent's tools that obtains the owner's consent before a command whose effect needs it.

No consent is requested if the phone itself requests a confirmation of the command (wire bridge 5.4, 5.5), if an
approval of the tool's call comes before it, or if the owner has granted the effect in this turn. Nor is it on a route
on which phones always request a confirmation, as long as the turn has read no private data.
"""

import re
from collections.abc import Mapping
from typing import Protocol

from svc_proto.agent.private_data import CONTENT
from svc_proto.agent.turn_consent import CallConsent
from svc_proto.basics.errors import ToolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.schema.device_control import ControlRoute, RouteEffect, ScreenGesture
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from svc_proto.schema.effects.app_kinds import AppKind, kind_of_app
from svc_proto.schema.effects.command_effects import Effect, effect_of_command
from svc_proto.schema.effects.label_words import DEFAULT_VERBS
from svc_proto.schema.effects.screen_tree import ScreenTree
from svc_proto.schema.effects.task_apps import effect_elsewhere
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.phone_control import PhoneControl, PhoneResponse

__all__ = ["ALREADY_DENIED", "ConsentingPhoneControl", "StatusSource"]

ALREADY_DENIED = (
    "The user has already denied this in this turn, so it was not done.",
    "Respect that: tell the user, and do not try the same by other means.",
)
_VERBS = re.compile(rf"(?<!\w)(?:{'|'.join(DEFAULT_VERBS)})(?!\w)", re.IGNORECASE)  # as the phone's gates match them
_LEAVING = ("/open_app", "/press_key")  # the app in front may be another one afterwards


class StatusSource(PhoneControl, Protocol):
    """Phone control with access to the phone's status."""

    def phone_status(self, arguments: Mapping[str, object]) -> Flow[JsonObject]:
        """Return the status of the phone that a call goes to; empty if it is unknown (wire bridge 1.3)."""
        ...


class ConsentingPhoneControl:
    """Phone control of one tool call. Implements `PhoneControl`."""

    def __init__(self, link: StatusSource, consent: CallConsent) -> None:
        self._link = link
        self._consent = consent
        self._tree: ScreenTree | None = None  # the screen, if this call has read it since its last act

    @property
    def engine(self) -> Engine:
        """Return the engine of the link."""
        return self._link.engine

    def call(self, method: str, path: str, arguments: Mapping[str, object]) -> Flow[PhoneResponse]:
        """Call a route of the relay and return its response, after the owner's consent to an effect that needs it.

        Raises `ToolError` if the owner does not allow the effect, or as the link does.
        """
        turn = self._consent.turn
        row = DEVICE_CONTROL[method, path]
        if row.effect is RouteEffect.READS:
            answer = yield from self._link.call(method, path, arguments)
            self._note(path, answer)
            return answer
        tree = yield from self._screen(row, arguments)
        effect = yield from self._effect(path, arguments, tree)
        if path in _LEAVING:
            turn.leave_screen()
        if effect is not None:
            yield from self._obtain(effect, row, arguments, tree)
        controls = tree.targets(path, arguments)
        turn.loop.trail.act(shows=not any(each.hides_its_state for each in controls))
        turn.loop.work.record_act(path, arguments, tree, controls, has_effect=effect is not None and not effect.soft)
        answer = yield from self._link.call(method, path, arguments)
        self._tree = None
        if effect is not None:
            body = JsonObject.of(answer.body)
            if body.get("error_code") == "user_denied":
                turn.deny(effect)
            elif body.get("confirmed") is True:
                turn.grant(effect, tree)
        return answer

    def media(self, token: str) -> Flow[bytes]:
        """Return a file that a phone has uploaded, from the link."""
        return self._link.media(token)

    def gate_bound_arguments(self, arguments: Mapping[str, object]) -> Flow[Mapping[str, object] | None]:
        """Return the arguments as the link marks them for a phone that asks its user; None for another phone."""
        return self._link.gate_bound_arguments(arguments)

    def activity(self) -> Flow[list[JsonObject]]:
        """Return the latest commands of this client, newest first, from the link."""
        return self._link.activity()

    def _note(self, path: str, answer: PhoneResponse) -> None:
        turn = self._consent.turn
        turn.loop.work.has_picture |= path == "/screenshot"
        if answer.status >= 400 or path not in CONTENT:
            return
        turn.private.read_answer(path, answer.body)
        if path == "/screen":
            self._see(ScreenTree.parse(answer.body))

    def _screen(self, row: ControlRoute, arguments: Mapping[str, object]) -> Flow[ScreenTree]:
        if row.gesture is None:  # before the others also for the guard against loops
            return ScreenTree()
        if self._tree is None:
            device = {name: value for name, value in arguments.items() if name == "device"}
            answer = yield from self._link.call("GET", "/screen", {"include_bounds": True, **device})
            if answer.status >= 400:
                return ScreenTree()
            return self._see(ScreenTree.parse(answer.body))
        return self._tree

    def _see(self, tree: ScreenTree) -> ScreenTree:
        self._tree = tree
        turn = self._consent.turn
        turn.source = tree.package
        turn.loop.trail.see(tree)
        turn.loop.work.record_screen(tree)
        return tree

    def _effect(self, path: str, arguments: Mapping[str, object], tree: ScreenTree) -> Flow[Effect | None]:
        turn = self._consent.turn
        if turn.phone is None:
            turn.phone = yield from self._link.phone_status(arguments)
        client = turn.phone.get_object("device").text("application_id")
        found = effect_of_command(path, arguments, tree, client=client)
        if not turn.apps or (found is not None and self._needs_consent(found)):
            return found
        return effect_elsewhere(path, arguments, tree, turn.apps) or found

    def _obtain(
        self, effect: Effect, row: ControlRoute, arguments: Mapping[str, object], tree: ScreenTree
    ) -> Flow[None]:
        turn = self._consent.turn
        if not self._needs_consent(effect):
            return
        if turn.is_denied(effect):
            raise ToolError(*ALREADY_DENIED)
        asked_before = any(tool.needs_approval is not None for tool in row.tools)  # the approval comes before the tool
        if asked_before or turn.is_granted(effect, tree) or self._phone_asks(row, arguments, tree):
            return
        if row.always_asks and not turn.private.was_read:
            return
        yield from self._consent.request(effect, tree)

    def _needs_consent(self, effect: Effect) -> bool:
        """Report whether an effect needs the owner's consent.

        One that is not `soft` does. A `soft` effect needs it if its details hold private data that was read. After any
        private data was read, it also needs it in a browser or with a recipient.
        """
        private = self._consent.turn.private
        if not effect.soft or private.is_in(effect.details):
            return True
        return private.was_read and (kind_of_app(effect.place) is AppKind.BROWSER or bool(effect.recipient))

    def _phone_asks(self, row: ControlRoute, arguments: Mapping[str, object], tree: ScreenTree) -> bool:
        """Report whether the phone itself requests a confirmation from its user.

        It does so on some routes, and for a press if each touched control has one of certain verbs in its labels. A
        phone whose status does not report a count of at least 1 such verb never does.
        """
        safety = (self._consent.turn.phone or JsonObject()).get_object("safety")
        if not safety.integer("destructive_verbs_count", 1):
            return False
        if row.always_asks:
            return True
        if row.gesture is not ScreenGesture.PRESS:
            return False
        controls = tree.targets(row.path, arguments)
        return bool(controls) and all(_VERBS.search(" | ".join(control.labels)) for control in controls)
