"""The Autobahn test suite against the echo: every case of its fuzzing client, performance and compression included.

Its runner needs Python 2.7. Where there is none, `kosoku` runs the same cases on a Python of today.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.conformance.result import Result
from tests.conformance.tools import FOLDER, Unavailable, pip_target, program, run

__all__ = ["AUTOBAHN", "KOSOKU", "autobahn"]

AUTOBAHN = "autobahntestsuite==25.10.1"
KOSOKU = "kosoku==0.1.0"
WITHIN = 5400.0  # s for all 517 cases; the runner alone takes five minutes of a core
GOOD = ("OK", "INFORMATIONAL")
LENIENT = "NON-STRICT"
WSTEST = (
    "import site, sys; site.addsitedir(sys.argv[1]); "
    "from autobahntestsuite.wstest import run; sys.argv = ['wstest'] + sys.argv[2:]; run()"
)
KOSOKU_RUN = (
    "import site, sys; site.addsitedir(sys.argv[1]); from kosoku._cli import main; "
    "sys.argv = ['kosoku', '--outdir', *sys.argv[2:]]; "
    "\ntry: main()\nexcept SystemExit: pass"  # it fails when a case does; the report says which
)


def autobahn(port: int, runtime: str) -> Result:
    """Run the suite; OK and INFORMATIONAL pass, for the behaviour and for the close."""
    report = FOLDER / f"autobahn-{runtime}"
    specification = FOLDER / f"autobahn-{runtime}.json"
    server = {"agent": "svc", "url": f"ws://127.0.0.1:{port}"}
    everything = {"outdir": str(report), "servers": [server], "cases": ["*"], "exclude-cases": []}
    try:
        python = program("python2.7", "pypy2", "pypy", *_versions_of_pyenv())
    except Unavailable:
        folder = pip_target("kosoku", KOSOKU)
        run([sys.executable, "-c", KOSOKU_RUN, folder, report, f"127.0.0.1:{port}"], within=WITHIN)
        return _read(Result(f"websocket, {KOSOKU} on {runtime}"), report)
    folder = pip_target("autobahn", AUTOBAHN, python=python)
    specification.write_text(json.dumps({**everything, "exclude-agent-cases": {}}))
    run([python, "-c", WSTEST, folder, "-m", "fuzzingclient", "-s", specification], within=WITHIN)
    return _read(Result(f"websocket, {AUTOBAHN} on {runtime}"), report)


def _versions_of_pyenv() -> list[str]:
    """A Python 2.7 that pyenv has, but not on the path."""
    return [str(path) for path in sorted((Path.home() / ".pyenv" / "versions").glob("2.7*/bin/python2.7"))]


def _read(result: Result, report: Path) -> Result:
    (cases,) = json.loads((report / "index.json").read_text()).values()  # of the one agent
    for case in sorted(cases, key=lambda case: [int(part) for part in case.split(".")]):
        behaviour, close = cases[case]["behavior"], cases[case]["behaviorClose"]
        if behaviour in GOOD and close in GOOD:
            result.note(case, None)
        elif behaviour == LENIENT and close in GOOD:
            result.note(case, behaviour, "non-strict: closed later than it could be")
        else:
            result.note(case, f"{behaviour}, close {close}")
    return result
