"""What an idle, authenticated phone costs in memory."""

from __future__ import annotations

import time
from contextlib import ExitStack

from bench.contestants import RELAYS, Contestant, running, wait_healthy
from bench.load import Phone, new_code
from bench.measure import Progress, Scale
from bench.report import Column, Row, Table

__all__ = ["memory_section"]

SETTLE = 0.5  # s in which the server finishes what the last phone began

COLUMNS = (
    Column("resident_mib", "resident MiB", 1),
    Column("per_phone_kib", "KiB per phone", 1),
)


def memory_section(scale: Scale, progress: Progress, *, relay: Contestant = RELAYS[0]) -> list[Table]:
    """Resident memory of a relay with more and more idle phones, each paired anew."""
    with ExitStack() as stack:
        server = stack.enter_context(running(relay))
        wait_healthy(server.address)
        # The first phone of all loads what every later one shares.
        stack.callback(Phone(server.address, "bench-phone-0", new_code(server.address)).close)
        time.sleep(SETTLE)
        empty = server.resident()
        rows = [Row("one phone", {"resident_mib": empty / 2**20})]
        count = 0
        for wanted in scale.phones:
            progress(f"memory: {wanted} phones")
            while count < wanted:
                count += 1
                phone = Phone(server.address, f"bench-phone-{count}", new_code(server.address))
                stack.callback(phone.close)
            time.sleep(SETTLE)
            resident = server.resident()
            values = {"resident_mib": resident / 2**20, "per_phone_kib": (resident - empty) / count / 1024}
            rows.append(Row(f"{count:,} more phones", values))
    notes = [
        "per phone: socket, WebSocket, and the paired session with its record in the memory store",
        "buffers that the kernel holds for a socket are not in it",
    ]
    return [Table("memory", f"Memory of idle phones ({relay.name})", COLUMNS, rows, notes)]
