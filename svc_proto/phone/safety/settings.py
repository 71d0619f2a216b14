"""Safety settings of a phone at its start, with the policy for confirmations; and the names of the user's switches."""

from enum import Enum

from attrs import frozen

from svc_proto.phone.safety.blocklist import DEFAULT_BLOCKLIST
from svc_proto.phone.safety.bounds import DEFAULT_IDLE_MINUTES, DEFAULT_TIMEOUT

__all__ = ["ConfirmationPolicy", "SafetySettings", "Switch"]


class ConfirmationPolicy(Enum):
    """Policy for confirmations: the user decides, or a fixed answer applies."""

    ASK = "ask"
    ALLOW = "allow"
    DENY = "deny"


class Switch(Enum):
    """Switch of the user, in the app or in the settings of the system."""

    MASTER = "master"
    UNATTENDED = "unattended"
    CHIP = "chip"  # the optional status overlay
    ACCESSIBILITY = "accessibility"
    CAPTURE = "capture"  # consent to screen capture
    OVERLAY = "overlay"  # permission to draw over other apps


@frozen(kw_only=True)
class SafetySettings:
    """Safety switches of a phone; by default Device Control is off and the user confirms."""

    armed: bool = False  # turn the master toggle on at the start
    answers: ConfirmationPolicy = ConfirmationPolicy.ASK
    unattended: bool = False
    chip: bool = False
    idle_minutes: int = DEFAULT_IDLE_MINUTES  # 5 to 120
    confirmation_timeout: float = DEFAULT_TIMEOUT  # s, 10 to 60; over 30 the caller's request times out before
    blocklist: tuple[str, ...] = DEFAULT_BLOCKLIST
