"""Bugs to plant in the rooms around the phone: introductions, speech, the dashboard, its gates, other settings."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from fuzz.invariants import Invariant
from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.dashboard import checks, relay_calls
from svc_proto.dashboard.access import Gate
from svc_proto.device.safety import rules
from svc_proto.device.safety.confirmation import PhoneQuestion, Trust
from svc_proto.device.safety.gate import SafetyGate
from svc_proto.device.safety.verbs import DestructiveVerbs
from svc_proto.engine.callers import Proxies
from svc_proto.engine.message import Request
from svc_proto.machines import grants, limiter, pairing, session
from svc_proto.machines.bridge import BridgeCommands
from svc_proto.relay.routes import inbox, voice_basic
from svc_proto.relay.service import Relay
from svc_proto.voice.profiles import profile_of
from svc_proto.voice.speech import LabMode
from tests.fuzz.plant import Patch, Plant

__all__ = ["ROOMS"]


def _the_lab_still_speaks_for_who_left(patch: Patch) -> None:
    def lost(self: LabMode) -> None:
        if self.speaking:
            self.over()
            self.speaking = True

    patch.setattr(LabMode, "on_lost", lost)


def _a_body_beats_what_the_address_says(patch: Patch) -> None:
    def named(query: Mapping[str, str], body: Mapping[str, object] | None = None) -> str | None:
        return profile_of({}, body) or profile_of(query)

    patch.setattr(voice_basic, "profile_of", named)


def _the_right_password_passes_a_block(patch: Patch) -> None:
    check = Gate._check_password

    def lax(self: Gate, request: Request, now: Moment) -> None:
        try:
            check(self, request, now)
        except Refused as refused:
            if refused.status != 429 or self._password not in _shown(request):
                raise

    patch.setattr(Gate, "_check_password", lax)


def _shown(request: Request) -> bytes:
    return b64decode((request.headers.get(b"authorization") or b"").partition(b" ")[2])


def _a_flag_that_is_said_is_on(patch: Patch) -> None:
    def lax(request: Request, name: str) -> bool | None:
        return None if checks.flag_of(request, name) is None else True

    patch.setattr(relay_calls, "flag_of", lax)


def _a_host_is_no_name(patch: Patch) -> None:
    patch.setitem(session.DEVICE_MEMBERS, "name", ("device_name",))


def _one_bad_wish_spoils_the_others(patch: Patch) -> None:
    def strict(value: object) -> dict[str, float | None] | None:
        found = grants.lenient_grants(value)
        return found if isinstance(value, dict) and found is not None and len(found) == len(value) else None

    patch.setattr(pairing, "lenient_grants", strict)


def _a_command_that_waits_is_not_counted(patch: Patch) -> None:
    patch.setattr(BridgeCommands, "pending_count", property(lambda self: max(0, len(self._pending) - 1)))


def _a_picture_goes_after_four_minutes(patch: Patch) -> None:
    patch.setattr(inbox, "STALE_AFTER", 240.0)


def _who_trusts_one_verb_trusts_all(patch: Patch) -> None:
    covers = Trust.covers

    def lax(self: Trust, question: PhoneQuestion) -> bool:
        return covers(self, question) or (question.verb is not None and bool(self._verbs))

    patch.setattr(Trust, "covers", lax)


def _only_the_app_in_front_is_blocked(patch: Patch) -> None:
    def front(self: SafetyGate, command: Any) -> Any:
        package = self._handset.foreground
        return rules.blocked_package(command, package) if package in self.blocklist else None

    patch.setattr(SafetyGate, "_blocked", front)


def _a_verb_is_found_in_other_words(patch: Patch) -> None:
    def matches(self: DestructiveVerbs, text: str) -> tuple[str, ...]:
        return tuple(verb for verb in self.verbs if verb in text.lower())

    patch.setattr(DestructiveVerbs, "matches", matches)


def _an_allow_is_for_whatever_has_come_since(patch: Patch) -> None:
    after = SafetyGate._after_allow

    def lax(self: SafetyGate, confirmation: Any, now: Moment) -> Any:
        with patch.context() as inner:
            inner.setattr(SafetyGate, "_refusal", lambda self, command, now: None)
            return after(self, confirmation, now)

    patch.setattr(SafetyGate, "_after_allow", lax)


def _each_address_of_a_net_has_guesses_of_its_own(patch: Patch) -> None:
    patch.setattr(limiter, "address_key", lambda address: address)


def _profiles_are_told_when_their_names_change(patch: Patch) -> None:
    found = Relay._profiles_found

    def lazy(self: Relay, profiles: list[dict[str, object]]) -> None:
        if [each["name"] for each in profiles] != [each["name"] for each in self.profiles]:
            found(self, profiles)
        self.profiles = profiles

    patch.setattr(Relay, "_profiles_found", lazy)


def _a_proxy_is_believed_the_first_it_names(patch: Patch) -> None:
    def address(self: Proxies, request: Request) -> str:
        hops = request.headers.tokens(b"x-forwarded-for")
        return hops[0].decode() if hops and self._trusts(request.peer.host) else request.peer.host

    patch.setattr(Proxies, "address", address)


TOLD = (Invariant.AS_TOLD,)
ROOMS = (
    Plant(_the_lab_still_speaks_for_who_left, 11, TOLD),
    Plant(_a_body_beats_what_the_address_says, 25, TOLD),
    Plant(_the_right_password_passes_a_block, 13, TOLD),
    Plant(_a_flag_that_is_said_is_on, 39, TOLD),
    Plant(_a_host_is_no_name, 3, TOLD),
    Plant(_one_bad_wish_spoils_the_others, 3, (*TOLD, Invariant.LIFETIME)),
    Plant(_a_command_that_waits_is_not_counted, 0, TOLD),
    Plant(_a_picture_goes_after_four_minutes, 19, TOLD),
    Plant(_who_trusts_one_verb_trusts_all, 15, TOLD),
    Plant(_only_the_app_in_front_is_blocked, 66, TOLD),
    Plant(_a_verb_is_found_in_other_words, 5, TOLD),
    Plant(_an_allow_is_for_whatever_has_come_since, 15, (*TOLD, Invariant.CONFIRMED)),
    Plant(_each_address_of_a_net_has_guesses_of_its_own, 2, TOLD),
    Plant(_profiles_are_told_when_their_names_change, 0, TOLD),
    Plant(_a_proxy_is_believed_the_first_it_names, 6, TOLD),
)
