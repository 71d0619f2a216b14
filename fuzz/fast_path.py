"""`python -m fuzz.fast_path --scripts 100000`: fast paths against reference implementations on nearly plain traffic.

Each script is a seed for three comparisons: requests to a server, a response to a client, and frames of a WebSocket,
split anywhere. Most are plain or one change away from that, with our own events in between. The fuzz targets
`fast_path`, `call` and `frames` compare the two implementations; this program adds inputs that only a grammar finds.
"""

from __future__ import annotations

import multiprocessing
import re
import struct
import sys
import time
import zlib
from random import Random

import click

from fuzz.targets.http1_client_fast_path import compare_calls
from fuzz.targets.http1_server_fast_path import LIMITS, compare
from fuzz.targets.websocket import CLIENT, DEFLATE
from fuzz.targets.websocket_fast_path import compare_frames

BATCH = 500  # scripts for one process at a time
METHODS = (b"GET", b"GET", b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS")
ODD_METHODS = (b"get", b"CONNECT", b"TRACE", b"G\x00T", b"PRI", b"GE T")
TARGETS = (b"/", b"/health", b"/a/b?c=d&e", b"//x", b"/%zz", b"/a#b", b"/~!$&'()*+,;=:@[]{}|\\^`\"<>")
ODD_TARGETS = (b"*", b"a", b"http://h/p", b"", b"/\x80", b"/a b", b"/\t", b"http://u@h/")
HOSTS = (b"a", b"127.0.0.1:8767", b"localhost", b"x.y:1", b"a:0", b"a:")
ODD_HOSTS = (
    b"[1.2.3.4]", b"[::1]", b"[::1]:80", b":1", b"a,b", b"u@h", b"a/b", b"a:65536", b"a:99999", b"", b" ", b"\xff"
)  # fmt: skip
FIELDS = (
    b"User-Agent: curl/8.5.0", b"Accept: */*", b"Connection: keep-alive", b"connection: Keep-Alive",
    b"Connection: close", b"X-A: a b  c", b"authorization: Bearer abc", b"Cookie: a=b; c=d", b"Origin: http://a"
)  # fmt: skip
ODD_FIELDS = (
    b"Connection: CLOSE", b"Connection: close, x", b"Connection: keep-alive, x",
    b"Connection: Upgrade\r\nUpgrade: websocket", b"Upgrade: h2c", b"Expect: 100-continue", b"Expect: x",
    b"TE: trailers", b"Trailer: x", b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip", b"Content-Length: 3",
    b"Content-Length: 03", b"Content-Length: +3", b"Content-Length: 3, 3", b"Content-Length: 3 ",
    b"Content-Length: 99999999999999999999", b"Host: b", b"X-A:b", b"X-A:  b", b"X-A: b ", b"X-A: \tb", b"X-A: b\tc",
    b"X-A: ", b"X-A:", b"X A: b", b"X-A : b", b"X-A", b": b", b"X-A: \xe9", b"X-A: b\rc", b"X-A: b\nY: c",
    b"X-A: b\r\n c", b"X-A: \x00", b"X-A: \x7f", b"X-A: " + b"l" * 500, b"X-\xe9: b", b"(X): b"
)  # fmt: skip
UPGRADE = (
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
)
VERSIONS = (b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"http/1.1", b"HTTP/1.1 ", b"")
FIRSTS = (0x81, 0x81, 0x81, 0x82, 0x82, 0x89, 0x8A)  # first bytes of plain frames
ODD_FIRSTS = (0x01, 0x02, 0x00, 0x80, 0x80, 0x88, 0x09, 0x83, 0x8B, 0xA1, 0x91, 0xC1, 0xC9, 0xC0)
SIZES = (0, 1, 3, 5, 20, 124, 125, 126, 127, 300, 301, 1000)
LARGE = (65_535, 65_536, 65_546, 65_547)
TEXTS = ("abcd", "h\u00e9", "\u4e16", "\U0001f600")
STATUS_LINES = (
    b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK", b"HTTP/1.1 404 Not Found", b"HTTP/1.1 599 ", b"HTTP/1.1 302 a b"
)  # fmt: skip
ODD_STATUS_LINES = (
    b"HTTP/1.1 200", b"HTTP/1.0 200 OK", b"HTTP/1.1 204 No Content", b"HTTP/1.1 304 x", b"HTTP/1.1 101 x",
    b"HTTP/1.1 999 x", b"HTTP/1.1 1000 x", b"HTTP/1.1  200 OK", b"HTTP/1.1 200 \xff", b"HTTP/1.1 200 a\tb",
    b"http/1.1 200 OK", b"HTTP/2 200 OK"
)  # fmt: skip
ANSWER_FIELDS = (
    b"Date: Sun, 06 Nov 1994 08:49:37 GMT", b"content-type: text/event-stream", b"Connection: close",
    b"Server: a/1 (b)", b"Set-Cookie: a=b; c"
)  # fmt: skip
ENDS = (*(b"0\r\n\r\n",) * 3, b"0\r\nx: y\r\n\r\n", b"00\r\n\r\n", b"0;a\r\n\r\n", b"")  # of a chunked body
BODIES = (b"abc", b"{}", b"x" * 50, b"\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n")

EXAMPLES = """
\b
Examples:
  python -m fuzz.fast_path --scripts 100000
  python -m fuzz.fast_path --scripts 5000000 --first 1000000
  python -m fuzz.fast_path --script 4711
"""


def traffic(rng: Random) -> bytes:
    """Return random bytes that an HTTP client sends on one connection: requests, mostly plain."""
    if rng.random() < 0.4:
        return _one_flaw(rng)
    odd = rng.choice((0.0, 0.0, 0.03, 0.15))  # frequency of deviations
    pieces = [_request(rng, odd) for _ in range(rng.choice((1, 1, 2, 3)))]
    for at in range(1, len(pieces)):
        if rng.random() < 0.5:  # equal fields, mostly with an equal body
            pieces[at] = b"\r\n".join((pieces[at].partition(b"\r\n")[0], pieces[at - 1].partition(b"\r\n")[2]))
            pieces[at] += b"x" * (rng.random() < odd)
    if rng.random() < odd:
        pieces.insert(rng.randrange(len(pieces) + 1), rng.choice((b"\r\n", b"\r", b"\n", b"x", b"\x81\x80abcd")))
    data = b"".join(pieces)
    return data[: rng.randrange(len(data) + 1)] if rng.random() < odd else data


def _one_flaw(rng: Random) -> bytes:
    requests = [_request(rng, 0.0) for _ in range(rng.choice((1, 2, 3)))]
    at = rng.randrange(len(requests))
    first, end, rest = requests[at].partition(b"\r\n")
    kind = rng.random()
    if kind < 0.5:
        rest = rng.choice(ODD_FIELDS) + b"\r\n" + rest
    elif kind < 0.7:
        rest = re.sub(rb"Host: [^\r]*", lambda _: b"Host: " + rng.choice(ODD_HOSTS), rest, count=1)
    elif kind < 0.85:
        head = len(first) + 2 + rest.index(b"\r\n\r\n") + 4
        rest = b"P: " + b"p" * (LIMITS.max_head - head - 5 + rng.choice((-1, 0, 1))) + b"\r\n" + rest
    else:
        fields = rest[: rest.index(b"\r\n\r\n")].count(b"\r\n") + 1
        missing = LIMITS.max_fields - fields + rng.choice((0, 1))
        rest = b"".join(b"F%d: f\r\n" % n for n in range(missing)) + rest
    requests[at] = first + end + rest
    return b"".join(requests)


def compare_server(seed: int) -> int:
    """Compare the server sides on one connection; return the number of responses that the fast path sent alone."""
    rng = Random(seed)
    return compare(traffic(rng), rng)


def compare_client(seed: int) -> int:
    """Compare the client sides on one call; return whether the fast path handled the call alone."""
    rng = Random(seed)
    return compare_calls(_response(rng), rng)


def compare_websocket(seed: int) -> int:
    """Compare one WebSocket; return the number of messages received."""
    rng = Random(seed)
    bits = rng.randrange(32)
    return compare_frames(bits, conversation(rng, bits), rng)


def conversation(rng: Random, bits: int) -> list[bytes]:
    """Return random frames that a peer sends on one WebSocket."""
    odd = rng.choice((0.0, 0.0, 0.03, 0.15))
    packer = zlib.compressobj(wbits=-9)
    frames = [_frame(rng, bits, odd, packer) for _ in range(rng.choice((1, 2, 4, 8)))]
    if rng.random() < odd:
        frames[-1] = frames[-1][: rng.randrange(len(frames[-1]) + 1)]
    return frames


def _frame(rng: Random, bits: int, odd: float, packer: zlib._Compress) -> bytes:
    first = rng.choice(ODD_FIRSTS if rng.random() < odd else FIRSTS)
    size = rng.choice((0, 1, 5, 124, 125) if first & 8 else LARGE if rng.random() < 0.03 else SIZES)
    payload = rng.choice(TEXTS).encode() * (size // 4 + 1) if first & 15 == 1 else rng.randbytes(size)
    payload = payload[: 125 if first & 8 and rng.random() > odd else None]
    if rng.random() < odd:
        payload += rng.choice((b"\xff", b"\xed\xa0\x80", b"\xe4", b"\xc0\x80"))
    if bits & DEFLATE and not first & 8 and rng.random() < 0.3:
        first |= 0x40
        payload = (packer.compress(payload) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
    shape = rng.choice((0, 126, 127)) if rng.random() < odd else 0
    n = len(payload) if rng.random() > odd / 4 else rng.choice((1 << 63, 1 << 62, 70_000, 301))
    if n < 126 and not shape:
        head = bytes([n])
    elif n < 65_536 and shape != 127:
        head = b"\x7e" + struct.pack("!H", n)
    else:
        head = b"\x7f" + struct.pack("!Q", n)
    if bool(bits & CLIENT) is not (rng.random() < odd / 3):
        return bytes([first]) + head + payload
    key = rng.randbytes(4)
    size, mask = len(payload), key * (len(payload) // 4 + 1)
    masked = int.from_bytes(payload, "big") ^ int.from_bytes(mask[:size], "big")
    return bytes([first, head[0] | 0x80]) + head[1:] + key + masked.to_bytes(size, "big")


def _request(rng: Random, odd: float) -> bytes:
    def pick(usual: tuple[bytes, ...], unusual: tuple[bytes, ...]) -> bytes:
        return rng.choice(unusual if rng.random() < odd else usual)

    method = pick(METHODS, ODD_METHODS)
    fields = [b"Host: " + pick(HOSTS, ODD_HOSTS)]
    fields += rng.sample(FIELDS, rng.choice((0, 1, 2, 4)))
    body = rng.choice(BODIES) if rng.random() < (0.7 if method in (b"POST", b"PUT", b"PATCH") else 0.05) else b""
    if body and rng.random() < odd:
        fields.append(b"Transfer-Encoding: chunked")
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    elif body or rng.random() < 0.1:
        fields.append(b"Content-Length: %d" % (len(body) + (rng.random() < odd)))
    while rng.random() < odd * 2:
        fields.append(UPGRADE if rng.random() < 0.2 else rng.choice(ODD_FIELDS))
    rng.shuffle(fields)
    if rng.random() < odd / 2:
        fields.pop()
    first = b"%b %b %b" % (method, pick(TARGETS, ODD_TARGETS), pick((b"HTTP/1.1",), VERSIONS))
    end = b"\n" if rng.random() < odd / 3 else b"\r\n"
    return b"".join((first, end, *(field + b"\r\n" for field in fields), b"\r\n", body))


def _response(rng: Random) -> bytes:
    odd = rng.choice((0.0, 0.0, 0.1, 0.3))
    body = rng.choice((*BODIES, b"", b"data: {}\n\n" * rng.randrange(9)))
    fields = rng.sample(ANSWER_FIELDS, rng.choice((0, 1, 3)))
    if rng.random() < 0.6:
        fields.append(b"Transfer-Encoding: chunked")
        end = rng.choice(ENDS)
        cuts = [body[at : at + 9] for at in range(0, len(body), 9)]
        line = b"%x;a=b" if rng.random() < odd else b"%x"
        body = b"".join(line % len(cut) + b"\r\n" + cut + b"\r\n" for cut in cuts) + end
    elif rng.random() < 0.9:
        fields.append(b"Content-Length: %d" % (len(body) + (rng.random() < odd) - (rng.random() < odd)))
    while rng.random() < odd:
        fields.append(rng.choice(ODD_FIELDS))
    rng.shuffle(fields)
    first = rng.choice(ODD_STATUS_LINES) if rng.random() < odd else rng.choice(STATUS_LINES)
    head = b"\r\n".join((first, *fields, b"", b""))
    if rng.random() < odd:
        head = rng.choice((b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 x\r\na: b\r\n\r\n", b"\r\n")) + head
    more = rng.choice((b"x", head, b"\r\n")) if rng.random() < odd else b""
    return head + body + more


def _run_batch(first: int) -> tuple[int, int, str]:
    alone = 0
    for seed in range(first, first + BATCH):
        # Also where the reference implementation refuses an input that the fast path accepts.
        try:
            alone += compare_server(seed) + compare_websocket(seed) + compare_client(seed)
        except Exception as error:
            return seed - first + 1, alone, f"script {seed}: {error!r}"
    return BATCH, alone, ""


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--scripts",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    help="Number of scripts, approximately.",
)
@click.option("--first", type=int, default=0, show_default=True, help="Number of the first script.")
@click.option("--script", type=int, default=None, help="Run this script alone and raise its failure.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes; one for each core by default.")
def main(scripts: int, first: int, script: int | None, jobs: int | None) -> None:
    """Compare fast paths with reference implementations. Exit code 1 when they differ."""
    if script is not None:
        print(f"holds; {compare_server(script) + compare_websocket(script) + compare_client(script)} messages")
        return
    began = time.monotonic()
    played = alone = 0
    found = list[str]()
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for n, messages, problem in pool.imap_unordered(_run_batch, range(first, first + scripts, BATCH)):
            played += n
            alone += messages
            found += [problem] if problem else []
    print(f"{played:,} scripts in {time.monotonic() - began:,.0f} s, {alone:,} messages")
    for problem in found:
        print(problem, file=sys.stderr)
    if found:
        print("replay: python -m fuzz.fast_path --script N", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
