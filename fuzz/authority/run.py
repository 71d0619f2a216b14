"""`python -m fuzz.authority.run`: random worlds of authority; exit code 1 if a result differs from the model."""

import multiprocessing
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import click

from fuzz.authority.world import AuthorityViolation, World

__all__ = ["main", "run_seed"]

CHUNK = 50  # worlds that a process runs at a time
PROGRESS = 500  # worlds between two lines of progress


def run_seed(seed: int) -> Counter[str]:
    """Run the world of a seed; return the number of its actions by name. Raise `AuthorityViolation`."""
    return World(seed).run()


def _run_one(seed: int) -> Counter[str] | str:
    try:
        return run_seed(seed)
    except AuthorityViolation as violation:
        return f"world {seed}: {violation}"


@click.command()
@click.option("--worlds", type=click.IntRange(min=1), default=1_000, show_default=True)
@click.option("--first", type=int, default=0, show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes; one for each core by default.")
def main(worlds: int, first: int, jobs: int | None) -> None:
    """Run random worlds of authority; exit code 1 when a result differs from the model."""
    began, total, failed = time.monotonic(), Counter[str](), 0
    with ProcessPoolExecutor(jobs or multiprocessing.cpu_count()) as pool:
        for done, result in enumerate(pool.map(_run_one, range(first, first + worlds), chunksize=CHUNK), start=1):
            if done % PROGRESS == 0:
                print(f"{done} worlds, {failed} failed", file=sys.stderr, flush=True)
            if isinstance(result, str):
                failed += 1
                print(result, file=sys.stderr, flush=True)
            else:
                total += result
    print(f"{worlds} worlds, {failed} failed, {time.monotonic() - began:.0f} s")
    print(", ".join(f"{count:,} x {name}" for name, count in sorted(total.items())))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
