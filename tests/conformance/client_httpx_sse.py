"""Program of `sse_suite`, which gets the folder of httpx-sse and a URL: prints the events of each stream as JSON."""

from __future__ import annotations

import importlib
import json
import site
import sys
from typing import Any

ENOUGH = 3  # events of an endless stream


def main(folder: str, url: str) -> None:
    """Read the plain, slow, endless and resumed streams with httpx-sse, and print their events as JSON."""
    site.addsitedir(folder)
    httpx: Any = importlib.import_module("httpx")
    httpx_sse: Any = importlib.import_module("httpx_sse")

    def read(path: str, headers: dict[str, str], most: int) -> list[dict[str, object]]:
        found: list[dict[str, object]] = []
        with httpx.Client() as client, httpx_sse.connect_sse(client, "GET", url + path, headers=headers) as source:
            for event in source.iter_sse():
                found.append({"type": event.event, "data": event.data, "id": event.id, "retry": event.retry})
                if len(found) == most:
                    break
        return found

    told = {
        "plain": read("/sse", {}, 100),
        "slow": read("/sse?slow", {}, 100),
        "endless": read("/sse?endless", {}, ENOUGH),
        "resumed": read("/sse", {"Last-Event-ID": "3"}, 100),
    }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
