"""Steering of connections to one of several listening processes by source address, with SO_REUSEPORT.

The connections of one client belong together (a voice socket and its session, for example), so all go to one process. A
classic BPF program in the kernel computes the listener's index, in the order in which they began to listen. Where no
listener has that index, because a process has died, the kernel chooses by address and port.
"""

import ctypes
import socket
import struct
import sys

__all__ = ["attach_source_steering"]

ATTACH = 51  # SO_ATTACH_REUSEPORT_CBPF, asm-generic/socket.h
NETWORK = 0x1_0000_0000 - 0x10_0000  # SKF_NET_OFF, linux/filter.h: offsets from the network header
IPV4_SOURCE, IPV6_SOURCE = NETWORK + 12, NETWORK + 8  # RFC 791 section 3.1, RFC 8200 section 3
SPREAD = 0x9E37_79B1  # a prime near 2^32 / golden ratio, which spreads neighbouring addresses
BYTE, WORD, JUMP_IF, JUMP = 0x30, 0x20, 0x15, 0x05  # opcodes, linux/bpf_common.h: LD B ABS, LD W ABS, JEQ K, JA
RIGHT, TIMES, MODULO, XOR, TO_X, ANSWER = 0x74, 0x24, 0x94, 0xAC, 0x07, 0x16  # RSH K, MUL K, MOD K, XOR X, TAX, RET A


def attach_source_steering(sock: socket.socket, processes: int) -> bool:
    """Steer the connections to a shared listening socket by source; return False where the system cannot.

    Only the first half of an IPv6 address is used: the rest changes daily (RFC 8981).
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
