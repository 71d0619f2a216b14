"""Authority of a run: what the principal that started it may do through the agent.

The relay starts runs for paired devices with the API's main key. In a header it names the powers that the device does
not hold; the header can only reduce the authority of a request. A pairing's own key has the authority of its session.
"""

from collections.abc import Callable, Iterable

from attrs import frozen

from svc_proto.wire.events import Headers

__all__ = [
    "BRIDGE",
    "MANAGE",
    "OWNER",
    "POWERS",
    "Authority",
    "authority_headers",
    "named_principal",
    "withheld_powers",
]

BRIDGE = "bridge"  # the phone
MANAGE = "manage"  # the agent's memory and settings, and approvals that outlive one call
POWERS = (BRIDGE, MANAGE)
WITHHELD = b"x-svc-withheld"
PRINCIPAL = b"x-svc-principal"
MAX_NAME = 200  # characters of a principal's name
OWNER_NAME = "owner"


@frozen
class Authority:
    """Name of a principal for records, and a function that reports whether it holds a power at present."""

    name: str
    holds: Callable[[str], bool]


OWNER = Authority(OWNER_NAME, lambda power: True)


def authority_headers(name: str, withheld: Iterable[str]) -> tuple[tuple[bytes, bytes], ...]:
    """Return the header fields that name a principal and the powers withheld from it."""
    words = ", ".join(withheld)
    shown = name.encode("ascii", "replace")[:MAX_NAME].decode("ascii")
    kept = "".join(each if each.isprintable() else "?" for each in shown).strip().encode("ascii")
    return (*(((PRINCIPAL, kept),) if kept else ()), *(((WITHHELD, words.encode("ascii")),) if words else ()))


def withheld_powers(headers: Headers) -> frozenset[str]:
    """Return the powers that the request renounces."""
    return frozenset(word.decode("latin-1") for word in headers.tokens(WITHHELD))


def named_principal(headers: Headers) -> str:
    """Return the principal that a caller with the main key names; the owner without one."""
    return (headers.get(PRINCIPAL) or b"").decode("latin-1").strip()[:MAX_NAME] or OWNER_NAME
