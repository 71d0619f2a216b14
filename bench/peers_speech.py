"""A speech provider in real time: `python -m bench.peers_speech`, the part of OpenAI's API that streams PCM.

The text of a request is its number of pieces: 4096 bytes each, at 24 kHz one every 85 milliseconds. The first eight
bytes of a piece are the time of its write in nanoseconds. The provider is part of the load.
"""

from __future__ import annotations

import asyncio
import json
import time

from bench.peers import listen

__all__ = ["PIECE", "SECONDS"]

PIECE = 4_096  # bytes
SECONDS = PIECE / 2 / 24_000  # duration of a piece
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: audio/pcm\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
END = b"0\r\n\r\n"


async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request with the number of pieces that it names, one every `SECONDS`."""
    head = await reader.readuntil(b"\r\n\r\n")
    size = next(int(line[15:]) for line in head.lower().splitlines() if line.startswith(b"content-length:"))
    pieces = int(json.loads(await reader.readexactly(size))["input"])
    writer.write(HEAD)
    begun = time.monotonic()
    for number in range(pieces):
        await asyncio.sleep(max(0.0, begun + number * SECONDS - time.monotonic()))
        sound = time.monotonic_ns().to_bytes(8, "little") + bytes(PIECE - 8)
        writer.write(b"%x\r\n%s\r\n" % (PIECE, sound))
    writer.write(END)
    writer.close()


async def serve() -> None:
    """Serve until the process is ended."""
    server = await asyncio.start_server(speak, sock=listen())
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
