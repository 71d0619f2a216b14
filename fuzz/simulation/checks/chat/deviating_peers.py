"""Checks of deviating MCP servers and phones, and of clients that disconnect: the consequence must follow soon."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

from fuzz.simulation.checks.chat.deviating_servers import ANSWERS, SOON, configure
from fuzz.simulation.checks.check_context import CheckContext
from fuzz.simulation.checks.support.paired_device import pair
from fuzz.simulation.checks.support.stream_capture import EventCapture
from fuzz.simulation.checks.support.turn_script import PROTOCOLS
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.models.reference_model import violated
from fuzz.simulation.servers.deviating_mcp_server import (
    PORT,
    PROBLEMS,
    RESULTS,
    SESSIONS,
    DeviatingMcpConnection,
    DeviatingMcpProgram,
    DeviatingMcpServer,
)
from fuzz.simulation.servers.model_script import ModelRound, question_with_script
from svc_proto.wire.events import TextMessage
from tests.support.sim_http import listen

PROGRAM = "/usr/bin/odd-server"
DRAWN = 4  # deviations of one check
ANSWER = '{"channel":"bridge","type":"bridge.response","id":"i","payload":{"request_id":"#","status":200,"result":%s}}'
PHONE_RESULTS = {'{"ok":true,"says":"tea \\ud83d"}': 200, '{"ok":true,"n":NaN}': 200, '{"ok":false,"ok":true}': 200}
PHONE_PROBLEMS = {'{"ok":true,': 502, "[" * 500 + "]" * 500: 502}


def _expect_soon(context: CheckContext, so: Callable[[], bool], about: str) -> None:
    sim, until = context.world.sim, context.now + SOON
    while not so():
        if sim.now >= until or not sim.step():
            violated(Invariant.ANSWERED, f"{about}: nothing within {SOON:.0f} s")


def deviating_tool_servers(context: CheckContext) -> None:
    """Let the model call a tool of a deviating MCP server, with `DRAWN` drawn deviations; check each outcome.

    The server runs as a child process and on another host over HTTP; each drawn call goes to one of these.
    """
    server, host = DeviatingMcpServer(context.world.sim), context.new_host()
    context.world.home.programs[PROGRAM] = partial(DeviatingMcpProgram, server)
    close = listen(host, PORT, partial(DeviatingMcpConnection, server))
    common = {"auto": ["look"], "timeout": 40}
    far = {"url": f"http://{host.address}:{PORT}/mcp", **common}
    configure(context, {"mcp_servers": {"near": {"command": PROGRAM, **common}, "far": far}})
    kinds = [*product(("near", "far"), (*RESULTS, *PROBLEMS)), *product(("far",), SESSIONS)]
    for name, how in context.rng.sample(kinds, DRAWN):
        _call(context, server, f"mcp_{name}_look", how)
    configure(context, {})
    close()


def _call(context: CheckContext, server: DeviatingMcpServer, tool: str, how: str) -> None:
    results: list[str] = []

    def judge(question: str, rows: list[dict[str, Any]]) -> None:
        results.extend(str(row["content"]) for row in rows[-1:] if row["role"] == "tool")

    on_question = context.world.upstream.on_question
    on_question.append(judge)
    rounds = ModelRound(calls=[[tool, {"how": how}]]), ModelRound(text="Done.")
    server.replied = 0.0
    body = {"input": question_with_script(context.new_word(), *rounds), "stream": True}
    caller = context.start_api_request("POST", "/v1/runs", body, EventCapture())
    context.wait_until(lambda: server.replied > 0.0, why=f"{tool} is not called, {how}")
    _expect_soon(context, lambda: bool(results), f"{tool}, {how}")
    on_question.remove(judge)
    context.expect_equal("tea" in results[0], how not in PROBLEMS, f"result of {tool}, {how}: {results[0]!r:.200}")
    context.wait_response(caller)


def deviating_phones(context: CheckContext) -> None:
    """Answer commands as a phone with unusual or invalid JSON, and check the status that each caller gets."""
    session = pair(context)
    phone = pair(context, device_id=context.new_word(), surface="android", form="phone")
    for result, status in {**PHONE_RESULTS, **PHONE_PROBLEMS}.items():
        command = context.start_request_as(session.token, "GET", f"/ping?device={phone.shown['device_id']}")
        wanted = phone.seat.next_message()["payload"]["request_id"]
        text = (ANSWER % result).replace("#", wanted)
        phone.seat.talker.send_events(TextMessage(phone.seat.talker.stream, text))
        _expect_soon(context, partial(getattr, command, "is_closed"), f"a phone's answer {result:.40}")
        context.expect_equal(command.status, status, f"status of a phone's answer {result:.40}")


def leaving_clients(context: CheckContext) -> None:
    """Disconnect clients of completions and responses, plain and streamed, while the model is silent.

    The model call must end soon.
    """
    for protocol in ANSWERS:
        path, body_of, _ = PROTOCOLS[protocol]
        question = f"hang: {context.new_word()}"
        caller = context.start_api_request("POST", path, body_of(question))
        context.wait_until(partial(_is_asked, context, question))
        context.sleep(context.rng.random())
        caller.disconnect(reset=context.chance(0.5))
        _expect_soon(context, partial(_is_asked, context, question, False), f"{protocol}: the model works for nothing")


def _is_asked(context: CheckContext, question: str, so: bool = True) -> bool:
    return (question in context.world.upstream.questions) is so


CHECKS = (deviating_tool_servers, deviating_phones, leaving_clients)
