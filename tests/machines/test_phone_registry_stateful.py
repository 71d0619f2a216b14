"""The connected phones beside a dictionary: one socket for each device, and the default phone."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.machines.phone_registry import PhoneRegistry

SOCKETS = st.integers(1, 4)
DEVICES = st.sampled_from(("alpha", "beta", "gamma", "unknown"))


class PhonesAgainstAModel(RuleBasedStateMachine):
    """Phone registry beside a model: `sockets` are the phones' sockets by device, `status` their last reports.

    `left` has the last report of the phone that was lost last, of those that had sent a report.
    """

    def __init__(self) -> None:
        super().__init__()
        self.phones = PhoneRegistry()
        self.now = 0.0
        self.sockets: dict[str, int] = {}
        self.status: dict[str, tuple[object, float]] = {}
        self.left: tuple[str, object, float] | None = None
        self.active: str | None = None
        self.recent: str | None = None

    @rule(socket=SOCKETS, device=DEVICES)
    def register(self, socket: int, device: str) -> None:
        key = f"socket-{socket}" if device == "unknown" else device
        self._leave(socket)
        before = self.sockets.pop(key, None)
        known = self.status.pop(key, None) if before is not None else None
        if before is None and self.left is not None and self.left[0] == key:
            known = self.left[1:]
        assert self.phones.register(socket, device_id=device, name=f"Phone {key}") == before
        self.sockets[key] = socket
        if known is not None:
            self.status[key] = known
        self.recent = key
        self.active = self.active or key

    @rule(socket=SOCKETS)
    def remove(self, socket: int) -> None:
        known = self._device(socket)
        phone = self.phones.remove(socket)
        assert (None if phone is None else phone.device_id) == known
        self._leave(socket)

    @rule(socket=SOCKETS, level=st.integers(0, 100))
    def report(self, socket: int, level: int) -> None:
        self.now += 1.0
        key = self._device(socket)
        payload = {"device": {"battery": level}}
        assert self.phones.status(socket, payload, Moment(self.now, 0.0)) is (key is not None)
        if key is not None:
            self.status[key] = (payload, self.now)

    @rule(device=DEVICES)
    def select(self, device: str) -> None:
        if device in self.sockets:
            assert self.phones.select_active(device)["active_device_id"] == device
            self.active = device
        else:
            with pytest.raises(Refused):
                self.phones.select_active(device)

    @invariant()
    def each_device_has_its_socket(self) -> None:
        assert len(self.phones) == len(self.sockets)
        for key, socket in self.sockets.items():
            phone = self.phones.find_by_socket(socket)
            assert phone is not None
            assert (phone.device_id, phone.socket) == (key, socket)
            assert (phone.status, phone.reported_at) == self.status.get(key, (None, None))
            assert self.phones.choose(key) is phone

    @invariant()
    def somebody_is_driven_when_nobody_is_named(self) -> None:
        if not self.sockets:
            with pytest.raises(Refused) as refused:
                self.phones.choose(None)
            assert refused.value.status == 503
            return
        newest = max(reversed(self.sockets), key=lambda key: self.status[key][1] if key in self.status else -1.0)
        chosen = self.phones.choose(None)
        if self.active or self.recent:
            assert chosen.device_id == (self.active or self.recent)
        else:
            assert (chosen.reported_at or -1.0) == (self.status[newest][1] if newest in self.status else -1.0)

    def _device(self, socket: int) -> str | None:
        return next((key for key, held in self.sockets.items() if held == socket), None)

    def _leave(self, socket: int) -> None:
        key = self._device(socket)
        if key is None:
            return
        del self.sockets[key]
        if key in self.status:
            self.left = (key, *self.status.pop(key))
        self.active = None if self.active == key else self.active
        self.recent = None if self.recent == key else self.recent


TestPhonesAgainstAModel = PhonesAgainstAModel.TestCase
TestPhonesAgainstAModel.settings = settings(max_examples=30, stateful_step_count=25)
