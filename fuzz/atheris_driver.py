"""Fuzz driver with coverage feedback: Atheris, which contains libFuzzer. Each target has its own process.

`python -m fuzz.atheris_driver NAME [libFuzzer's options]` is such a process. Inputs with new coverage are stored in
`fuzz/found/NAME`, where the next run starts.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from fuzz.corpus_paths import FOUND, corpus, dictionary

MEASURED = ("svc_proto", "h11", "h2", "hpack", "wsproto")
MAX_INPUT_BYTES = 4096  # of one input
SLOWEST = 10  # s that one input may take
MAX_MEMORY_MB = 2048  # MiB


def is_available() -> bool:
    """Report whether Atheris is installed."""
    return importlib.util.find_spec("atheris") is not None


def fuzz_guided(names: Sequence[str], seconds: float, crashes: Path, *, jobs: int | None = None) -> int:
    """Run each target in a process of its own, for about `seconds` in total; return the number of failed targets."""
    at_once = min(jobs or os.cpu_count() or 1, len(names))
    each = max(1, round(seconds * at_once / len(names)))
    crashes.mkdir(parents=True, exist_ok=True)
    waiting, failures = list(names), 0
    while waiting:
        now, waiting = waiting[:at_once], waiting[at_once:]
        running = {name: _start(name, each, crashes) for name in now}
        for name, process in running.items():
            said = process.communicate()[0]
            failed = process.returncode != 0
            failures += failed
            print(f"{name}: {_summary(said)}", flush=True)
            if failed:
                print(said, file=sys.stderr, flush=True)
    return failures


def _start(name: str, seconds: int, crashes: Path) -> subprocess.Popen[str]:
    found = FOUND / name
    found.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={MAX_INPUT_BYTES}",
        f"-timeout={SLOWEST}",
        f"-rss_limit_mb={MAX_MEMORY_MB}",
        f"-dict={dictionary(name)}",
        f"-artifact_prefix={crashes / name}-",
        "-print_final_stats=1",
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "fuzz.atheris_driver", name, *options, str(found), str(corpus(name))],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


def _summary(said: str) -> str:
    stats = dict(line.removeprefix("stat::").split(":", 1) for line in said.splitlines() if line.startswith("stat::"))
    done, kept = (stats.get(key, "?").strip() for key in ("number_of_executed_units", "new_units_added"))
    return f"{done} inputs, {kept} of them new ways"


def main() -> None:
    """Run the target that the first argument names under libFuzzer, in this process."""
    import atheris  # noqa: PLC0415, RUF100 - only where it is installed

    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=list(MEASURED), enable_loader_override=False):
        from fuzz.targets import TARGETS  # noqa: PLC0415, RUF100 - so that its imports are instrumented
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
