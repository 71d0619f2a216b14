"""`python -m fuzz.mutants.rules`: take each rule of the doors out of the product, and see that a test notices.

They are in `rules.toml`, one change of the text each, with the test that is to fail. Nothing else is asked, so a rule
takes a second.
"""

from __future__ import annotations

import multiprocessing
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from attrs import frozen

from fuzz.mutants.process import Request, alone
from fuzz.mutants.tree import Tree

__all__ = ["RULES", "Rule", "main", "noticed", "read_rules"]

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RULES = HERE / "rules.toml"
EXAMPLES = """
\b
Examples:
  python -m fuzz.mutants.rules
  python -m fuzz.mutants.rules "no page" --shown
"""


@frozen(kw_only=True)
class Rule:
    """One rule: the text that holds it, what stands there without it, and the test that fails then."""

    name: str
    module: str  # with its package: "svc_proto.relay.access"
    before: str
    after: str
    test: str

    @property
    def tree(self) -> Tree:
        """Of its package."""
        return Tree(ROOT, self.module.partition(".")[0])

    def text(self) -> bytes:
        """The module without it. ValueError if what holds it is not there once."""
        below = self.module.partition(".")[2]
        source = self.tree.path(below).read_text()
        if source.count(self.before) != 1:
            raise ValueError(f"{self.module} has this {source.count(self.before)} times: {self.before!r}")
        return source.replace(self.before, self.after).encode()


def read_rules(path: Path = RULES) -> list[Rule]:
    """All of them."""
    return [Rule(**entry) for entry in tomllib.loads(path.read_text())["rule"]]


def noticed(rule: Rule, compiled: str, *, shown: bool = False) -> str | None:
    """Take it out; the test that fails then, if one does. `compiled` is a folder for what Python compiles."""
    request = Request(rule.module.partition(".")[2], rule.text(), [rule.test], limit=60.0)
    return alone(rule.tree, request, compiled, shown=shown)


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("part", default="")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="At a time; one for each core by default.")
@click.option("--shown", is_flag=True, help="Show what pytest says.")
def main(part: str, jobs: int | None, shown: bool) -> None:
    """Take out each rule whose name has PART in it. Exit code 1 if nobody notices one."""
    chosen = [rule for rule in read_rules() if part in rule.name]
    missed = 0
    with TemporaryDirectory() as compiled, ThreadPoolExecutor(jobs or multiprocessing.cpu_count()) as pool:
        for rule, by in zip(chosen, pool.map(lambda each: noticed(each, compiled, shown=shown), chosen), strict=True):
            missed += by is None
            print(f"{rule.name}: {by or 'NOBODY NOTICES'}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} rules are missed when they are gone")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
