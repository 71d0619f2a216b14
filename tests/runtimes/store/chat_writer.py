"""Program that adds messages to a store file: `chat_writer FILE NAME COUNT`; a test may kill it at any time.

It prints `ready` and waits for a line. Then, for each number below COUNT, it adds a user's and an assistant's message
in one request, and prints the number.
"""

import sys

from runtimes.store.store_factory import open_store
from svc_proto.api.chat.records import Message, Usage
from svc_proto.api.chat.store_requests import AddMessages


def main(path: str, name: str, count: int) -> None:
    store = open_store(path)
    print_line("ready")
    sys.stdin.readline()
    for number in range(count):
        asked = Message(
            id=f"{name}:{number}:asked", session_id="c", role="user", content=f"wörd {number}", timestamp=float(number)
        )
        said = Message(
            id=f"{name}:{number}:said",
            session_id="c",
            role="assistant",
            content="so " * 200,
            timestamp=float(number),
            usage=Usage(input_tokens=1, output_tokens=2),
        )
        assert store.execute(AddMessages(session_id="c", messages=(asked, said))) is True
        print_line(str(number))
    store.close()


def print_line(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
