"""`python -m fuzz.mutants.rules`: insert each listed bug into the product, and check that a test or simulation fails.

The list is in `rules/*.toml`: for each module the bugs, one at a time, as changes of its text. An entry names the test
that must fail, or the seed of a simulation or cluster run and its report.
"""

import multiprocessing
import re
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from attrs import frozen

from fuzz.mutants.simulated import find_seed
from fuzz.mutants.source_tree import SourceTree
from fuzz.mutants.trial_process import TrialRequest, alone

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RULES = HERE / "rules"
SEEDS = 300  # seeds within which a bug must be found
LIMIT = 120.0  # s for a test, a simulation or a cluster run
EXAMPLES = """
\b
Examples:
  python -m fuzz.mutants.rules
  python -m fuzz.mutants.rules "no page" --shown
  python -m fuzz.mutants.rules "a pairing code is accepted twice" --refresh
"""


@frozen(kw_only=True)
class Rule:
    """Seeded bug: the text that implements a rule, its replacement, and the test or seed that must fail."""

    name: str
    module: str  # with its package: "svc_proto.relay.access"
    before: str
    after: str
    test: str = ""  # test that must fail
    world: int | None = None  # seed of a simulation that must fail
    storm: int | None = None  # seed of a cluster run that must fail
    sessions: int = 0  # stored sessions of the cluster run; with them, computing costs simulated time
    breaks: str = ""  # name of the invariant that the simulation reports, or a part of the cluster run's report

    @property
    def tree(self) -> SourceTree:
        """Return the source tree of the module's package."""
        return SourceTree(ROOT, self.module.partition(".")[0])

    @property
    def below(self) -> str:
        """Return the module's name within its package."""
        return self.module.partition(".")[2]

    def text(self) -> bytes:
        """Return the module with the bug. Raise ValueError unless the old text occurs exactly once."""
        source = self.tree.path(self.below).read_text()
        if source.count(self.before) != 1:
            raise ValueError(f"{self.module} has this {source.count(self.before)} times: {self.before!r}")
        return source.replace(self.before, self.after).encode()


def read_rules(folder: Path = RULES) -> list[Rule]:
    """Return the seeded bugs of all TOML files in `folder`."""
    files = (tomllib.loads(path.read_text()) for path in sorted(folder.glob("*.toml")))
    return [Rule(module=module, **entry) for file in files for module, entries in file.items() for entry in entries]


def noticed(rule: Rule, scratch: str, *, shown: bool = False) -> str | None:
    """Insert the bug, run the test and the seed that the rule names, and return which of them failed.

    Return None if a named test or seed did not fail. `scratch` is a folder for bytecode and temporary files.
    """
    found = []
    if rule.test:
        request = TrialRequest(rule.below, rule.text(), [rule.test], limit=LIMIT)
        found.append(alone(rule.tree, request, scratch, shown=shown))
    seed = rule.world if rule.storm is None else rule.storm
    if seed is not None:
        at = _find_seed(rule, scratch, [seed], LIMIT)
        found.append(None if at is None else f"{rule.breaks} in {'world' if rule.storm is None else 'storm'} {at}")
    return None if None in found else ", ".join(filter(None, found))


def refresh(rule: Rule, scratch: str, folder: Path = RULES) -> str | None:
    """Find the first seed that reveals the bug, and write it into the list; return None if no seed does."""
    seed = _find_seed(rule, scratch, range(SEEDS), SEEDS * LIMIT)
    if seed is None:
        return None
    place = re.compile(rf'(^name = "{re.escape(rule.name)}"\n(?:(?!\[\[").*\n)*?(?:world|storm) = )\d+$', re.MULTILINE)
    for path in folder.glob("*.toml"):
        path.write_text(place.sub(rf"\g<1>{seed}", path.read_text()))
    return f"seed {seed}"


def _find_seed(rule: Rule, scratch: str, seeds: Sequence[int], limit: float) -> int | None:
    return find_seed(
        rule.tree,
        rule.below,
        rule.text(),
        scratch,
        seeds,
        rule.breaks,
        storm=rule.storm is not None,
        sessions=rule.sessions,
        limit=limit,
    )


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("part", default="")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes; one for each core by default.")
@click.option("--shown", is_flag=True, help="Show the output of pytest.")
@click.option("--refresh", "again", is_flag=True, help="Find new seeds of worlds and storms, and write them.")
def main(part: str, jobs: int | None, shown: bool, again: bool) -> None:
    """Insert each bug whose name contains PART. Exit code 1 if one is not noticed."""
    chosen = [rule for rule in read_rules() if part in rule.name and (rule.breaks or not again)]
    missed = 0
    with TemporaryDirectory() as scratch, ThreadPoolExecutor(jobs or multiprocessing.cpu_count()) as pool:
        do = partial(refresh, scratch=scratch) if again else partial(noticed, scratch=scratch, shown=shown)
        for rule, by in zip(chosen, pool.map(do, chosen), strict=True):
            missed += by is None
            print(f"{rule.name}: {by or 'NOT NOTICED'}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} bugs are noticed")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
