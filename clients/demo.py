"""The main job in one command: a relay, a code, a phone, three commands, the activity record. `make demo`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from clients.phone.handset import SimulatedHandset
from runtimes.host import Program, Services
from runtimes.listen import bind
from runtimes.logs import setup
from runtimes.run import RUNTIMES, RuntimeMissingError, run
from runtimes.store import open_store
from runtimes.waker import Handle
from svc_proto.basics import strict_json
from svc_proto.basics.entropy import new_code
from svc_proto.commands import Exit, Level, Ready, Tell
from svc_proto.config import RelayConfig
from svc_proto.device.phone import Phone, PhoneConfig
from svc_proto.engine.channel import Channel
from svc_proto.engine.client import fetch
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import Accepted, Failure, OperationId
from svc_proto.relay.service import Relay

__all__ = ["Demo", "main"]

PATIENCE = 20.0  # s for the phone to pair
STEPS: tuple[tuple[str, str, Mapping[str, object] | None], ...] = (
    ("GET", "/ping", None),
    ("GET", "/screen", None),
    ("POST", "/tap_text", {"text": "Mail"}),
)


class Demo(Phone):
    """The reference phone, and the operator and agent who use it, as one core."""

    def __init__(self, relay_url: str, code: str) -> None:
        config = PhoneConfig(remote=relay_url, code=code, device_id="demo-phone", device_name="Demo phone")
        super().__init__(config, SimulatedHandset(name="Demo phone"))
        self._paired: OperationId | None = None

    def on_started(self) -> None:
        """Play the operator's part first."""
        self.engine.emit(Ready())
        self.engine.spawn(self._play(), name="demo", on_done=self.engine.exit, on_error=self._failed)

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Nobody calls a demonstration."""
        return None

    def _welcomed(self, payload: Mapping[str, object]) -> None:
        super()._welcomed(payload)
        if self._paired is not None:
            self.engine.resume(self._paired, None)

    def _play(self) -> Flow[int]:
        engine, config = self.engine, self.config
        if not (yield from self._call("POST", "/pairing/register", {"code": config.code}, bearer=False)):
            return 1
        self._paired = engine.new_op()
        super().on_started()
        answer = yield from wait(self._paired, engine.now.mono + PATIENCE)
        if isinstance(answer, Failure):
            engine.emit(Tell("problem", {"text": "the phone did not pair in time"}))
            return 1
        engine.emit(Tell("step", {"text": f"paired: session {(self.token or '')[:8]}…"}))
        for method, path, body in STEPS:
            if not (yield from self._call(method, path, body, bearer=True)):
                return 1
        return 0 if (yield from self._call("GET", "/bridge/activity", None, bearer=False)) else 1

    def _call(self, method: str, path: str, body: Mapping[str, object] | None, *, bearer: bool) -> Flow[bool]:
        engine = self.engine
        began = engine.now.mono
        headers = ((b"authorization", f"Bearer {self.token}".encode("ascii")),) if bearer else ()
        sent = b"" if body is None else strict_json.dumps_bytes(body)
        answer = yield from fetch(engine, method, self.config.http_url + path, headers=headers, body=sent)
        if isinstance(answer, Failure):
            engine.emit(Tell("problem", {"text": f"{method} {path}: {answer.kind.value} {answer.detail}"}))
            return False
        text = answer.body.decode("utf-8", "replace")
        took = (engine.now.mono - began) * 1000
        line = f"{method:4} {path:18} {answer.status}  {took:6.2f} ms  {text if len(text) <= 150 else text[:147] + '...'}"
        engine.emit(Tell("step", {"text": line}))
        return answer.status == 200

    def _failed(self, error: Exception) -> None:
        self.engine.exit(70, f"internal error {self.engine.bug(error)}")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--runtime", type=click.Choice(RUNTIMES), default="anyio", show_default=True, help="Event loop.")
def main(runtime: str) -> None:
    """Start a relay on a free port, pair the reference phone with it, drive it, show the activity record."""
    with tempfile.TemporaryDirectory(prefix="svc-demo-") as home:
        try:
            code = run(_programs(Path(home), handle := Handle()), runtime, handle=handle)
        except RuntimeMissingError as error:
            print(f"error: {error}", file=sys.stderr)
            code = 2
    sys.exit(code)


def _programs(home: Path, handle: Handle) -> list[Program]:
    logger = setup(int(Level.WARNING))
    listener = bind("127.0.0.1", 0)
    port = listener.address.port
    config = RelayConfig(host="127.0.0.1", port=port, home=str(home), config_path=str(home / "config.yaml"))
    relay = Engine(Relay(config), entropy=os.urandom, log_level=Level.WARNING)
    demo = Engine(Demo(f"ws://127.0.0.1:{port}", new_code(os.urandom)), entropy=os.urandom, log_level=Level.WARNING)
    print(f"relay on 127.0.0.1:{port}", flush=True)

    def over(outcome: Exit) -> None:
        if outcome.reason:
            print(f"error: {outcome.reason}", file=sys.stderr)
        handle.stop(5.0)

    return [
        Program(
            core=relay, listeners=[listener], services=Services(state=home, store=open_store("memory:"), logger=logger)
        ),
        Program(core=demo, services=Services(logger=logger), on_tell=_show, on_exit=over),
    ]


def _show(news: Tell) -> None:
    if "text" in news.fields:
        print(news.fields["text"], file=sys.stderr if news.event == "problem" else sys.stdout, flush=True)


if __name__ == "__main__":
    main()
