"""Mutations of a seed, as a broken or hostile peer might send them; and dictionaries, in libFuzzer's format."""

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random

MOST = 8  # mutations of one input
_ENTRY = re.compile(r'\s*(?:\w+\s*=\s*)?"((?:[^"\\]|\\.)*)"\s*')
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|[\\\"])")


def mutate(seed: bytes, others: Sequence[bytes], rng: Random, words: Sequence[bytes] = ()) -> bytes:
    """Return a changed copy of a seed; `others` are seeds to splice with, `words` the words of a dictionary."""
    data = bytearray(seed)
    for _ in range(rng.randint(1, MOST)):
        at = rng.randint(0, len(data))
        match rng.randrange(7):
            case 0 if data:
                data[at % len(data)] ^= 1 << rng.randrange(8)
            case 1 if words:
                data[at:at] = rng.choice(words)
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


def split_randomly(data: bytes, rng: Random) -> list[bytes]:
    """Split bytes into random pieces, none empty."""
    pieces: list[bytes] = []
    while data:
        size = rng.choice((1, 2, 7, 64, 1024, len(data)))
        pieces.append(data[:size])
        data = data[size:]
    return pieces


def read_dictionary(path: Path) -> list[bytes]:
    r"""Return the words of a dictionary.

    The format is one word a line, in quotes, with `\xNN` for a byte, perhaps after a name and `=`. Empty lines and
    comments with `#` are skipped.
    Raise ValueError for any other line.
    """
    words: list[bytes] = []
    for line in path.read_text("ascii").splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            raise ValueError(f"{path.name}: no entry of a dictionary: {line}")
        words.append(_ESCAPE.sub(_unescaped, entry[1]).encode("latin-1"))
    return words


def _unescaped(found: re.Match[str]) -> str:
    word = found[1]
    return chr(int(word[1:], 16)) if word.startswith("x") else word
