"""`python -m fuzz --seconds 60`: search for inputs that violate an oracle.

Atheris guides the search by coverage. Without it, or with `--plain` or `--seed`, the mutations are random.
"""

import sys
import time
from pathlib import Path

import click

from fuzz.atheris_driver import fuzz_guided, is_available
from fuzz.corpus_paths import CRASHES
from fuzz.random_driver import fuzz_for
from fuzz.targets import TARGETS

EXAMPLES = """
\b
Examples:
  python -m fuzz --seconds 60
  python -m fuzz --target core --target http2
  python -m fuzz --plain --seed 7
  python -m fuzz --replay fuzz/crashes/core-1a2b3c4d
"""


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=60.0,
    show_default=True,
    help="Seconds for all targets together.",
)
@click.option(
    "--target", "names", multiple=True, type=click.Choice(list(TARGETS)), help="Fuzz only this target; repeatable."
)
@click.option("--plain", is_flag=True, help="Use the plain, repeatable mutations even if Atheris is installed.")
@click.option("--seed", type=int, default=None, help="Seed of the plain mutations; random by default.")
@click.option("--replay", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Run one saved input.")
@click.option("--crashes", type=click.Path(path_type=Path), default=CRASHES, help="Folder for failing inputs.")
def main(
    seconds: float, names: tuple[str, ...], plain: bool, seed: int | None, replay: Path | None, crashes: Path
) -> None:
    """Feed mutated input to the targets, and exit with code 1 if one fails. With --replay, run one stored input."""
    if replay is not None:
        TARGETS[replay.name.partition("-")[0]](replay.read_bytes())
        print("holds")
        return
    chosen = names or tuple(TARGETS)
    if is_available() and not plain and seed is None:
        failures = fuzz_guided(chosen, seconds, crashes)
    else:
        seed = time.time_ns() % 1_000_000 if seed is None else seed
        print(f"seed {seed}", flush=True)
        burst = fuzz_for(chosen, seconds, seed, crashes)
        print(burst.text())
        failures = burst.failures
    if failures:
        print(f"replay: python -m fuzz --replay {crashes}/...", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
