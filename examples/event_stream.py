"""Event stream decoder only: prints a turn of the API server, read with Python's own HTTP client.

  python -m examples.event_stream http://127.0.0.1:8642/api/sessions/ID/chat/stream '{"message": "hello"}' KEY

The decoder takes bytes in pieces of any size, from any source. It loads neither an HTTP library nor other parts of this
project.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from urllib.request import Request, urlopen

from svc_proto.wire import EventStreamDecoder


def deltas(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the assistant's text from the pieces of a chat stream."""
    decoder = EventStreamDecoder()
    for piece in pieces:
        for event in decoder.receive_data(piece):
            if event.event == "assistant.delta":
                yield json.loads(event.data)["delta"]


def main(url: str, body: str, key: str) -> None:
    """Print the assistant's text as it arrives."""
    head = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with urlopen(Request(url, body.encode(), head)) as answer:  # noqa: S310 - its own server's address
        for delta in deltas(iter(answer.read1, b"")):
            print(delta, end="", flush=True)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
