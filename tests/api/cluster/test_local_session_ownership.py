"""Session ownership of a single process, and the modules that it does not load."""

import subprocess
import sys
from typing import Any

from tests.api.scripted_agent import TurnHarness


def test_single_process_owns_every_session() -> None:
    book = TurnHarness()
    ownership = book.api.ownership
    assert book.spawn(ownership.start()) == [None]
    assert book.spawn(ownership.acquire("s")) == [None]
    assert (ownership.fence("s"), ownership.metrics()) == (None, [])
    unknown: Any = None
    assert ownership.lookup_run(unknown, "r") is None
    ownership.release("s")
    ownership.stop()
    assert book.request("GET", f"/v1/runs/run_{'0' * 32}").status == 404


def test_single_process_imports_no_cluster_module() -> None:
    program = """
import sys
from svc_proto.api.config import parse_api_config
from svc_proto.api.service import Api
from svc_proto.engine.core import Engine
def start(**more):
    env = {"SVC_CLUSTER_URL": "redis://127.0.0.1", "SVC_DATABASE_URL": "sqlite:////svc.db", **more}
    Engine(Api(parse_api_config(env)), entropy=bytes)
start()
before = {name for name in sys.modules if name.startswith("svc_proto.cluster") or "resp" in name.split(".")}
assert not before | ({"svc_proto.api.cluster.session_ownership", "hiredis"} & sys.modules.keys()), before
start(API_SERVER_NODE_URL="http://10.0.0.1:8642")
names = {"svc_proto.cluster.redis_client", "svc_proto.api.cluster.session_ownership", "svc_proto.wire.resp"}
assert names <= sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=50)
