"""Phones that report, and operators that read the relay's inspectors."""

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, TypeAlias

from attrs import frozen

from fuzz.simulation.actors.actor_context import LATE, PHONE, ActorContext, SignedInDevice, StepHandler
from fuzz.simulation.actors.device_control import DeviceControlActors
from fuzz.simulation.actors.media_users import MediaUsers
from fuzz.simulation.actors.phone_presence import IN_TIME
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.models.reference_model import COMMAND_TIME, CommandModel, SessionModel
from fuzz.steps import InspectServer, ListNotifications, PostNotification, ReportStatus, Step
from runtimes.sim.process import SimProcess
from tests.support.sim_http import RequestClient

ACTIVITY, STATUS, PHONES = "/bridge/activity", "/bridge/status", "/bridge/devices"
MEDIA, NOTES, INFO, HEALTH = (
    "/media/inspect?include_expired=1",
    "/notifications/recent?limit=100",
    "/relay/info",
    "/health",
)
INSPECTORS = (ACTIVITY, MEDIA, INFO, PHONES, STATUS, NOTES, "/sessions", HEALTH)
MAX_NOTES = MAX_RECORDS = 100
KEYS = 3  # keys of a device's notifications: later ones reuse the key of an earlier one
REPORT_TIMEOUT = 6.0  # s at most from its sign-in to the first report of a phone
View: TypeAlias = Callable[[RequestClient, float], None]
"""Check of an inspector's response; called with the request and the time at which it was sent."""


@frozen(eq=False)
class _SentReport:
    """A status or notification that a socket has sent to the relay."""

    device: SignedInDevice
    sent: float
    relay: SimProcess
    payload: Mapping[str, object]


@frozen(eq=False)
class _DefaultPhone:
    """Default phone that an inspector showed: its id and socket, and the time span of that request."""

    name: str
    device: SignedInDevice
    sent: float
    told: float


class StatusReporters:
    """Steps of phones that report, and of operators that read inspectors."""

    def __init__(self, crowd: ActorContext, control: DeviceControlActors, media: MediaUsers) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self._control = control
        self._decisions: dict[str, str] = {}
        self._statuses: dict[int, _SentReport] = {}
        self._notes: dict[str, _SentReport] = {}
        self._active: _DefaultPhone | None = None  # the default phone of the last response
        self._views: dict[str, View] = {
            ACTIVITY: self._activity,
            MEDIA: media.check_inspector,
            STATUS: self._status,
            PHONES: self._phones,
            NOTES: self._recent,
        }
        crowd.on_join.append(self._joined)
        self.handlers: dict[type[Step], StepHandler] = {
            InspectServer: lambda step: self._inspect(INSPECTORS[step.inspector % len(INSPECTORS)]),
            PostNotification: self._notify,
            ReportStatus: self._report_again,
            ListNotifications: lambda step: self._skim(step.count),
        }

    def check_all(self) -> None:
        """Request every inspector once; the responses for which there is a check are checked, most of them later."""
        for path in INSPECTORS:
            self._inspect(path)

    def _inspect(self, path: str) -> None:
        known = partial(self._health, tuple(self.crowd.sessions))
        self._check_inspector(path, known if path == HEALTH else self._views.get(path), 0.0 if path == MEDIA else LATE)

    def _skim(self, few: int) -> None:
        self._check_inspector(f"/notifications/recent?limit={few}", partial(self._recent, most=few))

    def _check_inspector(self, path: str, view: View | None, pause: float = LATE) -> None:
        sent = self.crowd.now

        def done(caller: RequestClient) -> None:
            if view is not None and (caller.status == 200 or (path == STATUS and caller.status == 503)):
                self.world.sim.after(pause, lambda: view(caller, sent))

        self.crowd.request_as_operator("GET", path, None, done)

    def _is_there(self, told: _SentReport, before: float) -> bool:
        device, world = told.device, self.world
        return (
            told.sent + LATE < before
            and told.relay is world.relay
            and world.is_relay_up
            and device in self.crowd.open
            and world.is_unaffected(device.talker)
            and self.crowd.must_be_alive(device.session)
        )

    # --- phones that report ---

    def _joined(self, device: SignedInDevice) -> None:
        if device.session.surface != PHONE:
            return
        rng = Random(f"report {self.world.script.seed} {device.name}")
        if rng.random() < 0.5:  # an inspector is read before the first report
            self.world.sim.after(0.1, partial(self._inspect, rng.choice((PHONES, STATUS))))
        self.world.sim.after(0.3 + rng.random() * REPORT_TIMEOUT, partial(self._report, device))

    def _report_again(self, step: ReportStatus) -> None:
        if phones := self.crowd.phones:
            self._report(phones[step.phone % len(phones)])

    def _report(self, device: SignedInDevice) -> None:
        sign_ins = self.crowd.sign_ins[device.session.device]
        if device not in self.crowd.open or sign_ins[-1] is not device.sign_in:
            return  # a reconnected app sends nothing on its old socket
        mark = self.crowd.next_number()
        payload = {"device": {"battery_percent": mark % 100, "screen_on": True}, "bridge": {}, "mark": mark}
        if device.talker.send_envelope("bridge", "bridge.status", payload):
            device.sign_in.reported = self.crowd.now
            self._statuses[mark] = _SentReport(device, self.crowd.now, self.world.relay, payload)

    def _phones(self, caller: RequestClient, sent: float) -> None:
        records = {record["device_id"]: record for record in caller.answer.json["devices"]}
        self._check_active(caller, records, sent)
        for name, record in records.items():
            self._check_record(name, record, sent)
        for device in self._control.phones.connected(sent):
            if _id_of(device) not in records:
                violated(Invariant.REPORTED, f"{device.name} is connected, and not listed: {[*records]}")

    def _check_active(self, caller: RequestClient, records: Mapping[str, object], sent: float) -> None:
        active: str | None = caller.answer.json["active_device_id"]
        before, self._active = self._active, None
        stays = before is not None and before.name in records and self._is_meant_since(before, sent, caller.ended)
        if before is not None and stays and before.name != active:
            violated(Invariant.REACHED, f"{before.name} was meant by default, is connected, and now {active} is")
        for device in self._control.phones.connected(sent):
            if _id_of(device) == active:
                self._active = _DefaultPhone(active, device, sent, caller.ended)

    def _is_meant_since(self, before: _DefaultPhone, sent: float, told: float) -> bool:
        chosen = any(before.sent <= when <= told for when in self._control.choices)
        return before.told <= sent and not chosen and self._control.phones.is_connected(before.device, sent)

    def _status(self, caller: RequestClient, sent: float) -> None:
        record = caller.answer.json
        if caller.status == 200 and record["phone_connected"]:
            self._check_record(record["device_id"], record, sent)
        elif there := self._control.phones.connected(sent):
            violated(Invariant.REPORTED, f"no phone is said to be connected, and {there[0].name} is")

    def _check_record(self, name: str, record: Mapping[str, Any], sent: float) -> None:
        crowd, mark = self.crowd, record.get("mark", 0)
        told = self._statuses.get(mark)
        if told is not None and _id_of(told.device) != name:
            violated(Invariant.REPORTED, f"{name} is shown with the status of {told.device.name}")
        if told is not None and record["device"].get("battery_percent") != mark % 100:
            violated(Invariant.REPORTED, f"{name} reported {told.payload}, and is shown as {record!r:.200}")
        session = next((one for one in crowd.sessions if one.prefix == record["session_token_prefix"]), None)
        if session is not None and session.lacks("bridge", self.world.wall, sent, crowd.now):
            violated(Invariant.LIVE_GRANT, f"{name} is shown as a phone, and {session.prefix} holds no bridge grant")
        for device in self._control.phones.connected(sent):
            newest = [number for number, each in self._statuses.items() if each.device is device]
            newest = [number for number in newest if self._is_there(self._statuses[number], sent)]
            if _id_of(device) == name and newest and mark < newest[-1]:
                violated(Invariant.REPORTED, f"{device.name} has reported {newest[-1]}, and {mark} is shown")

    # --- notifications ---

    def _notify(self, step: PostNotification) -> None:
        if not self.crowd.open:
            return
        device, number = self.crowd.open[step.socket % len(self.crowd.open)], self.crowd.next_number()
        key = f"0|com.example|{step.notification % KEYS}"
        text = "hello" if step.notification % 2 else None
        note = {"package_name": "com.example", "title": f"note {number}", "text": text, "key": key}
        if device.talker.send_envelope("notifications", "notification.posted", note):
            self._notes[f"note {number}"] = _SentReport(device, self.crowd.now, self.world.relay, note)
        device.talker.send_envelope("system", "ping", {"ts": 1})

    def _recent(self, caller: RequestClient, sent: float, most: int = MAX_NOTES) -> None:
        shown: list[str] = [note["title"] for note in caller.answer.json["notifications"]]
        if len(set(shown)) < len(shown):
            violated(Invariant.REPORTED, f"a notification is shown twice: {shown}")
        last: dict[SignedInDevice, float] = {}
        for note in caller.answer.json["notifications"]:
            told = self._notes[note["title"]]
            if note != told.payload:
                violated(Invariant.REPORTED, f"{told.payload} was posted, {note} is shown")
            if told.sent > last.setdefault(told.device, told.sent):
                violated(Invariant.REPORTED, f"{note['title']} of {told.device.name} is not in its place: {shown}")
            last[told.device] = told.sent
        newest = {(told.device.session.prefix, told.payload["key"]): title for title, told in self._notes.items()}
        may = {title for title, told in self._notes.items() if "bridge" not in told.device.session.withheld}
        for title, told in self._notes.items():
            if title not in may or newest[told.device.session.prefix, told.payload["key"]] != title:
                continue
            wanted = len(shown) < most or told.sent > last.get(told.device, told.sent)  # older ones are dropped first
            if wanted and title not in shown and self._is_there(told, sent):
                violated(Invariant.REPORTED, f"{title!r} of {told.device.name} is not shown: {shown}")
        self.world.count("notifications looked at")

    # --- activity ---

    def _activity(self, caller: RequestClient, sent: float) -> None:
        records = caller.answer.json["activity"]
        times = [record["sent_at"] for record in records]
        if len(records) > MAX_RECORDS or (len(self.world.wall.steps) == 1 and times != sorted(times, reverse=True)):
            violated(Invariant.REPORTED, f"{len(records)} commands are shown, of {MAX_RECORDS}, sent at {times!r:.300}")
        if len(records) < MAX_RECORDS:
            self._check_shown({record["request_id"] for record in records}, sent)
        for record in records:
            request_id, decision = record["request_id"], record["decision"]
            before = self._decisions.setdefault(request_id, decision)
            if before not in ("pending", decision):
                violated(Invariant.ONE_ANSWER, f"a record went from {before} to {decision}")
            self._decisions[request_id] = decision
            command = self._control.by_request(request_id)
            if command is not None:
                self._check_decision(command, decision, sent, caller.ended)

    def _check_shown(self, shown: set[str], sent: float) -> None:
        for command in self._control.all_commands:
            if command.outcome is None or command.outcome[0] > sent or not command.request_id:
                continue
            if command.request_id not in shown and self.world.media_model.is_running_since(command.sent):
                violated(Invariant.REPORTED, f"{command.mark} was {command.outcome[1]}, and is not shown")

    def _check_decision(self, command: CommandModel, decision: str, sent: float, told: float) -> None:
        so = f"{command.mark} is {decision}"
        if decision == "timeout" and told < command.sent + COMMAND_TIME:
            violated(Invariant.IN_TIME, f"{so} after {told - command.sent:.1f} s")
        if command.outcome is not None and command.outcome[0] < sent and decision != command.outcome[1]:
            violated(Invariant.REPORTED, f"{so}, and its caller was told {command.outcome[1]}")
        for device in self._control.phones.connected(command.sent):
            answered = command.answered.get(device.name)
            if answered is not None and answered < min(sent - LATE, command.sent + IN_TIME) and decision != "executed":
                violated(Invariant.REPORTED, f"{so}, and {device.name} answered after {answered - command.sent:.1f} s")

    # --- numbers ---

    def _health(self, known: tuple[SessionModel, ...], caller: RequestClient, sent: float) -> None:
        least = sum(map(self.crowd.must_be_alive, known))
        if caller.answer.json["sessions"] < least:
            violated(Invariant.LIVE_TOKEN, f"{caller.answer.json} is said, and {least} sessions live")


def _id_of(device: SignedInDevice) -> str:
    return f"id of {device.session.device}"
