"""Pairing of a device for a check: a pairing code, a client socket and a session."""

from typing import Any

from attrs import frozen

from fuzz.simulation.checks.check_context import CheckContext, SocketClient
from runtimes.sim.host import SimHost


@frozen(eq=False)
class PairedDevice:
    """Paired device, with its open client socket, and the description of itself that it sent."""

    token: str
    host: SimHost
    seat: SocketClient
    shown: dict[str, object]

    @property
    def prefix(self) -> str:
        """Return the first eight characters of the token, which name the session."""
        return self.token[:8]


def register(context: CheckContext) -> str:
    """Register a new pairing code as the operator, and return it."""
    code = f"A{context.crowd.next_number():05}"
    context.expect_status(context.request_locally("POST", "/pairing/register", {"code": code}), 200)
    return code


def sign_in(context: CheckContext, host: SimHost, payload: dict[str, object]) -> SocketClient:
    """Open a client socket, and send `system/auth` with `payload` unless the socket is refused.

    The answer is the next message.
    """
    seat = context.open_socket(host)
    if not seat.is_closed:
        seat.send_envelope("system", "auth", payload, "auth-1")
    return seat


def pair(
    context: CheckContext, *, device_id: str = "", surface: str = "desktop", form: str = "desktop"
) -> PairedDevice:
    """Pair a device with a new code, and return the device with its open socket."""
    host = context.new_host()
    shown: dict[str, object] = {
        "device_id": device_id or context.new_word(),
        "device_name": f"device {context.new_word()}",
    }
    shown |= {"client_surface": surface, "device_form_factor": form}
    seat = sign_in(context, host, {"pairing_code": register(context), **shown})
    answer = seat.next_message()
    context.expect_equal(
        (answer["channel"], answer["type"], answer["id"]), ("system", "auth.ok", "auth-1"), "a new pairing code"
    )
    token = answer["payload"]["session_token"]
    context.world.secrets[token] = f"the token {token[:8]}"
    return PairedDevice(token, host, seat, shown)


def listed(context: CheckContext) -> dict[str, dict[str, Any]]:
    """Return the sessions that the relay lists, by the prefixes of their tokens."""
    records = context.expect_status(context.request_locally("GET", "/sessions"), 200)["sessions"]
    found = {record["token_prefix"]: record for record in records}
    context.expect_equal(len(records), len(found), "number of listed sessions")
    return found
