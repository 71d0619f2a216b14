"""Phone's side of the relay protocol: pair, stay connected, execute bridge commands.

Public names for embedders: docs/reference/public-names.md.
"""

from typing import TYPE_CHECKING

from svc_proto.basics.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from svc_proto.machines.candidate_selection import Candidate as Candidate
    from svc_proto.machines.candidate_selection import CandidateSelector as CandidateSelector
    from svc_proto.phone.backend import CommandRefused as CommandRefused
    from svc_proto.phone.backend import CommandReply as CommandReply
    from svc_proto.phone.backend import CommandResponse as CommandResponse
    from svc_proto.phone.backend import DelayedReply as DelayedReply
    from svc_proto.phone.backend import PhoneBackend as PhoneBackend
    from svc_proto.phone.backend import PhoneCommand as PhoneCommand
    from svc_proto.phone.backend import UploadReply as UploadReply
    from svc_proto.phone.invite import Invite as Invite
    from svc_proto.phone.invite import parse_phone_invite as parse_phone_invite
    from svc_proto.phone.preferences import Preferences as Preferences
    from svc_proto.phone.safety.gate_interface import SystemBackend as SystemBackend
    from svc_proto.phone.safety.settings import SafetySettings as SafetySettings
    from svc_proto.phone.service import Phone as Phone
    from svc_proto.phone.service import PhoneConfig as PhoneConfig
    from svc_proto.phone.service import PhoneState as PhoneState
    from svc_proto.phone.user_controls import UserControls as UserControls
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "svc_proto.phone.service": "Phone PhoneConfig PhoneState",
            "svc_proto.phone.backend": (
                "PhoneBackend PhoneCommand DelayedReply UploadReply CommandResponse CommandReply CommandRefused"
            ),
            "svc_proto.phone.safety.gate_interface": "SystemBackend",
            "svc_proto.phone.safety.settings": "SafetySettings",
            "svc_proto.phone.user_controls": "UserControls",
            "svc_proto.phone.preferences": "Preferences",
            "svc_proto.machines.candidate_selection": "Candidate CandidateSelector",
            "svc_proto.phone.invite": "Invite parse_phone_invite",
        },
    )
