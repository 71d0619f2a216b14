"""docs/reference/limits.md: the limits of the wire, from the source of `svc_proto/wire/limits.py`.

After a change: `python -m tests.support.limits_page` writes the page.
"""

from __future__ import annotations

import re
from pathlib import Path

from svc_proto.wire import DEFAULT_LIMITS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/limits.md"
SOURCE = ROOT / "svc_proto/wire/limits.py"
ABOUT = """# Limits

The limits of the protocol layer with the behaviour at each: sizes in bytes, times in seconds. The command
`python -m tests.support.limits_page` writes this page from `svc_proto/wire/limits.py`; a test compares it. Embedders
change the
limits with `attrs.evolve(DEFAULT_LIMITS, ...)`. The [wire](../spec/wire/README.md) has those of routes and messages.

| Limit | Default | Meaning and behaviour at the limit |
|---|---|---|
"""


def text() -> str:
    """Return the page."""
    fields = re.findall(r"^    (\w+): (?:int|float) = [^#\n]+  # (.+)$", SOURCE.read_text(), re.MULTILINE)
    rows = [f"| `{name}` | {getattr(DEFAULT_LIMITS, name):,} | {meaning} |" for name, meaning in fields]
    return ABOUT + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text())
