"""The Autobahn test suite against the echo, over HTTP/1.1 and, behind nghttpx, over HTTP/2.

Its runner needs Python 2.7. Without that, `kosoku` runs the basic cases on a current Python. The cases run in chapters,
each with a report of its own. A case that fails is run once more.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from svc_proto.wire.events import TextMessage
from tests.conformance import external_tools
from tests.conformance.result import Result
from tests.loops.clients import HttpClient, WebSocketTestClient
from tests.loops.live_environment import LiveConnection
from tests.support.ports import free_port

AUTOBAHN = "autobahntestsuite==25.10.1"
KOSOKU = "kosoku==0.1.0"
BASIC = (*range(1, 8), 9, 10)
CHAPTERS = (*BASIC, *(f"12.{n}" for n in range(1, 6)), *(f"13.{n}" for n in range(1, 8)))
BASIC_CASES, CASES = 301, 517  # in those chapters
WITHIN = 3600.0  # s for a chapter; the longest take two minutes on an idle machine
GOOD = ("OK", "INFORMATIONAL")
WSTEST = (
    "import site, sys; site.addsitedir(sys.argv[1]); "
    "from autobahntestsuite.wstest import run; sys.argv = ['wstest'] + sys.argv[2:]; run()"
)
KOSOKU_RUN = (
    "import site, sys; site.addsitedir(sys.argv[1]); from kosoku._cli import main; "
    "sys.argv = ['kosoku'] + sys.argv[2:]; "
    "\ntry: main()\nexcept SystemExit: pass"  # it exits with an error when a case fails; the report has the cases
)
Verdicts = dict[str, tuple[str, str]]  # of a case: of its behaviour and of its close


def autobahn(runtime: str, *, resume: bool = False) -> Result:
    """Run the Autobahn cases against the echo over HTTP/1.1. `resume` keeps existing reports."""
    with external_tools.echo_server(runtime) as port:
        return judge(port, f"autobahn-{runtime}", f"on {runtime}", resume=resume)


def autobahn_over_http2(runtime: str, *, resume: bool = False) -> Result:
    """Run the Autobahn cases against the echo through nghttpx. `resume` keeps existing reports."""
    with external_tools.echo_server(runtime) as port, _nghttpx(port) as front:
        return judge(front, f"autobahn-h2-{runtime}", f"over HTTP/2 on {runtime}", resume=resume)


def judge(port: int, name: str, where: str, *, resume: bool = False) -> Result:
    """Run all chapters against the server at a port, and failed cases once more; return the result.

    With `resume`, chapters with a report are not run. OK and INFORMATIONAL pass, for the behaviour and for the close.
    """
    python: str | None = None
    suite, chapters, count = KOSOKU, BASIC, BASIC_CASES
    with suppress(external_tools.Unavailable):
        python = external_tools.program("python2.7", "pypy2", "pypy", *_versions_of_pyenv())
        suite, chapters, count = AUTOBAHN, CHAPTERS, CASES
    verdicts: Verdicts = {}
    for chapter in chapters:
        report = external_tools.FOLDER / name / f"{chapter}"
        if not (resume and (report / "index.json").is_file()):
            _renew(report, python, port, [f"{chapter}.*"])
        found = _verdicts(report)
        click.echo(f"{where}, {chapter}: {len(found)} cases, {len(_bad(found))} failed")
        verdicts |= found
    again = _bad(verdicts)
    if again:
        _renew(external_tools.FOLDER / name / "again", python, port, again)
        verdicts |= _verdicts(external_tools.FOLDER / name / "again")
    return _read(Result(f"websocket, {suite} {where}"), verdicts, again=again, count=count)


def _renew(report: Path, python: str | None, port: int, cases: list[str]) -> None:
    """Delete an old report, run cases, and move their report into place once it is complete."""
    part = report.with_name(f"{report.name}.part")
    for old in (part, report):
        shutil.rmtree(old, ignore_errors=True)
    _run(python, port, part, cases)
    part.rename(report)


def _run(python: str | None, port: int, report: Path, cases: list[str]) -> None:
    """Run cases and write their report: with Autobahn's own runner on `python`, or with kosoku if that is None."""
    report.mkdir(parents=True, exist_ok=True)
    if python is None:
        included = [word for case in cases for word in ("--include", case)]
        folder = external_tools.pip_target("kosoku", KOSOKU)
        server = f"127.0.0.1:{port}"
        external_tools.run(
            [sys.executable, "-c", KOSOKU_RUN, folder, *included, "--outdir", report, server], within=WITHIN
        )
        return
    specification = report / "specification.json"
    servers = [{"agent": "svc", "url": f"ws://127.0.0.1:{port}"}]
    wanted = {"outdir": str(report), "servers": servers, "cases": cases}
    specification.write_text(json.dumps({**wanted, "exclude-cases": [], "exclude-agent-cases": {}}))
    folder = external_tools.pip_target("autobahn", AUTOBAHN, python=python)
    external_tools.run([python, "-c", WSTEST, folder, "-m", "fuzzingclient", "-s", specification], within=WITHIN)


def _verdicts(report: Path) -> Verdicts:
    agents = json.loads((report / "index.json").read_text()).values()  # one; none if no case could be run
    return {case: (told["behavior"], told["behaviorClose"]) for cases in agents for case, told in cases.items()}


def _bad(verdicts: Verdicts) -> list[str]:
    return [case for case, told in verdicts.items() if not set(told) <= set(GOOD)]


def _read(result: Result, verdicts: Verdicts, *, again: list[str], count: int) -> Result:
    for case in sorted(verdicts, key=lambda case: [int(part) for part in case.split(".")]):
        behaviour, close = verdicts[case]
        result.note(case, None if case not in _bad(verdicts) else f"{behaviour}, close {close}")
        if case in again:
            result.repeated.append(case)
    if len(verdicts) != count:
        result.failed["all"] = f"{len(verdicts)} cases were run, not {count}"
    return result


def _versions_of_pyenv() -> list[str]:
    """Return the Python 2.7 interpreters of pyenv, which may not be on the path."""
    return [str(path) for path in sorted((Path.home() / ".pyenv" / "versions").glob("2.7*/bin/python2.7"))]


@contextmanager
def _nghttpx(port: int) -> Iterator[int]:
    """Run nghttpx: HTTP/1.1 in front, HTTP/2 to the echo on `port`. Yield its port once a WebSocket has passed.

    Raise RuntimeError if that WebSocket does not use HTTP/2, or its stream goes on after the closing handshake.
    """
    front = free_port()
    options = [f"--frontend=127.0.0.1,{front};no-tls", f"--backend=127.0.0.1,{port};;proto=h2"]
    command = [external_tools.program("nghttpx"), "--conf=/dev/null", "--workers=1", "--log-level=FATAL", *options]
    with external_tools.stopping(subprocess.Popen(command, stderr=subprocess.DEVNULL, text=True)):
        with external_tools.connected(front) as sock:
            ws = WebSocketTestClient(HttpClient(LiveConnection(sock), "localhost", os.urandom), path="/version")
            if ws.receive() != TextMessage(ws._stream, "2"):
                raise RuntimeError("nghttpx does not speak HTTP/2 to the echo")
            ws.close()
            if ws.wire.read_all():  # nghttpx closes when the stream has ended after the closing handshake
                raise RuntimeError("the stream goes on after the closing handshake")
        yield front
