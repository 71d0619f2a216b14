"""Mutations of a seed: what a broken or hostile peer might send in its place."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

__all__ = ["chunked", "mutated"]

MOST = 8  # mutations of one input
TOKENS = (
    b"\r\n",
    b"\n",
    b"\x00",
    b"\xff",
    b": ",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"HTTP/1.1",
    b"HTTP/9.9",
    b'{"channel":"system","type":"auth"}',
    b"[" * 80,
    b"1e999",
    b"NaN",
    b"\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x88\x02\x03\xe8",
)


def mutated(seed: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """A changed copy of a seed; `others` are seeds to splice with."""
    data = bytearray(seed)
    for _ in range(rng.randint(1, MOST)):
        at = rng.randint(0, len(data))
        match rng.randrange(7):
            case 0 if data:
                data[at % len(data)] ^= 1 << rng.randrange(8)
            case 1:
                data[at:at] = rng.choice(TOKENS)
            case 2:
                del data[at : at + rng.randint(1, 16)]
            case 3:
                data[at:at] = data[at : at + rng.randint(1, 64)]
            case 4:
                data[at:at] = rng.randbytes(rng.randint(1, 8))
            case 5:
                other = rng.choice(others)
                data[at:] = other[rng.randint(0, len(other)) :]
            case _:
                data += rng.choice(others)
    return bytes(data)


def chunked(data: bytes, rng: Random) -> list[bytes]:
    """The same bytes in random pieces, none empty."""
    pieces: list[bytes] = []
    while data:
        size = rng.choice((1, 2, 7, 64, 1024, len(data)))
        pieces.append(data[:size])
        data = data[size:]
    return pieces
