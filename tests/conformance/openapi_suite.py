"""Suite of schemathesis against live servers: it reads their documents and sends valid and invalid requests."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from attrs import frozen

from tests.conformance.external_tools import attempt, pip_target
from tests.conformance.result import Result
from tests.servers.program_process import LOCAL, ports_of, running

SCHEMATHESIS = "schemathesis==4.32.5"
SEED = 1
EXAMPLES = 5  # of each phase, for each route
LONGEST = 30  # s for the routes of one server
WITHIN = 120.0  # s for one call, including its start and its report
KEY, CODE = "sk-conformance-0123456789", "CNF777"
CHECKS = (
    *("not_a_server_error", "status_code_conformance", "content_type_conformance"),
    *("response_schema_conformance", "unsupported_method"),
)
# 501 to 504 are about others: a missing phone, a skill that cannot be enabled. 500 is permitted only where the host has
# no speech engine for the request (docs/spec/requirements.md).
SETTINGS = """
[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 501, 502, 503, 504]
[[operations]]
include-path-regex = "^/voice/(transcribe|synthesize)$"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 500, 503]
"""
ENDS = r"^(delete|patch)_(sessions|api_plugins_\w+_sessions)_by_"  # would end the session of the other requests


@frozen
class _Round:
    """A call of schemathesis for one server; `options` may select some of its routes."""

    name: str
    port: int
    options: Sequence[str] = ()


def documents(runtime: str) -> Result:
    """Run schemathesis against all three servers, with the routes that end sessions last."""
    folder = pip_target("schemathesis", SCHEMATHESIS)
    result = Result(f"the servers' documents, {SCHEMATHESIS} on {runtime}")
    with TemporaryDirectory() as home, _servers(Path(home), runtime) as (ports, token):
        relay, api, board = (ports[role] for role in ("relay", "api", "dashboard"))
        shown = ("--header", f"Authorization: Bearer {token}")
        for each in (
            _Round("api", api, ("--header", f"Authorization: Bearer {KEY}")),
            _Round("relay", relay, (*shown, "--exclude-operation-id-regex", ENDS)),
            _Round("dashboard", board, ("--exclude-operation-id-regex", ENDS)),
            _Round("ends", relay, (*shown, "--include-operation-id-regex", ENDS)),
            _Round("ends at the dashboard", board, ("--include-operation-id-regex", ENDS)),
        ):
            _run_schemathesis(folder, Path(home), each, result)
    return result


def read_report(report: str, name: str, result: Result) -> None:
    """Record each route in a JUnit report of schemathesis as passed or failed."""
    for case in ElementTree.fromstring(report).iter("testcase"):
        failed = [each for each in case if each.tag in ("failure", "error")]
        problems = [" ".join(f"{each.get('message', '')} {each.text or ''}".split()) for each in failed]
        result.note(f"{name}: {case.get('name')}", "; ".join(problems)[:1000] or None)


def _run_schemathesis(folder: Path, home: Path, asked: _Round, result: Result) -> None:
    report, settings = home / f"{asked.name}.xml", home / "schemathesis.toml"
    settings.write_text(SETTINGS)
    # schemathesis stores its findings in the current folder.
    code = "import os, sys; os.chdir(sys.argv.pop(1)); from schemathesis.cli import schemathesis; schemathesis()"
    command = [sys.executable, "-c", code, str(home)]
    command += ["--config-file", str(settings), "run", f"http://127.0.0.1:{asked.port}/openapi.json"]
    command += ["--checks", ",".join(CHECKS), "--phases", "coverage,fuzzing", "--max-examples", str(EXAMPLES)]
    command += ["--max-time", str(LONGEST), "--seed", str(SEED), "--continue-on-failure", "--no-color"]
    command += ["--report-junit-path", str(report), *asked.options]
    done = attempt(command, within=WITHIN, env={"PYTHONPATH": str(folder), "HYPOTHESIS_PROFILE": ""})
    if not report.exists():
        told = (done.stderr or done.stdout).decode("utf-8", "replace")
        raise RuntimeError(f"schemathesis told nothing of {asked.name}: {told[-2000:]}")
    read_report(report.read_text(), asked.name, result)


@contextmanager
def _servers(home: Path, runtime: str) -> Iterator[tuple[dict[str, int], str]]:
    """Run the servers; yield their ports by role, and the token of a connected phone."""
    env: Mapping[str, str] = {"API_SERVER_KEY": KEY, "RELAY_PAIRING_CODE": CODE}
    with running(home / "servers", "servers", *LOCAL, "--no-qr", env=env, runtime=runtime) as servers:
        ports = ports_of(servers)
        phone = ("--remote", f"ws://127.0.0.1:{ports['relay']}", "--code", CODE, "--master", "on", "--allow")
        with running(home / "phone", "clients.phone", *phone, "--unattended", "--print-token", runtime=runtime) as told:
            yield ports, told.line(r"^paired: session (\S+)$")[1]
