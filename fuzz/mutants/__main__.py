"""`python -m fuzz.mutants --count 120 --seed 1`: make small wrong changes to the core, and report which checks fail."""

import multiprocessing
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from fuzz.mutants.collected_tests import CollectedTests
from fuzz.mutants.judge import Judge, MutantResult, Verdict
from fuzz.mutants.mutators import Mutant, MutationKind
from fuzz.mutants.source_tree import SourceTree
from fuzz.mutants.trial_process import FailsWithoutMutantError

HERE = Path(__file__).parent
EQUAL = HERE / "equal.toml"
EXAMPLES = """
\b
Examples:
  python -m fuzz.mutants --count 60 --seed 7
  python -m fuzz.mutants --only relay.access:1a2b3c4d --narrow
"""


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--count", type=click.IntRange(min=1), default=120, show_default=True, help="Number of mutants.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the sample.")
@click.option("--only", multiple=True, help="Run this mutant; repeatable. A single one shows the output of pytest.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes; one for each core by default.")
@click.option(
    "--allow", type=click.IntRange(min=0), default=0, show_default=True, help="Number of survivors that is no failure."
)
@click.option("--narrow", is_flag=True, help="Run neither the tests of importing packages nor scenarios.")
@click.option(
    "--limit",
    type=click.FloatRange(min=1),
    default=300.0,
    show_default=True,
    help="Seconds for each try; four times that for importing packages and scenarios.",
)
@click.option(
    "--root", type=click.Path(path_type=Path), default=HERE.parent.parent, help="Root of the source tree.", hidden=True
)
@click.option("--package", default="svc_proto", hidden=True)
def main(
    count: int,
    seed: int,
    only: tuple[str, ...],
    jobs: int | None,
    allow: int,
    narrow: bool,
    limit: float,
    root: Path,
    package: str,
) -> None:
    """Make mutants of the core, and run its tests on them. Exit code 1 if more survive than are allowed."""
    tree = SourceTree(root.resolve(), package)
    chosen = [_named(tree, name) for name in only] or tree.sample(count, seed)
    began = time.monotonic()
    jobs = jobs or multiprocessing.cpu_count()
    with TemporaryDirectory() as scratch, ExitStack() as stack:
        judge = Judge(tree, scratch, limit=limit, narrow=narrow, shown=len(only) == 1)
        try:
            if not only:
                judge.collected = stack.enter_context(closing(CollectedTests(tree, scratch, jobs)))
            verdicts = _judged(judge, chosen, jobs)
        except FailsWithoutMutantError as problem:
            raise click.ClickException(str(problem)) from None
    print(_table(verdicts))
    print(f"{len(verdicts)} mutants in {time.monotonic() - began:,.0f} s")
    survivors = [each.mutant for each in verdicts if each.fate is MutantResult.SURVIVED]
    for mutant in survivors:
        print(_format_result(mutant, tree))
    sys.exit(1 if len(survivors) > allow else 0)


def read_equal() -> Mapping[tuple[str, str, str, str], str]:
    """Return the listed mutants that do not change the behavior of the core: by `Mutant.key`, the reason."""
    entries = [(module, each) for module, rows in tomllib.loads(EQUAL.read_text()).items() for each in rows]
    return {(module, each["name"], each["before"], each["after"]): each["why"] for module, each in entries}


def _named(tree: SourceTree, name: str) -> Mutant:
    module = name.partition(":")[0]
    found = [each for each in (tree.mutants(module) if module in tree.modules() else []) if each.id == name]
    if not found:
        raise click.ClickException(f"there is no mutant {name}: has its line changed?")
    return found[0]


def _judged(judge: Judge, mutants: Sequence[Mutant], jobs: int) -> list[Verdict]:
    equal = read_equal()
    verdicts: list[Verdict] = []
    pool = ThreadPoolExecutor(jobs)
    try:
        tried = [
            pool.submit(
                lambda each: Verdict(each, MutantResult.EQUAL) if each.key in equal else judge.judge(each), mutant
            )
            for mutant in mutants
        ]
        for verdict in (each.result() for each in as_completed(tried)):
            verdicts.append(verdict)
            words = (
                f"{len(verdicts)}/{len(mutants)}",
                verdict.mutant.id,
                verdict.mutant.kind,
                verdict.fate,
                verdict.by,
            )
            print("  ".join(word for word in words if word), file=sys.stderr, flush=True)
    finally:
        pool.shutdown(cancel_futures=True)
    return verdicts


def _table(verdicts: Sequence[Verdict]) -> str:
    counts = Counter((each.mutant.kind, each.fate) for each in verdicts)
    rows = [
        f"{kind:<10}" + "".join(f"{counts[kind, fate]:>{len(fate) + 2}}" for fate in MutantResult)
        for kind in MutationKind
    ]
    total = Counter(each.fate for each in verdicts)
    return "\n".join(
        [
            " " * 10 + "".join(f"  {fate}" for fate in MutantResult),
            *rows,
            f"{'all':<10}" + "".join(f"{total[fate]:>{len(fate) + 2}}" for fate in MutantResult),
        ]
    )


def _format_result(mutant: Mutant, tree: SourceTree) -> str:
    path = tree.path(mutant.module).relative_to(tree.root)
    return (
        f"\n{path}:{mutant.line}: in {mutant.name or 'the module'}: {mutant.kind}\n"
        f"  - {mutant.before}\n  + {mutant.after}\n"
        f"  again: python -m fuzz.mutants --only {mutant.id}"
    )


if __name__ == "__main__":
    main()
