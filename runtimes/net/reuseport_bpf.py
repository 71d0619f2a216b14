"""Which of several processes that listen on one address gets a connection: the same one for each address it comes from.

A client's connections belong together (a voice socket and its session, say), so they must not be spread at random.
The kernel asks a small program (classic BPF) for the place of the listener in the order in which they began to listen.
Where there is none at that place, since a process has died, it chooses by address and port as it would by itself.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import sys

__all__ = ["attach_source_steering"]

ATTACH = 51  # SO_ATTACH_REUSEPORT_CBPF, asm-generic/socket.h
NETWORK = 0x1_0000_0000 - 0x10_0000  # SKF_NET_OFF, linux/filter.h: offsets from the network header
IPV4_SOURCE, IPV6_SOURCE = NETWORK + 12, NETWORK + 8  # RFC 791 section 3.1, RFC 8200 section 3
SPREAD = 0x9E37_79B1  # a prime near 2^32 / golden ratio: neighbours are spread, too
BYTE, WORD, JUMP_IF, JUMP = 0x30, 0x20, 0x15, 0x05  # opcodes, linux/bpf_common.h: LD B ABS, LD W ABS, JEQ K, JA
RIGHT, TIMES, MODULO, XOR, TO_X, ANSWER = 0x74, 0x24, 0x94, 0xAC, 0x07, 0x16  # RSH K, MUL K, MOD K, XOR X, TAX, RET A


def attach_source_steering(sock: socket.socket, processes: int) -> bool:
    """Have the connections to a shared, listening socket go by their source; False where the system cannot.

    Of IPv6 the first half counts: the rest of it changes with the day (RFC 8981).
    """
    if sys.platform != "linux":
        return False
    program = [
        (BYTE, 0, 0, NETWORK),
        (RIGHT, 0, 0, 4),  # the version
        (JUMP_IF, 2, 0, 6),
        (WORD, 0, 0, IPV4_SOURCE),
        (JUMP, 0, 0, 4),
        (WORD, 0, 0, IPV6_SOURCE),
        (TO_X, 0, 0, 0),
        (WORD, 0, 0, IPV6_SOURCE + 4),
        (XOR, 0, 0, 0),
        (TIMES, 0, 0, SPREAD),
        (RIGHT, 0, 0, 16),
        (MODULO, 0, 0, processes),
        (ANSWER, 0, 0, 0),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    try:
        sock.setsockopt(socket.SOL_SOCKET, ATTACH, struct.pack("HP", len(program), ctypes.addressof(code)))
    except OSError:
        return False
    return True
