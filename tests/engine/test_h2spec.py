"""The cases of h2spec 2.6.0 as playbooks; `h2spec.tsv` has their frames and expected answers in the form of `told`.

h2spec accepts several outcomes of some cases; here each has one. Sections are those of RFC 9113, or of RFC 7541 where
the text names it; h2spec names its cases after RFC 7540. The case about TLS is in `test_http2_preface`.
"""

import struct

import pytest
from h2.errors import ErrorCodes
from hpack import Decoder

from svc_proto.commands import CloseWrite, Command
from svc_proto.facts import Received, Sent
from svc_proto.wire.http2_frames import PREFACE, FrameType
from tests.engine.toy_service import open_book
from tests.support.playbook import CH, wire_bytes
from tests.support.tables import read_table

ACK = END_STREAM = 0x1
FRAMES = {  # that many cases have; HALF is a part of a header block
    "GET": "HEADERS 5 1 828644062f68656c6c6f410161",
    "POST": "HEADERS 4 1 838644052f6563686f410161",
    "HALF": "HEADERS 1 1 828644062f68656c6c6f410161",
    "PING": "PING 0 0 6832737065630000",
    "STARVED": "SETTINGS 0 0 000400000000",  # INITIAL_WINDOW_SIZE is 0
}
MANY = 101  # streams, one more than may be open
CASES = read_table("tests/engine/h2spec.tsv")


def frame(text: str) -> bytes:
    """Return the bytes of a frame of the table.

    Its type, flags, stream and payload are hexadecimal; in the payload `+` joins parts, and `*` repeats one.
    """
    kind, flags, stream, *payload = FRAMES.get(text, text).split()
    data = b""
    for part in "".join(payload).split("+"):
        piece, _, times = part.partition("*")
        data += bytes.fromhex(piece) * int(times or 1)
    number = FrameType[kind] if kind in FrameType.__members__ else int(kind, 16)
    return struct.pack(">I", len(data))[1:] + struct.pack(">BBI", number, int(flags, 16), int(stream, 16)) + data


def pieces(frames: str) -> list[bytes]:
    if frames == "STREAMS":
        post = frame("POST")
        return [b"".join(post[:5] + struct.pack(">I", 2 * n + 1) + post[9:] for n in range(MANY))]
    return [frame(text) for text in frames.split("; ") if text]


def told(commands: list[Command]) -> str:
    """Return what a server sends, as text: responses (`…`: incomplete), resets, pongs, and GOAWAY or else the FIN.

    Settings and window updates are left out.
    """
    raw, decoder = wire_bytes(commands), Decoder()
    said: list[str] = []
    answers: dict[int, list[str]] = {}
    while raw:
        size, kind, flags, stream = int.from_bytes(raw[:3], "big"), raw[3], raw[4], int.from_bytes(raw[5:9], "big")
        payload, raw = raw[9 : 9 + size], raw[9 + size :]
        if kind == FrameType.HEADERS:
            answers[stream] = [f"{stream}: {dict(decoder.decode(payload, raw=True))[b':status'].decode()}", "", "…"]
            said.append(str(stream))
        elif kind == FrameType.DATA:
            answers[stream][1] = f"{answers[stream][1] or ' '}{payload.decode()}".rstrip()
        elif kind == FrameType.RST_STREAM:
            said.append(f"{stream}: {ErrorCodes(int.from_bytes(payload, 'big')).name}")
        elif kind == FrameType.GOAWAY:
            said.append(f"GOAWAY {ErrorCodes(int.from_bytes(payload[4:8], 'big')).name}")
        elif kind == FrameType.PING:
            assert (flags, payload) in [(ACK, b"h2spec\0\0"), (ACK, bytes(8))]
            said.append("pong")
        if kind in (FrameType.HEADERS, FrameType.DATA) and flags & END_STREAM:
            answers[stream][2] = ""
    ended, goaway = CloseWrite(CH) in commands, any(word.startswith("GOAWAY") for word in said)
    assert ended or not goaway
    words = ["".join(answers[int(word)]) if word.isdigit() else word for word in said]
    return ", ".join([*words, "FIN"] if ended and not goaway else words)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['section']}: {case['case']}".replace(" ", "-"))
def test_a_case(case: dict[str, str]) -> None:
    book = open_book()
    commands: list[Command] = []
    for step in (PREFACE + frame("SETTINGS 0 0"), frame("SETTINGS 1 0"), *pieces(case["frames"])):
        said = (book >> Received(CH, step)).drain_commands()
        commands += said
        while (written := len(wire_bytes(said))) and CloseWrite(CH) not in said:
            said = (book >> Sent(CH, written)).drain_commands()
            commands += said
    assert told(commands) == case["expected"]


def test_how_many_cases_there_are() -> None:
    assert len({(case["section"], case["case"]) for case in CASES}) == len(CASES)
    assert len(CASES) == 146  # and one about TLS
