from __future__ import annotations

from clients.phone.emulator import SimulatedHandset
from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import Handset, HandsetCommand, Later, NeedsUpload, Reply

NOW = Moment(100.0, 1_795_310_560.0)


def test_the_simulated_handset_is_one() -> None:
    handset: Handset = SimulatedHandset(name="Simulated")
    assert handset.perform(HandsetCommand("GET", "/ping", {}), NOW) == Reply(
        200, {"pong": True, "ts": 1_795_310_560_000}
    )
    assert isinstance(handset.perform(HandsetCommand("GET", "/screenshot", {}), NOW), NeedsUpload)
    assert isinstance(handset.perform(HandsetCommand("POST", "/wait", {"timeoutMs": 1000}), NOW), Later | Reply)
    assert handset.uploaded("abc", "svc-relay") == Reply(200, {"media": "MEDIA:svc-relay://abc"})
    assert isinstance(handset.status(NOW)["battery"], int)


def test_values() -> None:
    assert HandsetCommand("GET", "/ping", {}) == HandsetCommand("GET", "/ping", {}, "")
    assert Later(1.0, Reply(200, {})) != Later(2.0, Reply(200, {}))
