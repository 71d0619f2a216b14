"""The phone side of the protocol: pair, stay connected, answer commands.

The names that embedders may use: docs/reference/public-names.md.
"""

from typing import TYPE_CHECKING

from svc_proto.basics.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from svc_proto.device.controls import Controls as Controls
    from svc_proto.device.handset import Handset as Handset
    from svc_proto.device.handset import HandsetCommand as HandsetCommand
    from svc_proto.device.handset import Later as Later
    from svc_proto.device.handset import NeedsUpload as NeedsUpload
    from svc_proto.device.handset import Performed as Performed
    from svc_proto.device.handset import Reply as Reply
    from svc_proto.device.invite import Invite as Invite
    from svc_proto.device.invite import read_invite as read_invite
    from svc_proto.device.phone import Phone as Phone
    from svc_proto.device.phone import PhoneConfig as PhoneConfig
    from svc_proto.device.phone import PhoneState as PhoneState
    from svc_proto.device.preferences import Preferences as Preferences
    from svc_proto.device.refusal import Refusal as Refusal
    from svc_proto.device.safety.guarded import PhoneHandset as PhoneHandset
    from svc_proto.device.safety.settings import SafetySettings as SafetySettings
    from svc_proto.machines.candidate_selection import Candidate as Candidate
    from svc_proto.machines.candidate_selection import CandidateSelector as CandidateSelector
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "svc_proto.device.phone": "Phone PhoneConfig PhoneState",
            "svc_proto.device.handset": "Handset HandsetCommand Later NeedsUpload Performed Reply",
            "svc_proto.device.safety.guarded": "PhoneHandset",
            "svc_proto.device.safety.settings": "SafetySettings",
            "svc_proto.device.controls": "Controls",
            "svc_proto.device.preferences": "Preferences",
            "svc_proto.device.refusal": "Refusal",
            "svc_proto.machines.candidate_selection": "Candidate CandidateSelector",
            "svc_proto.device.invite": "Invite read_invite",
        },
    )
