"""A small PNG of the screen, one tenth of the real size, with a rectangle per interesting node (PNG, third edition)."""

import struct
import zlib
from collections.abc import Sequence

from clients.phone.emulator.view_tree import HEIGHT, WIDTH, Bounds, ViewNode, Window, bounding_box, traverse

__all__ = ["draw"]

SCALE = 10  # screen pixels to one picture pixel
SIGNATURE = b"\x89PNG\r\n\x1a\n"
BLACK, PAPER, BAR, TEXT, CONTROL, FIELD, SWITCH, EDGE = range(8)
PALETTE = bytes.fromhex("101014 f4f4f6 d8dae0 60646c 2f6fde ffffff 2fa36b b4b8c0".replace(" ", ""))


def draw(windows: Sequence[Window], *, screen_on: bool = True) -> bytes:
    """Return a picture of the windows as a PNG file; black when the display is off."""
    size = bounding_box(windows) if windows else Bounds(0, 0, WIDTH, HEIGHT)
    width, height = size.width // SCALE, size.height // SCALE
    rows = [bytearray([BLACK]) * width for _ in range(height)]
    if screen_on:
        for window in reversed(windows):  # draw the topmost last
            _fill(rows, window.root.bounds, PAPER)
            for seen in traverse((window,)):
                if seen.node_id is not None:
                    _paint(rows, seen.node)
    raw = b"".join(b"\x00" + bytes(row) for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", PALETTE), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _paint(rows: list[bytearray], node: ViewNode) -> None:
    inner = Bounds(
        node.bounds.left + SCALE, node.bounds.top + SCALE, node.bounds.right - SCALE, node.bounds.bottom - SCALE
    )
    if node.editable:
        _fill(rows, node.bounds, EDGE)
        _fill(rows, inner, FIELD)
    elif node.checked is not None:
        _fill(rows, node.bounds, SWITCH if node.checked else EDGE)
    elif node.scrollable:
        _fill(rows, node.bounds, FIELD)
    elif node.children:
        _fill(rows, inner, BAR)
    elif node.clickable:
        _fill(rows, inner, CONTROL)
    else:  # a line of text, thinner than its box and as long as its text
        middle = node.bounds.center[1]
        end = min(node.bounds.right, node.bounds.left + 2 * SCALE * len(node.text or node.description or ""))
        _fill(rows, Bounds(node.bounds.left, middle - 2 * SCALE, end, middle + 2 * SCALE), TEXT)


def _fill(rows: list[bytearray], bounds: Bounds, colour: int) -> None:
    area = bounds.clip(Bounds(0, 0, len(rows[0]) * SCALE, len(rows) * SCALE))
    left, right = area.left // SCALE, area.right // SCALE
    if right <= left:
        return
    for y in range(area.top // SCALE, area.bottom // SCALE):
        rows[y][left:right] = bytes([colour]) * (right - left)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
