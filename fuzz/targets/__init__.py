"""Fuzz targets and their oracles: each target takes bytes, and raises when an oracle fails."""

from fuzz.targets.common import Target
from fuzz.targets.cores import core, relay
from fuzz.targets.formats import envelope, multipart, qr, resp, sse
from fuzz.targets.http1 import answer, chunks, http1
from fuzz.targets.http1_client_fast_path import http1_client_fast_path
from fuzz.targets.http1_server_fast_path import http1_server_fast_path
from fuzz.targets.http2 import answer2, http2
from fuzz.targets.voice_sessions import voice
from fuzz.targets.websocket import websocket
from fuzz.targets.websocket_fast_path import websocket_fast_path

__all__ = ["TARGETS", "Target"]

TARGETS: dict[str, Target] = {
    "http1": http1, "answer": answer, "chunks": chunks, "fast_path": http1_server_fast_path,
    "call": http1_client_fast_path, "http2": http2, "answer2": answer2, "websocket": websocket,
    "frames": websocket_fast_path, "multipart": multipart, "sse": sse, "resp": resp, "envelope": envelope, "qr": qr,
    "relay": relay, "core": core, "voice": voice
}  # fmt: skip
