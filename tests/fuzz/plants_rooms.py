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
from tests.fuzz.plant import Bed, Patch, Real

__all__ = ["ROOMS"]

ROOMS = Bed(Invariant.AS_TOLD)


@ROOMS.instead(11, LabMode, "on_lost")
def the_lab_still_speaks_for_who_left(self: LabMode) -> None:
    if self.speaking:
        self.over()
        self.speaking = True


@ROOMS.instead(25, voice_basic, "profile_of")
def a_body_beats_what_the_address_says(
    query: Mapping[str, str], body: Mapping[str, object] | None = None
) -> str | None:
    return profile_of({}, body) or profile_of(query)


@ROOMS.around(13, Gate, "_check_password")
def the_right_password_passes_a_block(check: Real[None], self: Gate, request: Request, now: Moment) -> None:
    try:
        check(self, request, now)
    except Refused as refused:
        if refused.status != 429 or self._password not in _shown(request):
            raise


def _shown(request: Request) -> bytes:
    return b64decode((request.headers.get(b"authorization") or b"").partition(b" ")[2])


@ROOMS.instead(39, relay_calls, "flag_of")
def a_flag_that_is_said_is_on(request: Request, name: str) -> bool | None:
    return None if checks.flag_of(request, name) is None else True


@ROOMS.plant(3)
def a_host_is_no_name(patch: Patch) -> None:
    patch.setitem(session.DEVICE_MEMBERS, "name", ("device_name",))


@ROOMS.instead(3, pairing, "lenient_grants", Invariant.AS_TOLD, Invariant.LIFETIME)
def one_bad_wish_spoils_the_others(value: object) -> dict[str, float | None] | None:
    found = grants.lenient_grants(value)
    return found if isinstance(value, dict) and found is not None and len(found) == len(value) else None


@ROOMS.plant(0)
def a_command_that_waits_is_not_counted(patch: Patch) -> None:
    patch.setattr(BridgeCommands, "pending_count", property(lambda self: max(0, len(self._pending) - 1)))


@ROOMS.around(15, Trust, "covers")
def who_trusts_one_verb_trusts_all(covers: Real[bool], self: Trust, question: PhoneQuestion) -> bool:
    return covers(self, question) or (question.verb is not None and bool(self._verbs))


@ROOMS.instead(66, SafetyGate, "_blocked")
def only_the_app_in_front_is_blocked(self: SafetyGate, command: Any) -> Any:
    package = self._handset.foreground
    return rules.blocked_package(command, package) if package in self.blocklist else None


@ROOMS.instead(5, DestructiveVerbs, "matches")
def a_verb_is_found_in_other_words(self: DestructiveVerbs, text: str) -> tuple[str, ...]:
    return tuple(verb for verb in self.verbs if verb in text.lower())


@ROOMS.plant(15, Invariant.AS_TOLD, Invariant.CONFIRMED)
def an_allow_is_for_whatever_has_come_since(patch: Patch) -> None:
    after = SafetyGate._after_allow

    def lax(self: SafetyGate, confirmation: Any, now: Moment) -> Any:
        with patch.context() as inner:
            inner.setattr(SafetyGate, "_refusal", lambda self, command, now: None)
            return after(self, confirmation, now)

    patch.setattr(SafetyGate, "_after_allow", lax)


@ROOMS.around(0, Relay, "_profiles_found")
def profiles_are_told_when_their_names_change(
    found: Real[None], self: Relay, profiles: list[dict[str, object]]
) -> None:
    if [each["name"] for each in profiles] != [each["name"] for each in self.profiles]:
        found(self, profiles)
    self.profiles = profiles


@ROOMS.instead(6, Proxies, "address")
def a_proxy_is_believed_the_first_it_names(self: Proxies, request: Request) -> str:
    hops = request.headers.tokens(b"x-forwarded-for")
    return hops[0].decode() if hops and self._trusts(request.peer.host) else request.peer.host


ROOMS.put(19, "a_picture_goes_after_four_minutes", inbox, "STALE_AFTER", 240.0)
ROOMS.put(2, "each_address_of_a_net_has_guesses_of_its_own", limiter, "address_key", lambda address: address)
