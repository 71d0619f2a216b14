"""State around the screen: permissions, radio, contacts, positions, and the record of what left the phone."""

from collections.abc import Mapping
from enum import Enum

from attrs import define, frozen

from svc_proto.phone.safety.permissions import SystemPermissions

__all__ = [
    "SAMPLE_CONTACTS",
    "SAMPLE_FIXES",
    "Contact",
    "Fix",
    "Gesture",
    "OutboxItem",
    "EmulatedPermissions",
    "PhoneNumber",
    "Radio",
]


@define(kw_only=True)
class EmulatedPermissions(SystemPermissions):
    """Permissions that the user has granted on this phone, all of them at first."""

    accessibility: bool = True
    screen_capture: bool = True
    overlay: bool = True
    notification_listener: bool | None = True
    contacts: bool = True
    location: bool = True
    sms: bool = True
    call: bool = True


class Radio(Enum):
    """Result that the simulated network reports for a text message: the `android_result` of wire/bridge.md 3.7."""

    OK = "RESULT_OK"
    NO_SERVICE = "RESULT_ERROR_NO_SERVICE"
    NO_ANSWER = "timeout"


@frozen
class OutboxItem:
    """Something that left the phone or was opened for the user to send, such as a call, a text or an intent."""

    kind: str
    at_ms: int
    details: Mapping[str, object]


@frozen
class Gesture:
    """A performed touch at points: `tap`, `long_press`, `swipe` or `drag`, with its duration and time in ms."""

    kind: str
    points: tuple[tuple[int, int], ...]
    duration_ms: int
    at_ms: int


@frozen
class PhoneNumber:
    """A number of a contact; `kind` is a type of wire/bridge.md 3.7."""

    number: str
    kind: str = "mobile"
    label: str = "Mobile"


@frozen
class Contact:
    """A contact of the address book."""

    id: int
    name: str
    phones: tuple[PhoneNumber, ...]


@frozen(kw_only=True)
class Fix:
    """A last known position: degrees, metres. `wall` is its epoch time in seconds; None for one that is always new."""

    latitude: float
    longitude: float
    accuracy: float
    provider: str = "gps"
    wall: float | None = None
    altitude: float | None = None


SAMPLE_CONTACTS: tuple[Contact, ...] = (
    Contact(
        41,
        "Ada Lovelace",
        (
            PhoneNumber("+15550103", "fax_work", "Fax"),
            PhoneNumber("+15550101", "custom", "Watch"),
            PhoneNumber("+15550105", "work", "Work"),
            PhoneNumber("+15550100", "mobile", "Mobile"),
        ),
    ),
    Contact(42, "Bo Peep", (PhoneNumber("+15550102"),)),
    Contact(43, "Cleo Byron", (PhoneNumber("+15550104", "home", "Home"),)),
    Contact(44, "Unknown Caller", ()),
)
SAMPLE_FIXES: tuple[Fix, ...] = (
    Fix(latitude=52.01, longitude=4.36, accuracy=40.0, provider="network"),
    Fix(latitude=52.0116, longitude=4.3571, accuracy=12.5, altitude=3.2),
)
