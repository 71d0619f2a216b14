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
from tests.fuzz.plant import Bed, Patch

__all__ = ["ASKED"]

ASKED = Bed(Invariant.AS_TOLD)


@ASKED.plant(2)
def a_no_of_the_api_is_remembered(patch: Patch) -> None:
    accepts, refused = ApiProbe.accepts, dict[str, None]()

    def remembers(self: ApiProbe, bearer: str, *, afresh: bool = False) -> Flow[bool]:
        if bearer in refused:
            return False
        good = yield from accepts(self, bearer, afresh=afresh)
        if not good:
            refused[bearer] = None
        return good

    patch.setattr(ApiProbe, "accepts", remembers)


@ASKED.instead(4, Shells, "kill_session")
def a_session_of_tmux_is_ended_by_how_its_name_begins(self: Shells, name: str) -> Flow[bool]:
    return (yield from self._succeeds("kill-session", "-t", self.session_name(name)))


@ASKED.plant(7)
def what_an_engine_was_given_stays(patch: Patch) -> None:
    patch.setattr("svc_proto.voice.providers.command.DeleteBlob", lambda path: DeleteBlob(f"{path}.x"))


ASKED.put(86, "a_consent_to_pictures_outlives_the_toggle", Consents, "end_capture_session", lambda self: None)
ASKED.put(
    6, "a_question_is_answered_without_its_ballot", oauth, "same_secret", lambda one, other: True, Invariant.CONSENT
)
ASKED.put(17, "a_vendor_is_known_whatever_the_key", Options, "_key", lambda self, info: (info.id, ""))
ASKED.put(12, "a_code_that_was_shown_is_kept", pair_command, "Unkept", TextDelta)
ASKED.put(4, "looks_are_counted_as_requests", vitals, "OURS", ())
ASKED.put(2, "each_wrong_token_is_told", Mentions, "is_due", lambda self, address, now: True)
ASKED.put(16, "every_phone_asks_its_user", Phone, "asks", property(lambda self: True))
