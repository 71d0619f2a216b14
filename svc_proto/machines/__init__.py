"""State machines and bounded tables of the core. A lifecycle with states is a transition table.

The names that embedders may use: docs/reference/public-names.md.
"""

from typing import TYPE_CHECKING

from svc_proto.basics.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from svc_proto.machines.approvals import Approval as Approval
    from svc_proto.machines.approvals import ApprovalAnswer as ApprovalAnswer
    from svc_proto.machines.approvals import ApprovalState as ApprovalState
    from svc_proto.machines.approvals import PendingApprovals as PendingApprovals
    from svc_proto.machines.auth_rate_limiter import AuthRateLimiter as AuthRateLimiter
    from svc_proto.machines.auth_rate_limiter import LimiterState as LimiterState
    from svc_proto.machines.auth_rate_limiter import address_key as address_key
    from svc_proto.machines.bridge_commands import BridgeCommands as BridgeCommands
    from svc_proto.machines.bridge_commands import CommandOutcome as CommandOutcome
    from svc_proto.machines.bridge_commands import Decision as Decision
    from svc_proto.machines.bridge_commands import phone_outcome as phone_outcome
    from svc_proto.machines.bridge_commands import relay_outcome as relay_outcome
    from svc_proto.machines.grants import CHANNELS as CHANNELS
    from svc_proto.machines.grants import Preset as Preset
    from svc_proto.machines.grants import build_grants as build_grants
    from svc_proto.machines.grants import default_grants as default_grants
    from svc_proto.machines.grants import is_granted as is_granted
    from svc_proto.machines.grants import parse_grants as parse_grants
    from svc_proto.machines.inbox import NotificationBuffer as NotificationBuffer
    from svc_proto.machines.line_buffer import LineBuffer as LineBuffer
    from svc_proto.machines.media_registry import MediaEntry as MediaEntry
    from svc_proto.machines.media_registry import MediaRegistry as MediaRegistry
    from svc_proto.machines.media_registry import MediaState as MediaState
    from svc_proto.machines.paired_session import DeviceInfo as DeviceInfo
    from svc_proto.machines.paired_session import PairedSession as PairedSession
    from svc_proto.machines.paired_session import SessionState as SessionState
    from svc_proto.machines.paired_session import parse_device as parse_device
    from svc_proto.machines.paired_session import parse_patch as parse_patch
    from svc_proto.machines.paired_session import session_record as session_record
    from svc_proto.machines.paired_session_registry import PairedSessionRegistry as PairedSessionRegistry
    from svc_proto.machines.pairing_codes import PairingCodes as PairingCodes
    from svc_proto.machines.pairing_codes import PairingMeta as PairingMeta
    from svc_proto.machines.pairing_codes import merge_terms as merge_terms
    from svc_proto.machines.pairing_codes import parse_registration as parse_registration
    from svc_proto.machines.pairing_codes import parse_requested_terms as parse_requested_terms
    from svc_proto.machines.pairing_payload import RelayBlock as RelayBlock
    from svc_proto.machines.pairing_payload import build_payload as build_payload
    from svc_proto.machines.pairing_payload import encode_payload as encode_payload
    from svc_proto.machines.pairing_payload import pairing_url as pairing_url
    from svc_proto.machines.pairing_payload import parse_invite as parse_invite
    from svc_proto.machines.pairing_payload import relay_block as relay_block
    from svc_proto.machines.pairing_payload import sign_payload as sign_payload
    from svc_proto.machines.pairing_payload import verify_payload as verify_payload
    from svc_proto.machines.phone_registry import PhoneRegistry as PhoneRegistry
    from svc_proto.machines.phone_registry import split_selector as split_selector
    from svc_proto.machines.run_scheduler import RunRecord as RunRecord
    from svc_proto.machines.run_scheduler import RunScheduler as RunScheduler
    from svc_proto.machines.run_scheduler import RunState as RunState
    from svc_proto.machines.sandbox import Sandbox as Sandbox
    from svc_proto.machines.sandbox import protected_paths as protected_paths
    from svc_proto.machines.transitions import Table as Table
    from svc_proto.machines.transitions import step as step
    from svc_proto.schema.device_control_routes import DEVICE_CONTROL as DEVICE_CONTROL
    from svc_proto.schema.device_control_routes import check_arguments as check_arguments
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "svc_proto.machines.transitions": "Table step",
            "svc_proto.machines.pairing_codes": (
                "PairingCodes PairingMeta merge_terms parse_registration parse_requested_terms"
            ),
            "svc_proto.machines.paired_session": (
                "DeviceInfo PairedSession SessionState parse_device parse_patch session_record"
            ),
            "svc_proto.machines.paired_session_registry": "PairedSessionRegistry",
            "svc_proto.machines.grants": "CHANNELS Preset build_grants default_grants is_granted parse_grants",
            "svc_proto.machines.auth_rate_limiter": "AuthRateLimiter LimiterState address_key",
            "svc_proto.machines.bridge_commands": "BridgeCommands Decision CommandOutcome phone_outcome relay_outcome",
            "svc_proto.schema.device_control_routes": "DEVICE_CONTROL check_arguments",
            "svc_proto.machines.phone_registry": "PhoneRegistry split_selector",
            "svc_proto.machines.media_registry": "MediaEntry MediaRegistry MediaState",
            "svc_proto.machines.sandbox": "Sandbox protected_paths",
            "svc_proto.machines.inbox": "NotificationBuffer",
            "svc_proto.machines.run_scheduler": "RunRecord RunScheduler RunState",
            "svc_proto.machines.approvals": "ApprovalAnswer Approval PendingApprovals ApprovalState",
            "svc_proto.machines.pairing_payload": (
                "RelayBlock build_payload encode_payload pairing_url parse_invite relay_block sign_payload "
                "verify_payload"
            ),
            "svc_proto.machines.line_buffer": "LineBuffer",
        },
    )
