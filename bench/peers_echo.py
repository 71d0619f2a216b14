"""The echo service of the conformance suites, which uses the engine alone: `python -m bench.peers_echo RUNTIME`."""

from __future__ import annotations

import os
import sys

from runtimes.host.host import Program
from runtimes.net.listener import bind
from runtimes.run import run
from svc_proto.engine.core import Engine
from tests.conformance.echo_service import EchoService


def main(runtime: str) -> int:
    listener = bind("127.0.0.1", 0)

    def say() -> None:
        print(f"http://127.0.0.1:{listener.address.port}", file=sys.stderr, flush=True)

    core = Engine(EchoService(), entropy=os.urandom)
    return run(Program(core=core, listeners=[listener], on_ready=say), runtime)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
