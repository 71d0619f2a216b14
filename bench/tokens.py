"""Tokens that a model receives for work on a phone; they are counted (o200k_base), not timed."""

from __future__ import annotations

from bench.measure import Progress, Scale
from bench.report import Column, Row, Table
from tests.agent.step_tokens import match_tokens, prompt_tokens, screen_tokens, shared_part, steps, tool_tokens

__all__ = ["tokens_section"]

COLUMNS = (Column("tokens", "tokens", 0), Column("requests", "requests", 0), Column("shared_percent", "shared %"))
NOTES = (
    "shared: part of the prompts that the next prompt repeats from its beginning, which a server has in its cache.",
    "with looks: the model looks after each act; otherwise the result of an act has the screen.",
)


def tokens_section(scale: Scale, progress: Progress) -> list[Table]:
    """Return the table of the tokens of tools, of screens, of a match of a search, and of a work of ten steps."""
    rows = [
        Row("tools", {"tokens": tool_tokens(few=False)}),
        Row("tools, few", {"tokens": tool_tokens(few=True)}),
        Row("twelve screens", {"tokens": screen_tokens()}),
        Row("match of a search", {"tokens": match_tokens()}),
    ]
    for name, few, looks in (
        ("ten steps", False, False),
        ("ten steps, with looks", False, True),
        ("ten steps, few tools", True, False),
        ("ten steps, few tools, with looks", True, True),
    ):
        progress(f"tokens: {name}")
        requests = steps(few=few, looks=looks)
        figures = {"tokens": prompt_tokens(requests), "requests": len(requests)}
        rows.append(Row(name, {**figures, "shared_percent": 100 * shared_part(requests)}))
    return [Table("tokens", "Tokens of a model that works on a phone", COLUMNS, rows, NOTES)]
