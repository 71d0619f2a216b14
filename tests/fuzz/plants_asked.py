"""Bugs to plant where nobody had asked: who is remembered, what is shown to whom, what a word is worth later."""

from __future__ import annotations

from fuzz.invariants import Invariant
from svc_proto.agent import pair_command
from svc_proto.agent.contract import TextDelta
from svc_proto.commands import DeleteBlob
from svc_proto.device.safety.consent import Consents
from svc_proto.engine.flow import Flow
from svc_proto.machines.mentions import Mentions
from svc_proto.machines.phones import Phone
from svc_proto.peers import vitals
from svc_proto.relay import oauth
from svc_proto.relay.shells import Shells
from svc_proto.relay.voice_access import ApiProbe
from svc_proto.voice.options import Options
from tests.fuzz.plant import Patch, Plant

__all__ = ["ASKED"]


def _a_no_of_the_api_is_remembered(patch: Patch) -> None:
    accepts, refused = ApiProbe.accepts, dict[str, None]()

    def remembers(self: ApiProbe, bearer: str, *, afresh: bool = False) -> Flow[bool]:
        if bearer in refused:
            return False
        good = yield from accepts(self, bearer, afresh=afresh)
        if not good:
            refused[bearer] = None
        return good

    patch.setattr(ApiProbe, "accepts", remembers)


def _a_consent_to_pictures_outlives_the_toggle(patch: Patch) -> None:
    patch.setattr(Consents, "end_capture_session", lambda self: None)


def _a_session_of_tmux_is_ended_by_how_its_name_begins(patch: Patch) -> None:
    def kill(self: Shells, name: str) -> Flow[bool]:
        return (yield from self._succeeds("kill-session", "-t", self.session_name(name)))

    patch.setattr(Shells, "kill_session", kill)


def _a_question_is_answered_without_its_ballot(patch: Patch) -> None:
    patch.setattr(oauth, "same_secret", lambda one, other: True)


def _a_vendor_is_known_whatever_the_key(patch: Patch) -> None:
    patch.setattr(Options, "_key", lambda self, info: (info.id, ""))


def _a_code_that_was_shown_is_kept(patch: Patch) -> None:
    patch.setattr(pair_command, "Unkept", TextDelta)


def _looks_are_counted_as_requests(patch: Patch) -> None:
    patch.setattr(vitals, "OURS", ())


def _each_wrong_token_is_told(patch: Patch) -> None:
    patch.setattr(Mentions, "is_due", lambda self, address, now: True)


def _what_an_engine_was_given_stays(patch: Patch) -> None:
    patch.setattr("svc_proto.voice.providers.command.DeleteBlob", lambda path: DeleteBlob(f"{path}.x"))


def _every_phone_asks_its_user(patch: Patch) -> None:
    patch.setattr(Phone, "asks", property(lambda self: True))


ASKED = (
    Plant(_a_no_of_the_api_is_remembered, 2, (Invariant.AS_TOLD,)),
    Plant(_a_consent_to_pictures_outlives_the_toggle, 86, (Invariant.AS_TOLD,)),
    Plant(_a_session_of_tmux_is_ended_by_how_its_name_begins, 4, (Invariant.AS_TOLD,)),
    Plant(_a_question_is_answered_without_its_ballot, 6, (Invariant.CONSENT,)),
    Plant(_a_vendor_is_known_whatever_the_key, 17, (Invariant.AS_TOLD,)),
    Plant(_a_code_that_was_shown_is_kept, 12, (Invariant.AS_TOLD,)),
    Plant(_looks_are_counted_as_requests, 4, (Invariant.AS_TOLD,)),
    Plant(_each_wrong_token_is_told, 2, (Invariant.AS_TOLD,)),
    Plant(_what_an_engine_was_given_stays, 7, (Invariant.AS_TOLD,)),
    Plant(_every_phone_asks_its_user, 16, (Invariant.AS_TOLD,)),
)
