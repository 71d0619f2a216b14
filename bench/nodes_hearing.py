"""Cost of presence messages on a node: processor time for each message, and memory for each remote phone."""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from attrs import define

from bench.measure import BenchError, Progress
from bench.report import Column, Row, Table
from fuzz.cluster.deployment import ClusterDeployment
from runtimes.sim.store import CLUSTER_SECRET
from svc_proto.cluster.message_signatures import MessageSigner
from svc_proto.facts import Received
from svc_proto.relay.cluster.coordinator import ClusterCoordinator
from svc_proto.wire.resp import Push, encode_reply

__all__ = ["PHONES", "hearing_table"]

PHONES = (1_000, 10_000, 100_000)
AT_ONCE = 50  # messages in one read
PAGE = os.sysconf("SC_PAGE_SIZE")
OTHER = "00000000000000ff"  # the sending node
SIGNER = MessageSigner(CLUSTER_SECRET)
STATUS = {"device": {"name": "Pixel 9", "battery": 81, "screen_on": True}, "bridge": {"enabled": True}}
COLUMNS = (
    Column("came_us", "comes, µs", 1),
    Column("said_us", "says how it is, µs", 1),
    Column("left_us", "leaves, µs", 1),
    Column("bytes", "memory, bytes each", 0),
)
NOTES = (
    "One core in memory, and Redis's messages to it; each node of a service hears all of them.",
    "A phone says how it is when it comes, when something changes, and every thirty seconds.",
)


@define
class _Ear:
    """A node that receives presence messages, with an encoder of messages as another node sends them."""

    hear: Callable[[bytes], object]
    channel: bytes
    inbox: bytes  # the channel of the node alone
    sent: int = 0
    told: int = 0

    def prove(self) -> None:
        """Send the node a message on its own channel, so that it counts the sender's broadcasts from now on."""
        self.hear(self._encode(self.inbox, "proof", {}))

    def _encode(self, channel: bytes, word: str, body: Mapping[str, object]) -> bytes:
        self.sent += 1
        said = {"from": OTHER, "number": self.sent, "told": self.told, "word": word, "body": body}
        return encode_reply(Push([b"message", channel, SIGNER.sign(channel.decode(), json.dumps(said).encode())]))

    def tell(self, word: str, bodies: list[Mapping[str, object]]) -> float:
        """Deliver messages with these bodies to the node; return the processor seconds that it needs for them."""
        texts = []
        for body in bodies:
            self.told += 1
            texts.append(self._encode(self.channel, word, body))
        pieces = [b"".join(texts[n : n + AT_ONCE]) for n in range(0, len(texts), AT_ONCE)]
        begun = time.process_time()
        for piece in pieces:
            self.hear(piece)
        return time.process_time() - begun


def hearing_table(progress: Progress, *, phones: tuple[int, ...] = PHONES) -> Table:
    """Return the table of the cost of presence messages, with a row for each number of phones on other nodes."""
    rows = []
    for count in phones:
        progress(f"nodes: hears of {count:,} phones")
        rows.append(Row(f"{count:,} phones elsewhere", _heard(count)))
    return Table("hearing", "What a node hears of phones that others have", COLUMNS, rows, NOTES)


def _heard(count: int) -> dict[str, float]:
    world = ClusterDeployment(nodes=1)
    world.start()
    relay = world.relays[0]
    node = cast("ClusterCoordinator", relay.coordinator).node
    link = node.redis._link
    if link is None:
        raise BenchError("the node has not met its Redis")
    engine = relay.engine
    ear = _Ear(
        lambda data: engine.handle(Received(link.ch, data), engine.now),
        node.key("all").encode(),
        node.key("node", node.id).encode(),
    )
    ear.tell("hello", [{}])
    ear.prove()
    entries: list[Mapping[str, object]] = [_entry(number) for number in range(count)]
    gc.collect()
    before = _resident()
    came = ear.tell("came", entries)
    gc.collect()
    grown = _resident() - before
    if len(relay.phones.connected()) != count:
        raise BenchError(f"it knows of {len(relay.phones.connected()):,} phones, not of {count:,}")
    said = ear.tell("said", [{"socket": number, "status": STATUS} for number in range(1, count + 1)])
    left = ear.tell("left", [{"socket": number} for number in range(1, count + 1)])
    return {"came_us": came / count * 1e6, "said_us": said / count * 1e6, "left_us": left / count * 1e6,
            "bytes": grown / count}  # fmt: skip


def _entry(number: int) -> dict[str, object]:
    return {
        "socket": number + 1,
        "device_id": f"device-{number:08}",
        "name": f"Phone {number}",
        "surface": "android",
        "form_factor": "phone",
        "session_prefix": f"{number:08x}",
        "since": 1_700_000_000.0 + number / 1000,
        "status": STATUS,
        "age": 0.0,
    }


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE
