"""Steps on sessions and phones with several stages: each but `AdvanceWallClock` schedules what follows."""

from collections.abc import Mapping
from typing import Any

from fuzz import steps
from fuzz.simulation.actors.actor_context import PHONE, ActorContext, SignedInDevice, StepHandler
from fuzz.simulation.actors.device_control import DeviceControlActors
from fuzz.simulation.actors.half_request_clients import HalfRequestClients
from fuzz.simulation.actors.pairing_devices import PairingDevices
from fuzz.simulation.actors.session_owners import SessionOwners
from fuzz.simulation.deployment import UNTIL_DROPPED
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.models.grant_model import RequestedTerms, Spans
from fuzz.simulation.models.reference_model import SessionModel

STORE_FAULT_DURATION = 2.0  # s that the store refuses sessions
REST_AFTER = 4.0  # s from the end of a session to the rest of a half-sent request
SHORT = 10  # s, of terms that the store refuses
RECORDING_DURATION = 40  # s for which a device sends although its close was ignored
COMES_UP = 6.0  # s in which a stopped relay is ready again
SOON = 2  # s of a grant that a step uses after its end
RENEWALS: tuple[Spans, ...] = (
    {"terminal": SOON, "tui": SOON, "bridge": SOON}, {"tui": SOON}, {"terminal": 600, "tui": 600, "bridge": 600},
    {"bridge": 0, "terminal": 0}, {"terminal": None, "tui": None}, {"bridge": None}
)  # fmt: skip
TAKEN_BACK = (4, 5)  # indices of `RENEWALS`
SPEAKS, TYPES = 6, 4  # actions for a gateway and a terminal, as in their actors


class SessionLifecycles:
    """Handler of steps with several stages on sessions and phones; `ages` has the seconds of `AdvanceWallClock`."""

    def __init__(
        self,
        crowd: ActorContext,
        pairing: PairingDevices,
        owners: SessionOwners,
        control: DeviceControlActors,
        others: Mapping[type[steps.Step], StepHandler],
    ) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self._pairing = pairing
        self._owners = owners
        self._control = control
        self._others = others
        self._half_request_clients = HalfRequestClients(crowd)
        self.ages: list[float] = []  # by how much the clock is set at the end
        self._probes: dict[str, tuple[SignedInDevice, int]] = {}  # by id: the device, and changes to its session
        crowd.listeners.append(self._on_device_message)
        self.handlers: dict[type[steps.Step], StepHandler] = {
            steps.ReplacePhoneSocket: self._come_back,
            steps.EndWaitingSession: self._cut_short,
            steps.RenewGrants: self._renew,
            steps.RefuseSessionRecord: self._refuse,
            steps.IgnoreClose: self._ignore,
            steps.DownloadSlowly: self._download,
            steps.RevokeOnFullDisk: self._bury,
            steps.AdvanceWallClock: lambda step: self.ages.append(step.seconds),
        }

    # --- a phone reconnects while the relay still has its last socket ---

    def _come_back(self, step: steps.ReplacePhoneSocket) -> None:
        phones = self._control.phones.connected(self.crowd.now) or self.crowd.phones
        if not phones:
            return
        old = phones[step.phone % len(phones)]
        kind, early = step.ending % 5, step.ending // 5 % 4 == 0
        if early:
            self._die(old, kind)

        def welcomed(device: SignedInDevice) -> None:
            self._call(device)
            self.world.sim.after(step.seconds, lambda: self._die(old, kind))
            for pause in (0.5, UNTIL_DROPPED):
                self.world.sim.after(step.seconds + pause, lambda: self._call(device))

        self._pairing.reconnect(old.session, fresh=True, welcomed=welcomed)

    def _die(self, device: SignedInDevice, kind: int) -> None:
        talker = device.talker
        connection = talker.carrier.connection
        if talker.is_closed or connection is None:
            return
        self.world.count("phones that left a socket behind")
        match kind:
            case 0:
                talker.disconnect(reset=True)
            case 1:
                talker.disconnect()
            case 2:
                talker.close(1000)
            case 3:
                self.world.blackhole(connection, UNTIL_DROPPED)
            case _:
                connection.cut()

    def _call(self, device: SignedInDevice) -> None:
        callers = self._callers()
        if callers and device in self.crowd.open:
            self._control.command(callers[self.crowd.next_number() % len(callers)], 1, device.session.device)

    def _callers(self) -> list[SessionModel]:
        return [one for one in self.crowd.sessions if self.crowd.must_have_grant(one, "bridge")]

    # --- a session ends while it waits for a phone ---

    def _cut_short(self, step: steps.EndWaitingSession) -> None:
        callers, phones = self._callers(), self._control.phones.connected(self.crowd.now)
        if not callers or not phones:
            return
        session, phone = callers[step.session % len(callers)], phones[step.phone % len(phones)]
        self.world.count("calls cut short")
        self._control.command(session, step.phone, phone.session.device, unheeded=True)
        soon = 0.1 + step.seconds
        self._half_request_clients.begin(session, step.phone, soon + REST_AFTER)
        self.world.sim.after(soon, lambda: self._end(session, step.phone // 7 % 4))

    def _end(self, session: SessionModel, way: int) -> None:
        match way:
            case 0:
                self._owners.revoke(session, None)
            case 1:
                self._owners.revoke(session, self.crowd.pick_session(self.crowd.next_number()))
            case 2:
                self._owners.revoke(session, session)
            case _:
                self._owners.extend(session, RequestedTerms(ttl=1))

    def _download(self, step: steps.DownloadSlowly) -> None:
        if self.crowd.sessions:
            session = self.crowd.pick_session(step.session)
            self._half_request_clients.download(session, step.seconds + REST_AFTER)
            self.world.sim.after(step.seconds, lambda: self._end(session, step.ending % 4))

    # --- a session ends whose device ignores the close, and goes on sending ---

    def _ignore(self, step: steps.IgnoreClose) -> None:
        devices = [device for device in self.crowd.open if device.talker.carrier.http2 is None]
        if not devices:
            return
        device = devices[step.socket % len(devices)]
        device.talker.carrier.deaf = True
        self.world.count("devices that heard nothing")
        self._end(device.session, step.ending % 4)
        for second in range(RECORDING_DURATION):
            self.world.sim.after(float(second), lambda: device.talker.send_envelope("system", "ping", {"ts": 1}))
        self.world.sim.after(float(RECORDING_DURATION), device.talker.disconnect)

    # --- a session gets other grants, and uses them ---

    def _renew(self, step: steps.RenewGrants) -> None:
        kind = step.grants // 3 % len(RENEWALS)
        wish = RequestedTerms(None if step.grants % 3 else 3_600, RENEWALS[kind])
        if not self.crowd.open:
            return
        device = self.crowd.open[step.socket % len(self.crowd.open)]

        def changed() -> None:
            for pause in (0.0, SOON + step.seconds):
                self.world.sim.after(pause, lambda: self._use(device))
            if kind in TAKEN_BACK:  # later requests do not return these grants
                self.world.sim.after(
                    step.seconds, lambda: self._owners.extend(device.session, RequestedTerms(ttl=3_600))
                )

        if device.session.surface == PHONE:
            self._control.select(device)
        self._use(device)
        self._owners.extend(device.session, wish, changed)

    def _use(self, device: SignedInDevice) -> None:
        if device not in self.crowd.open:
            return
        who = self.crowd.open.index(device)
        self._others[steps.TypeInTerminal](steps.TypeInTerminal.of(self.crowd.now, who, TYPES))
        self._others[steps.UseGateway](steps.UseGateway.of(self.crowd.now, who, SPEAKS))
        self._control.command(device.session, 1, "Reference")
        if callers := self._callers():
            self._control.command(callers[self.crowd.next_number() % len(callers)], 1, "")
        identity = f"probe-{self.crowd.next_number()}"
        self._probes[identity] = device, device.session.patched
        device.talker.send_envelope("terminal", "terminal.list", {}, identity)

    def _on_device_message(self, device: SignedInDevice, message: dict[str, Any]) -> None:
        if message.get("type") != "error" or message.get("id") not in self._probes:
            return
        asked, patched = self._probes[message["id"]]
        session = asked.session
        same = session.patched == patched and not session.patches
        if same and self.crowd.must_have_grant(session, "terminal"):
            violated(Invariant.GRANT_HELD, f"{device.name} holds a terminal grant, and is told {message['payload']}")

    # --- the store refuses sessions for a while, and the relay is restarted ---

    def _refuse(self, step: steps.RefuseSessionRecord) -> None:
        sessions, world = self.crowd.sessions, self.world
        if not sessions:
            return
        session = self.crowd.pick_session(step.session)
        world.fail_session_writes(STORE_FAULT_DURATION)
        match step.request % 4:
            case 0:
                self._owners.revoke(session, None)
            case 1 | 2:
                self._owners.extend(session, RequestedTerms(ttl=SHORT if step.request // 4 % 2 else 600))
            case _:
                code = self._pairing.register()
                world.sim.after(0.5, lambda: self._pairing.pair(world.devices[step.session % len(world.devices)], code))
        later = STORE_FAULT_DURATION + 0.5 + step.seconds
        if step.request // 8 % 2:  # without a restart: the relay's response counts until its next start
            return
        world.sim.after(later, lambda: world.stop_program("relay", 0.2, kill=step.request // 16 % 2 == 0))
        world.sim.after(later + COMES_UP, lambda: self._look_again(session))

    def _bury(self, step: steps.RevokeOnFullDisk) -> None:
        world, disk = self.world, self.world.home.disk
        if not self.crowd.sessions:
            return
        session = self.crowd.pick_session(step.session)
        world.fail_session_writes(STORE_FAULT_DURATION)
        if step.variant % 4:
            world.disk_trouble = True
            world.note_disk_fault(STORE_FAULT_DURATION)
            disk.fill()
            world.sim.after(
                STORE_FAULT_DURATION if step.variant % 4 < 3 else STORE_FAULT_DURATION / 2,
                lambda: setattr(disk, "capacity", None),
            )
        self._owners.revoke(session, None)
        world.sim.after(STORE_FAULT_DURATION / 4, lambda: self._owners.revoke(session, None))
        later = STORE_FAULT_DURATION / 2 + step.seconds
        world.sim.after(later, lambda: world.stop_program("relay", 0.2, kill=True))
        world.sim.after(later + COMES_UP, lambda: self._look_again(session))

    def _look_again(self, session: SessionModel) -> None:
        self._pairing.reconnect(session)
        self._owners.list_all(None)
