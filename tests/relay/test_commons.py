"""A relay that is alone: it agrees with itself, tells nobody, and has nowhere else to look."""

from __future__ import annotations

import subprocess
import sys

from svc_proto.basics.errors import Refused
from svc_proto.machines.limiter import Limiter
from svc_proto.machines.pairing import PairingMeta
from svc_proto.relay.commons import Commons
from tests.cluster.test_passing import asking
from tests.relay.world import RelayBook


def test_alone_everything_is_here() -> None:
    book = RelayBook()
    commons = book.relay.commons
    assert type(commons) is Commons
    assert type(commons.limiter) is Limiter
    paired = book.pair()
    session = book.relay.sessions.find(paired.prefix, book.now)[0]
    answers: list[object] = []
    request = asking()

    def ask() -> None:
        engine = book.relay.engine
        for flow in (
            commons.put_code("ABC123", PairingMeta()),
            commons.take_code("abc123"),
            commons.take_code("ABC123"),
            commons.settle(),
            commons.catch_up(),
            commons.told(),
            commons.begun_elsewhere("svc-a"),
            commons.activity(5),
            commons.online(),
        ):
            engine.spawn(flow, on_done=answers.append)
        commons.session_saved(session)
        commons.session_ended(session)
        commons.phone_said(1)
        commons.phone_selected()
        refused = Refused(404, "unknown_device", "none")
        assert commons.excuse(refused) is refused
        assert commons.seek(paired.token) is None
        assert commons.line(-1) is None
        assert commons.seek_consent("ticket", "x") is None
        assert commons.elsewhere("mcp", "x", request) is None
        assert commons.families() == []
        commons.stop()

    book.within(ask)
    assert answers == [None, PairingMeta(), None, None, None, None, "", [], book.relay.online()]
    assert book.request("GET", "/bridge/devices", token="").json["count"] == 1


def test_who_is_alone_imports_nothing_of_the_cluster() -> None:
    program = """
import sys
from svc_proto.config import relay_config
from svc_proto.relay.service import Relay
Relay(relay_config({}))
before = {name for name in sys.modules if name.startswith("svc_proto.cluster") or "resp" in name.split(".")}
late = {"svc_proto.relay.fellows", "svc_proto.relay.passing", "svc_proto.relay.bucket", "aws_request_signer", "hiredis"}
assert not before | (late & sys.modules.keys()), before
Relay(relay_config({"SVC_CLUSTER_URL": "redis://127.0.0.1"}))
assert {"svc_proto.cluster.redis", "svc_proto.relay.fellows", "svc_proto.wire.resp"} <= sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=50)
