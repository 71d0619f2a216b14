"""Coordination for a relay that runs as a single node."""

import sys
from types import FrameType

from svc_proto.basics.errors import Refused
from svc_proto.machines.auth_rate_limiter import AuthRateLimiter
from svc_proto.machines.pairing_codes import PairingMeta
from svc_proto.relay.cluster import local_coordinator
from svc_proto.relay.cluster.local_coordinator import LocalCoordinator
from tests.cluster.test_forwarding import asking
from tests.relay.harness import RelayHarness


def test_single_node_owns_everything(book: RelayHarness) -> None:
    alone = book.relay.coordinator
    assert type(alone) is LocalCoordinator
    assert type(alone.limiter) is AuthRateLimiter
    paired = book.pair()
    session = book.relay.sessions.find(paired.prefix, book.now)[0]
    answers: list[object] = []
    request = asking()

    def ask() -> None:
        engine = book.relay.engine
        for flow in (
            alone.register_code("ABC123", PairingMeta()),
            alone.consume_code("abc123"),
            alone.consume_code("ABC123"),
            alone.flush(),
            alone.sync_sessions(),
            alone.flush_best_effort(),
            alone.wait_for_phone(None),
            alone.terminal_owner_url("svc-a"),
            alone.activity(5),
            alone.online_sessions(),
        ):
            engine.spawn(flow, on_done=answers.append)
        alone.session_saved(session)
        alone.session_ended(session)
        alone.phone_status_changed(1)
        alone.phone_selected()
        refused = Refused(404, "unknown_device", "none")
        assert alone.explain_missing_phone(refused) is refused
        assert alone.lookup_session(paired.token) is None
        assert alone.route_to_phone(-1) is None
        assert alone.lookup_consent("ticket", "x") is None
        assert alone.forward_request("mcp", "x", request) is None
        assert alone.metrics() == []
        assert alone.stop() is None

    book.within(ask)
    assert answers == [None, PairingMeta(), None, None, None, None, None, "", [], book.relay.online()]
    assert book.request("GET", "/bridge/devices", token="").json["count"] == 1


def test_command_for_a_local_phone_makes_no_coordinator_call() -> None:
    book, asked = RelayHarness(), list[str]()
    paired = book.pair()

    def count(frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code.co_filename == local_coordinator.__file__:
            asked.append(frame.f_code.co_name)

    sys.setprofile(count)
    try:
        calling = book.call("GET", "/ping", token=paired.token)
        paired.phone.reply(paired.phone.command(), 200, {"pong": True})
    finally:
        sys.setprofile(None)
    assert (calling.result.status, asked) == (200, [])
