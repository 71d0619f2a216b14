"""Random driver of the fuzz targets: mutations of their corpora, reproducible by seed."""

import hashlib
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from random import Random

from attrs import define, field

from fuzz.corpus_paths import corpus, dictionary
from fuzz.mutation import mutate, read_dictionary
from fuzz.targets import TARGETS

BATCH = 20  # inputs of one target before the next target


@define
class RandomFuzzRun:
    """A run of some targets with mutated inputs; inputs that violate an oracle are saved in `crashes`."""

    names: Sequence[str]
    seed: int
    crashes: Path
    counts: dict[str, int] = field(init=False)
    failures: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.counts = dict.fromkeys(self.names, 0)
        self._rngs = {name: Random(f"{name} {self.seed}") for name in self.names}
        self._seeds = {name: [path.read_bytes() for path in sorted(corpus(name).iterdir())] for name in self.names}
        self._words = {name: read_dictionary(dictionary(name)) for name in self.names}

    _rngs: dict[str, Random] = field(init=False)
    _seeds: dict[str, list[bytes]] = field(init=False)
    _words: dict[str, list[bytes]] = field(init=False)

    def run(self, name: str, inputs: int) -> None:
        """Run the next `inputs` inputs of a target; they do not depend on the other targets."""
        rng, seeds = self._rngs[name], self._seeds[name]
        for _ in range(inputs):
            data = mutate(rng.choice(seeds), seeds, rng, self._words[name])
            self.counts[name] += 1
            self._try(name, data)

    def text(self) -> str:
        """Return the number of inputs of each target and the number of failures, as text."""
        counts = ", ".join(f"{name} {count:,}" for name, count in self.counts.items())
        return f"inputs: {counts}; {self.failures} failures"

    def _try(self, name: str, data: bytes) -> None:
        try:
            TARGETS[name](data)
        except Exception:  # noqa: BLE001, RUF100 - any exception is a finding
            self.failures += 1
            self.crashes.mkdir(parents=True, exist_ok=True)
            saved = self.crashes / f"{name}-{hashlib.sha256(data).hexdigest()[:8]}"
            saved.write_bytes(data)
            print(f"{name} failed; saved as {saved}", file=sys.stderr)
            traceback.print_exc(limit=-4)


def fuzz_inputs(names: Sequence[str], inputs: int, seed: int, crashes: Path) -> RandomFuzzRun:
    """Run a number of inputs for each target, and return the run with its counts."""
    burst = RandomFuzzRun(names, seed, crashes)
    for name in names:
        burst.run(name, inputs)
    return burst


def fuzz_for(names: Sequence[str], seconds: float, seed: int, crashes: Path) -> RandomFuzzRun:
    """Run the targets alternately for some seconds, and return the run with its counts."""
    burst = RandomFuzzRun(names, seed, crashes)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name in names:
            burst.run(name, BATCH)
    return burst
