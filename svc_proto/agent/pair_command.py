"""Chat command `/svc-relay-pair` (spec "Pairing flow" 1): a pairing code and its QR, for the operator only.

The code is not stored with the chat, which every device with a key can read.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import cast

from svc_proto.agent.interface import AgentHost, EphemeralText, TextDelta, Turn, TurnOutcome
from svc_proto.basics.brand import BRANDS, Brand
from svc_proto.commands import Compute
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.schema.json_object import JsonObject, content_text
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.service_client import JSON, ServiceCallError

__all__ = ["PairCommand"]

COMMANDS = tuple(f"/{brand.scheme}-pair" for brand in BRANDS.values())
NOT_HERE = (
    "Pairing codes are for the operator at this host: say this in the dashboard or to `svc-relay chat` there, "
    "or run `svc pair`."
)
NOT_KEPT = "The code works once, within 10 minutes. It was shown here alone, and is not kept with the chat."
HALVES = {"00": " ", "01": "▄", "10": "▀", "11": "█"}  # two modules, one above the other


class PairCommand:
    """Handler of the pairing command. `url` is the relay's."""

    def __init__(self, engine: Engine, url: str, brand: Brand) -> None:
        self._engine = engine
        self._relay = RelayClient("the relay", url.rstrip("/"))
        self._brand = brand

    @staticmethod
    def matches(turn: Turn) -> bool:
        """Report whether a turn's prompt is the pairing command of any brand, in any case."""
        return content_text(turn.prompt).strip().lower() in COMMANDS

    def run(self, turn: Turn, host: AgentHost) -> Flow[TurnOutcome]:
        """Answer the pairing command with a new code, and its QR if that can be drawn, or with the reason why not."""
        if turn.operator is None:
            host.emit(TextDelta(NOT_HERE))
            return TurnOutcome()
        try:
            fields = (*turn.operator, JSON)
            answer = yield from self._relay.request(self._engine, "POST", "/pairing/mint", {}, fields=fields)
            made, why = answer.members, ""
        except ServiceCallError:
            made, why = JsonObject(), "it does not answer"
        code, qr, invite, relay = (made.get(name) for name in ("code", "qr_payload", "pairing_url", "relay_url"))
        if not (isinstance(code, str) and isinstance(qr, str)):
            why = why or made.text("error") or "it said nothing of use"
            host.emit(TextDelta(f"The relay makes no pairing code: {why}."))
            return TurnOutcome()
        rows = yield from run_operation(self._engine, Compute(self._engine.new_op(), "qr.rows", (qr,)))
        drawn = [] if not isinstance(rows, list) else ["```", *_drawn(cast("list[str]", rows)), "```", ""]
        words = f"For {self._brand.reader}; by hand: **{code}** at `{relay}`"
        host.emit(EphemeralText("\n".join([*drawn, words, "", f"`{invite}`", "", ""])))
        host.emit(TextDelta(NOT_KEPT))
        return TurnOutcome()


def _drawn(rows: Sequence[str]) -> list[str]:
    """Return text lines that draw rows of 0 and 1 (dark), two in each line; light modules and a margin are blocks."""
    width = len(rows[0]) + 4 if rows else 0
    light = "0" * width
    padded = [light, light, *(f"00{row}00" for row in rows), light, light]
    lines = []
    for upper, lower in zip_longest(padded[::2], padded[1::2], fillvalue=light):
        pairs = zip(upper, lower, strict=True)
        lines.append("".join(HALVES[f"{1 - int(one)}{1 - int(two)}"] for one, two in pairs))
    return lines
