"""The phone side of the protocol: pair, stay connected, answer commands.

The names that embedders may use: docs/reference/public-names.md.
"""

from typing import TYPE_CHECKING

from svc_proto.basics.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from svc_proto.machines.candidate_selection import Candidate as Candidate
    from svc_proto.machines.candidate_selection import CandidateSelector as CandidateSelector
    from svc_proto.phone.backend import Handset as Handset
    from svc_proto.phone.backend import HandsetCommand as HandsetCommand
    from svc_proto.phone.backend import Later as Later
    from svc_proto.phone.backend import NeedsUpload as NeedsUpload
    from svc_proto.phone.backend import Performed as Performed
    from svc_proto.phone.backend import Reply as Reply
    from svc_proto.phone.command_refused import Refusal as Refusal
    from svc_proto.phone.invite import Invite as Invite
    from svc_proto.phone.invite import read_invite as read_invite
    from svc_proto.phone.preferences import Preferences as Preferences
    from svc_proto.phone.safety.gate_interface import PhoneHandset as PhoneHandset
    from svc_proto.phone.safety.settings import SafetySettings as SafetySettings
    from svc_proto.phone.service import Phone as Phone
    from svc_proto.phone.service import PhoneConfig as PhoneConfig
    from svc_proto.phone.service import PhoneState as PhoneState
    from svc_proto.phone.user_controls import Controls as Controls
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "svc_proto.phone.service": "Phone PhoneConfig PhoneState",
            "svc_proto.phone.backend": "Handset HandsetCommand Later NeedsUpload Performed Reply",
            "svc_proto.phone.safety.gate_interface": "PhoneHandset",
            "svc_proto.phone.safety.settings": "SafetySettings",
            "svc_proto.phone.user_controls": "Controls",
            "svc_proto.phone.preferences": "Preferences",
            "svc_proto.phone.command_refused": "Refusal",
            "svc_proto.machines.candidate_selection": "Candidate CandidateSelector",
            "svc_proto.phone.invite": "Invite read_invite",
        },
    )
