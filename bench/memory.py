"""Memory of an idle, authenticated phone, on each loop."""

from __future__ import annotations

import time
from contextlib import ExitStack

from bench.contestants import RELAYS, Contestant, Server, available, missing, room_for, running, wait_healthy
from bench.load import Phone, new_code
from bench.measure import BenchError, Progress, Scale
from bench.report import Column, Row, Table

__all__ = ["memory_section"]

SETTLE = 0.5  # s in which the server finishes work for the last phone
WITHIN = 120.0  # s for the phones of one relay; further phones are left out


def memory_section(scale: Scale, progress: Progress, *, relays: tuple[Contestant, ...] = RELAYS) -> list[Table]:
    """Return the table of the resident memory of each relay with more and more idle phones, each newly paired."""
    notes = [
        "kB: 1,000 bytes for each phone after the first: its socket, WebSocket, session and stored record",
        "buffers that the kernel holds for a socket are not in it",
        *missing(relays),
    ]
    with room_for(max(scale.phones)) as most:
        rows = [Row(one.name, _grow(one, scale, progress, most, notes)) for one in available(relays)]
    columns = [Column("one_mib", "one phone, MiB"), Column("all_mib", "all of them, MiB")]
    columns[1:1] = [Column(_key(count), f"{count:,} more, kB each", 2) for count in scale.phones]
    return [Table("memory", "Resident memory with idle phones", columns, rows, notes)]


def _grow(relay: Contestant, scale: Scale, progress: Progress, most: int, notes: list[str]) -> dict[str, float]:
    with ExitStack() as stack:
        server = stack.enter_context(running(relay))
        wait_healthy(server.address)
        # The first phone loads code and data that all later ones share.
        _connect(server, 0, stack)
        empty = _resident(server)
        values = {"one_mib": empty / 2**20}
        deadline, count = time.monotonic() + WITHIN, 0
        for wanted in scale.phones:
            if wanted > most:
                notes.append(f"left out: {wanted:,} phones, since there are descriptors for {most:,}")
                break
            progress(f"memory: {wanted:,} phones, {relay.name}")
            while count < wanted and time.monotonic() < deadline:
                count += 1
                _connect(server, count, stack)
            if count < wanted:
                notes.append(f"left out: {wanted:,} phones of {relay.name}, which took more than {WITHIN:g} s")
                break
            resident = _resident(server)
            values[_key(count)] = (resident - empty) / count / 1000
            values["all_mib"] = resident / 2**20
    return values


def _key(phones: int) -> str:
    return f"kb_at_{phones}"


def _connect(server: Server, number: int, stack: ExitStack) -> None:
    try:
        phone = Phone(server.address, f"bench-phone-{number}", new_code(server.address))
    except OSError as error:
        raise BenchError(f"phone {number}: {error}") from error
    stack.callback(phone.close)


def _resident(server: Server) -> int:
    time.sleep(SETTLE)
    return server.resident()
