"""Suite of the cores in WebAssembly: examples/browser by Pyodide (npm) under Node, as in a page."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conformance.external_tools import npm_package, program, run
from tests.conformance.result import Result
from tests.servers.program_process import ROOT
from tests.support.copied_packages import CORE, copy_package

PYODIDE = "pyodide@314.0.7"
WITHIN = 120.0  # s
WANTED = {
    "/ping": "200 pong ts",
    "/current_app": "200 package",
    "/screen": "200 packageName rootBounds nodes truncated nodeCount",
}


def pyodide() -> Result:
    """Run a phone and a relay as WebAssembly, driven by JavaScript, and compare the answers to some commands."""
    modules, node = npm_package(PYODIDE), program("node")
    with TemporaryDirectory() as folder:
        for name in CORE:
            copy_package(name, Path(folder))
        told = run([node, ROOT / "examples/browser/cores.mjs", modules, ROOT, folder], within=WITHIN)
    lines = dict(line.split(" ", 1) for line in told.splitlines())
    result = Result(f"the cores in WebAssembly, {PYODIDE}")
    for path, wanted in WANTED.items():
        result.compare(path, lines.get(path), wanted)
    return result
