"""Checks of model servers that deviate: each waiting client gets an answer or an error soon after the cause."""

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from fuzz.simulation.checks.check_context import CheckContext
from fuzz.simulation.checks.support.stream_capture import EventCapture
from fuzz.simulation.checks.support.turn_script import PROTOCOLS
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.models.reference_model import violated
from fuzz.simulation.servers.model_deviations import DEVIATIONS, ModelDeviation

DRAWN = 8  # deviations of one check
SOON = 2.0  # s from the cause to the answer or the error
LONGEST_TURN = 120.0  # s, with the delays that servers request
ANSWERS = ("completion", "completion chunks", "response", "response events")


def deviating_model_servers(context: CheckContext) -> None:
    """Send questions to models with `DRAWN` drawn deviations, and compare answers and times."""
    names = context.rng.sample(sorted(DEVIATIONS), DRAWN)
    aliases = {f"{context.new_word()}": name for name in names}
    upstream = context.world.upstream
    upstream.deviations = {alias: DEVIATIONS[name] for alias, name in aliases.items()}
    configure(context, {"platforms": {"api_server": {"extra": {"model_routes": {a: {"model": a} for a in aliases}}}}})
    for alias, name in aliases.items():
        _ask(context, alias, name, DEVIATIONS[name])
    configure(context, {})


def configure(context: CheckContext, settings: Mapping[str, object]) -> None:
    """Write the configuration file of the API server, and let the server read it."""
    home = context.world.home
    home.disk.put(f"{home.state}/config.yaml", json.dumps(settings).encode())
    context.request_api("GET", "/api/config")


def _ask(context: CheckContext, model: str, name: str, deviation: ModelDeviation) -> None:
    protocol = context.pick(ANSWERS[:2] if deviation.more else ANSWERS)
    path, body_of, read = PROTOCOLS[protocol]
    body = {**body_of("Is there tea?"), **deviation.more, "model": model}
    events = EventCapture()
    caller = context.start_api_request("POST", path, body, events if body.get("stream") else None)
    context.wait_response(caller, LONGEST_TURN)
    about = f"{name} by {protocol}"
    ended, causes = caller.ended, context.world.upstream.deviating[model]
    if ended - causes[-1] > SOON:
        violated(Invariant.ANSWERED, f"{about}: the end is {ended - causes[-1]:.1f} s after the last reply")
    waits = [later - sooner for sooner, later in pairwise(causes)]
    if not deviation.fails and max(waits, default=0.0) > SOON + deviation.pause:
        violated(Invariant.ANSWERED, f"{about}: the next request is {max(waits):.1f} s after a refusal")
    report: dict[str, Any] = {"end": "error", "text": ""}
    if caller.status == 200:
        report = read({} if events.told else caller.answer.json, events.told)
    if deviation.fails:
        context.expect_equal(report["end"], "error", about)
    else:
        end = "tool_calls" if deviation.calls else "stop"
        context.expect_equal((report["end"], report["text"] or ""), (end, deviation.text), about)


CHECKS = (deviating_model_servers,)
