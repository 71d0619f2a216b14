"""`python -m fuzz --seconds 60`: mutate the corpus, run every target in turn, keep what breaks an oracle."""

from __future__ import annotations

import hashlib
import sys
import time
import traceback
from pathlib import Path
from random import Random

import click

from fuzz.mutate import mutated
from fuzz.targets import TARGETS

__all__ = ["fuzz", "main"]

HERE = Path(__file__).parent
BATCH = 50  # inputs of one target before the next has its turn

EXAMPLES = """
\b
Examples:
  python -m fuzz --seconds 60
  python -m fuzz --target core --seed 7
  python -m fuzz --replay fuzz/crashes/core-1a2b3c4d
"""


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seconds", type=click.FloatRange(min=0.1), default=60.0, show_default=True)
@click.option("--target", "names", multiple=True, type=click.Choice(list(TARGETS)), help="Only these; repeatable.")
@click.option("--seed", type=int, default=None, help="Of the mutations; a random one is chosen and printed.")
@click.option("--replay", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Run one saved input.")
def main(seconds: float, names: tuple[str, ...], seed: int | None, replay: Path | None) -> None:
    """Feed mutated bytes to the core and check the oracles. Exit code 1 if one does not hold."""
    if replay is not None:
        TARGETS[replay.name.partition("-")[0]](replay.read_bytes())
        print("holds")
        return
    chosen = time.time_ns() % 1_000_000 if seed is None else seed
    print(f"seed {chosen}", flush=True)
    sys.exit(1 if fuzz(names or tuple(TARGETS), seconds, chosen, HERE / "crashes") else 0)


def fuzz(names: tuple[str, ...], seconds: float, seed: int, crashes: Path) -> int:
    """Run the targets for some seconds; the number of inputs that broke an oracle, each saved under `crashes`."""
    rng = Random(seed)
    corpora = {name: [path.read_bytes() for path in sorted((HERE / "corpus" / name).iterdir())] for name in names}
    counts = dict.fromkeys(names, 0)
    failures = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name in names:
            for _ in range(BATCH):
                data = mutated(rng.choice(corpora[name]), corpora[name], rng)
                counts[name] += 1
                failures += not _holds(name, data, crashes)
    print(", ".join(f"{name}: {count} inputs" for name, count in counts.items()) + f"; {failures} failures")
    return failures


def _holds(name: str, data: bytes, crashes: Path) -> bool:
    try:
        TARGETS[name](data)
    except Exception:  # noqa: BLE001, RUF100 - any exception is a finding
        crashes.mkdir(exist_ok=True)
        saved = crashes / f"{name}-{hashlib.sha256(data).hexdigest()[:8]}"
        saved.write_bytes(data)
        print(f"{name} failed; saved as {saved}", file=sys.stderr)
        traceback.print_exc(limit=4)
        return False
    return True


if __name__ == "__main__":
    main()
