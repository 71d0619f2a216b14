"""Model of the phones that are certainly connected, by which the relay's errors are checked."""

from math import inf

from fuzz.simulation.actors.actor_context import LATE, PHONE, ActorContext, SignedInDevice, SignIn
from fuzz.simulation.deployment import UNTIL_DROPPED
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.models.reference_model import CommandModel
from svc_proto.phone.service import PhoneState

IN_TIME = 25.0  # s from a command to an answer that is certainly before the relay's timeout
ABSENT = ("phone_not_connected", "unknown_device")
LOST = ("phone_disconnected", "send_failed")


class PhonePresence:
    """Model of the phones that are certainly connected, by their sign-ins, with checks of the relay's errors."""

    def __init__(self, crowd: ActorContext) -> None:
        self.crowd = crowd
        self.world = crowd.world

    def refused(self, command: CommandModel, status: int, code: str) -> None:
        """Check the relay's error response to a command.

        403 for a missing grant is checked at once; 404, 502, 503 and 504 are checked `LATE` s later; others are not.
        """
        if status == 403 and code == "grant_required":
            self._check_held(command)
        if status in (404, 502, 503, 504):
            told = self.crowd.now
            self.world.sim.after(LATE, lambda: self._judge(command, status, code, told))

    def connected(self, since: float) -> list[SignedInDevice]:
        """Return the phones that have certainly been connected, with the bridge grant, since `since`."""
        return [device for device in self.crowd.open if self.is_connected(device, since)]

    def is_connected(self, device: SignedInDevice, since: float) -> bool:
        """Report whether a device is a phone that has surely been connected, with the bridge grant, since `since`."""
        crowd, mine = self.crowd, device.sign_in
        if device not in crowd.open or mine.told is None or mine.told > since or device.session.surface != PHONE:
            return False
        if not crowd.must_have_had_grant(device.session, "bridge") or not self.world.is_unaffected(device.talker):
            return False
        others = crowd.sign_ins[device.session.device]
        return all(
            other is mine
            or other.failed
            or other.relay is not mine.relay
            # A socket that certainly or possibly signed in later has replaced this one; so has one that reported later.
            or (other.told is not None and other.told < mine.sent and self._has_reported(other) < mine.sent)
            for other in others
        )

    def _has_reported(self, sign_in: SignIn) -> float:
        if sign_in.reported is None:
            return -inf
        return sign_in.reported + (LATE if self.world.is_unaffected(sign_in.talker) else UNTIL_DROPPED)

    def _judge(self, command: CommandModel, status: int, code: str, told: float) -> None:
        connected = self.connected(command.sent)
        sure = [device for device in connected if command.selector in ("", device.session.device)]
        self.world.count("calls that failed")
        if not sure:
            if code == ABSENT[0] and command.selector in ("", "Reference") and self._is_reference_there(command):
                violated(Invariant.REACHED, f"{command.mark} got {status} {code}, the reference phone was connected")
            return
        self.world.count("calls that failed at a phone that was there")
        names = [device.name for device in sure]
        what = f"{command.mark} for {command.selector or 'any phone'} got {status} {code}"
        if code in ABSENT:
            violated(Invariant.REACHED, f"{what}, and {names} were connected")
        for device in sure:
            if code in LOST and device.name in command.reached:
                violated(Invariant.REACHED, f"{what}, and {device.name} is still connected")
            answered = command.answered.get(device.name)
            if code == "phone_timeout" and answered is not None and answered < min(told, command.sent + IN_TIME):
                violated(Invariant.REACHED, f"{what}, {device.name} had answered after {answered - command.sent:.1f} s")
        if code == "phone_timeout" and command.selector and not command.reached:
            violated(Invariant.REACHED, f"{what}, and was never sent to {names}")

    def _is_reference_there(self, command: CommandModel) -> bool:
        online = self.world.phone_service.state is PhoneState.ONLINE
        return online and command.reference and self.world.is_fault_free_since(command.sent - LATE)

    def _check_held(self, command: CommandModel) -> None:
        session = command.caller
        same = session.patched == command.patched and not session.patches
        if same and self.crowd.must_have_grant(session, "bridge"):
            violated(Invariant.GRANT_HELD, f"{command.mark} of {session.prefix}, which holds a bridge grant, got 403")
