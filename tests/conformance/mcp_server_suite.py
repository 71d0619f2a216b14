"""Suite of our MCP server with the server scenarios of MCP's conformance suite (npm)."""

import re

from tests.conformance.external_tools import Unavailable, attempt, echo_server, node, npm_package
from tests.conformance.mcp_suite import CONFORMANCE, NODE
from tests.conformance.result import Result

WITHIN = 120.0  # s
SCENARIOS = (
    *("server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-image", "tools-call-audio"),
    *("tools-call-embedded-resource", "tools-call-mixed-content", "tools-call-error", "json-schema-2020-12"),
    *("server-sse-multiple-streams", "resources-list", "resources-read-text", "resources-read-binary"),
    *("resources-subscribe", "resources-unsubscribe", "prompts-list", "prompts-get-simple", "prompts-get-with-args"),
    *("dns-rebinding-protection", "tools-call-with-progress", "resources-templates-read"),
)
_YES = "a question is a yes to a call, and has no form"
_WORDS = "a prompt is a text"
LEFT_OUT = {
    "logging-set-level": "what a server logs is its operator's",
    "tools-call-with-logging": "what a server logs is its operator's",
    "completion-complete": "arguments are not completed: a phone's apps and contacts are not for guessing",
    "tools-call-sampling": "no tool asks the client's model",
    "tools-call-elicitation": _YES,
    "elicitation-sep1034-defaults": _YES,
    "elicitation-sep1330-enums": _YES,
    "server-sse-polling": "a stream is not cut by us: who is cut off comes back to it",
    "prompts-get-embedded-resource": _WORDS,
    "prompts-get-with-image": _WORDS,
}
"""Why a scenario does not apply."""
_TOLD = re.compile(r"^. ([a-z0-9-]+): (\d+) passed, (\d+) failed$", re.MULTILINE)


def mcp_server(runtime: str) -> Result:
    """Run the scenarios for servers against our MCP server with their tools (`mcp_scenario_server`)."""
    script = npm_package(CONFORMANCE) / "@modelcontextprotocol/conformance/dist/index.js"
    result = Result(f"scenarios for servers, {CONFORMANCE} on {runtime}")
    with echo_server(runtime, shop=True) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        done = attempt((node(NODE), script, "server", "--url", url, "--suite", "all"), within=WITHIN)
    told = {name: (int(good), int(bad)) for name, good, bad in _TOLD.findall(done.stdout.decode())}
    if not told:
        raise Unavailable(f"{CONFORMANCE} says nothing: {done.stderr.decode()[-300:]}")
    for name, (good, bad) in told.items():
        if name in LEFT_OUT:
            result.leave_out(name, LEFT_OUT[name])
        else:
            result.note(name, None if good and not bad else f"{bad} failed")
    result.compare("all were there", sorted({*SCENARIOS, *LEFT_OUT}), sorted(told))
    return result
