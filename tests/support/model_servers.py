"""Model servers of `tests/agent/model_servers.toml`, and the table of docs/reference/compatibility.md that shows them.

After a change: `python -m tests.support.model_servers` writes the table.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["ABILITIES", "PAGE", "SERVERS", "page_with_table"]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/compatibility.md"
SERVERS: tuple[Mapping[str, Any], ...] = tuple(
    tomllib.loads((ROOT / "tests/agent/model_servers.toml").read_text())["server"]
)
ABILITIES: Mapping[str, str] = {
    "stream": "Stream", "tools": "Tools", "parallel": "Parallel calls", "tools_refused": "No tools",
    "reasoning": "Reasoning", "usage": "Usage", "system": "System role", "images": "Pictures", "overflow": "Overflow",
    "rate": "Rate limit", "models": "Context size", "error": "Error text"
}  # fmt: skip
BEGIN = "<!-- table of model servers: python -m tests.support.model_servers -->\n"
END = "<!-- end of the table -->\n"
CALLS = {
    "whole": "whole", "fragments": "fragments", "same_index": "whole, no ids", "no_index": "with the end",
}  # fmt: skip


def page_with_table(page: str) -> str:
    """Return the text of the page with its table replaced by one built from the data."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{_table()}\n{END}{after}"


def _table() -> str:
    lines = [f"| Server | {' | '.join(ABILITIES.values())} |", "|---" * (len(ABILITIES) + 1) + "|"]
    lines += [
        f"| {server['name']} | {' | '.join(_cell(server, ability) for ability in ABILITIES)} |" for server in SERVERS
    ]
    return "\n".join(lines) + "\n"


def _cell(server: Mapping[str, Any], ability: str) -> str:
    if ability in server.get("fails", ()):
        return "fails"
    match ability:
        case "tools":
            return CALLS[server["calls"]]
        case "tools_refused":
            return _refused(server, "tools")
        case "reasoning":
            return str(server.get("reasoning", "none"))
        case "usage":
            return (
                f"{server['usage']}, {_refused(server, 'stream_options')}"
                if "stream_options" in server
                else str(server["usage"])
            )
        case "system" | "images":
            return _refused(server, ability)
        case "overflow":
            return "in the stream" if server["overflow"][0] == 200 else str(server["overflow"][0])
        case "rate":
            return f"{server['rate'][0]}, {server['rate'][2]}" if len(server["rate"]) > 2 else str(server["rate"][0])
        case "models":
            return "yes" if "context" in server else "none"
    return "yes"


def _refused(server: Mapping[str, Any], member: str) -> str:
    return str(server[member][0]) if member in server else "taken"


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
