"""What is fuzzed, and the oracles. Each target takes bytes and raises when an oracle does not hold.

Common to all: only declared exceptions leave a parser, the chunking of the input makes no difference, and what was
understood and is written again is understood as the same.
"""

from __future__ import annotations

from fuzz.targets.call import call
from fuzz.targets.common import Target
from fuzz.targets.cores import core, relay
from fuzz.targets.frames import frames
from fuzz.targets.http1 import answer, chunks, http1
from fuzz.targets.http2 import answer2, http2
from fuzz.targets.lane import lane
from fuzz.targets.texts import envelope, multipart, qr, resp, sse
from fuzz.targets.voice import voice
from fuzz.targets.websocket import websocket

__all__ = ["TARGETS", "Target"]

TARGETS: dict[str, Target] = {
    "http1": http1,
    "answer": answer,
    "chunks": chunks,
    "lane": lane,
    "call": call,
    "http2": http2,
    "answer2": answer2,
    "websocket": websocket,
    "frames": frames,
    "multipart": multipart,
    "sse": sse,
    "resp": resp,
    "envelope": envelope,
    "qr": qr,
    "relay": relay,
    "core": core,
    "voice": voice,
}
