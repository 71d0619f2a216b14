"""Smoke test of an installation; run by the Python of its environment, with the expected version.

usage: python -I smoke.py VERSION
The programs print their version and help, each module that needs no extra can be imported, started servers answer and
stop, and meanwhile `svc status` and `svc top` end without an error. Standard output gets one line with the results.
"""

import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib import import_module
from pathlib import Path

PACKAGES = ("svc_proto", "runtimes", "servers", "clients")
EXTRAS = {"anyio", "trio", "curio", "uvloop", "av", "espeakng_loader", "lameenc", "pocketsphinx"}
PROGRAMS = ("svc", "svc-relay", "svc-pair")
READY_WITHIN = 30.0  # s
BIN = Path(sys.executable).parent
UP = ("up", "--host", "127.0.0.1", "--port", "0", "--api-port", "0", "--dashboard-port", "0", "--no-qr")


def main(version: str) -> None:
    """Run all tests; exit with a description of the first failure."""
    for program in PROGRAMS:
        said = run(program, "--version")
        if said.split() != [program, version]:
            sys.exit(f"{program} --version says {said!r}")
        if "Usage" not in run(program, "--help"):
            sys.exit(f"{program} --help shows no usage")
    imported, missing = imports()
    with tempfile.TemporaryDirectory(prefix="svc-smoke-") as home:
        answered = servers(Path(home))
    without = f", but for what needs {', '.join(sorted(missing))}" if missing else ""
    print(f"ok: {len(PROGRAMS)} programs, {imported} modules{without}, {answered}")


def imports() -> tuple[int, set[str]]:
    """Import all modules but `__main__`; return their number, and the packages that other modules lack."""
    count, missing = 0, set[str]()
    for package in PACKAGES:
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            if module.name.endswith("__main__"):
                continue
            try:
                import_module(module.name)
                count += 1
            except ModuleNotFoundError as error:
                if error.name not in EXTRAS:
                    raise
                missing.add(error.name or "")
    return count, missing


def servers(home: Path) -> str:
    """Start the servers, query them, and stop them; return a text with their statuses and the memory in use."""
    os.environ["SVC_HOME"] = str(home)
    log = home / "said"
    with log.open("wb") as said, subprocess.Popen([BIN / "svc", *UP], stdout=said, stderr=said) as process:
        try:
            found = {role: answer(home, role, process, log) for role in ("relay", "api", "dashboard")}
            run("svc", "status")
            top = json.loads(run("svc", "top", "--json", "--every", "0.2"))
            run("svc", "down")
            if process.wait(READY_WITHIN) != 0:
                sys.exit(f"svc up ended with {process.returncode}")
        finally:
            process.kill()
    return f"{', '.join(f'{role} {status}' for role, status in found.items())}, {top['memory'] / 1e6:.0f} MB"


def answer(home: Path, role: str, process: subprocess.Popen[bytes], log: Path) -> int:
    """Return the status of a server's health route; exit if the server does not answer."""
    until = time.monotonic() + READY_WITHIN
    while time.monotonic() < until and process.poll() is None:
        try:
            where = json.loads((home / "run" / f"{role}.json").read_text())["inside"]
            path = "/healthz" if role == "dashboard" else "/health"
            with urllib.request.urlopen(where + path, timeout=READY_WITHIN) as answered:  # noqa: S310 - always http
                return int(answered.status)
        except (OSError, ValueError, KeyError):
            time.sleep(0.1)
    sys.exit(f"the {role} does not answer: {log.read_text('utf-8', 'replace')}")


def run(program: str, *words: str) -> str:
    """Return the output of a program; exit if it fails."""
    done = subprocess.run([BIN / program, *words], capture_output=True, text=True, timeout=READY_WITHIN, check=False)
    if done.returncode:
        sys.exit(f"{program} {' '.join(words)} ends with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1])
