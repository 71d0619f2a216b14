"""Tables of test cases in files of tab-separated values, which begin with the names of the columns."""

import csv
from pathlib import Path

__all__ = ["read_table"]

ROOT = Path(__file__).parents[2]


def read_table(path: str) -> list[dict[str, str]]:
    """Return the rows of the table at this path within the repository, each by its column names."""
    with (ROOT / path).open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
