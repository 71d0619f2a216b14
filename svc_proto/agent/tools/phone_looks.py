"""Looks at a phone's screen: numbered for references, and settled after an act.

An act names a node by the number of a look and the node's number in it. The node is then found again on the present
screen, or the act is refused.
"""

from __future__ import annotations

from collections import OrderedDict

from svc_proto.agent.tools.phone_result import body_of
from svc_proto.agent.tools.phone_screen import (
    PhoneScreen,
    ScreenRow,
    find_again,
    needs_description,
    parse_screen,
)
from svc_proto.agent.tools.phone_screen_text import describe_row, screen_head, screen_lines
from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.sync import gather
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.screen_node import ScreenNode
from svc_proto.service_clients.phone_control import PhoneControl

__all__ = ["SETTLE_LIMIT", "PhoneLooks"]

SETTLE_LIMIT = 1.5  # s after an act within which two looks in a row should be equal
SETTLE_PAUSE = 0.15  # s between two looks
MAX_LOOKS = 32  # looks that references can name; the oldest is dropped
FIRST_LOOKS = 800  # first numbers, from 100 on
GONE = "the screen {look} is too old, or unknown: look again with phone_screen, and use its numbers"


class PhoneLooks:
    """Screens that the model has read from the phones behind one link, each under the number of its look.

    A chat refers to its own looks only: what another chat has read is not in its history.
    """

    def __init__(self, link: PhoneControl, chat: str = "") -> None:
        self._link = link
        self._chat = chat  # id of the session whose looks these are; empty: no chat
        self._looks: OrderedDict[int, tuple[tuple[str, str], PhoneScreen]] = OrderedDict()  # by chat and phone

    def over(self, link: PhoneControl, chat: str) -> PhoneLooks:
        """Return the looks of a chat, which sends over another link to the same phones. All chats share the numbers."""
        other = PhoneLooks(link, chat)
        other._looks = self._looks
        return other

    def read(self, device: str) -> Flow[PhoneScreen]:
        """Return the screen of a phone. Raises `ToolError` if it cannot be read.

        States that the phone left out are requested from it, for a limited number of nodes.
        """
        members = {"device": device} if device else {}
        # Phones in use find no nodes without bounds (wire bridge 3.4).
        answer = yield from self._link.call("GET", "/screen", {**members, "include_bounds": True})
        body = body_of(answer)
        screen = parse_screen(body)
        unknown = needs_description(screen)
        if not unknown:
            return screen
        flows = [self._describe(node, members) for node in unknown]
        found = yield from gather(self._link.engine, flows)
        return parse_screen(
            body, {node.node_id: about for node, about in zip(unknown, found, strict=True) if about is not None}
        )

    def settle(self, device: str, before: PhoneScreen | None) -> Flow[tuple[PhoneScreen, bool]]:
        """Return the screen after an act, and whether the last two looks were equal.

        The screen is read until two looks in a row are equal and differ from `before`, if given, for at most
        `SETTLE_LIMIT` seconds or so.
        """
        engine = self._link.engine
        deadline = engine.now.mono + SETTLE_LIMIT
        seen = yield from self.read(device)
        while True:
            yield from sleep(engine, SETTLE_PAUSE)
            latest = yield from self.read(device)
            is_settled = latest.fingerprint == seen.fingerprint
            seen = latest
            is_changed = before is None or seen.fingerprint != before.fingerprint
            if (is_settled and is_changed) or engine.now.mono >= deadline:
                return seen, is_settled

    def show(
        self,
        device: str,
        screen: PhoneScreen,
        *,
        settled: bool = True,
        bounds: bool = False,
        rows: list[ScreenRow] | None = None,
    ) -> str:
        """Store a screen as a numbered look and return its text: all rows, or only `rows`."""
        number = next(reversed(self._looks)) + 1 if self._looks else self._first()
        self._looks[number] = ((self._chat, device), screen)
        while len(self._looks) > MAX_LOOKS:
            self._looks.popitem(last=False)
        head = screen_head(number, screen, settled=settled)
        if rows is not None:
            head = f"{head.replace('screen', 'found on screen', 1)}: {len(rows)}"
        return "\n".join([head, *screen_lines(screen, bounds=bounds, rows=rows)])

    def latest(self, device: str) -> tuple[int, PhoneScreen] | None:
        """Return number and screen of the newest look at a phone; None without one."""
        for number, (owner, screen) in reversed(self._looks.items()):
            if owner == (self._chat, device):
                return number, screen
        return None

    def screen_of(self, device: str, look: int | None) -> PhoneScreen | None:
        """Return the screen of a look by its number; without one, that of the newest look at the phone, or None.

        Raises `ToolError` if no stored look of this chat at this phone has the number.
        """
        if look is None:
            newest = self.latest(device)
            return None if newest is None else newest[1]
        if look not in self._looks or self._looks[look][0] != (self._chat, device):
            raise ToolError(GONE.format(look=look))
        return self._looks[look][1]

    def resolve(self, device: str, reference: str, look: int | None, now: PhoneScreen) -> ScreenRow:
        """Return the row on the screen `now` that a node's number in a look refers to.

        Without `look` the newest look at the phone is meant, or `now` if there is none. Raises `ToolError` if the node
        or its row is not there.
        """
        if look is None:
            number, then = self.latest(device) or (0, now)
        else:
            number, then = look, self.screen_of(device, look) or now
        row = then.row_of(reference)
        if row is None:
            raise ToolError(f"screen {number} has no node {reference[:40]}", self.show(device, now))
        return row if then is now else self.find(device, row, then, now, number)

    def find(self, device: str, row: ScreenRow, then: PhoneScreen, now: PhoneScreen, number: int = 0) -> ScreenRow:
        """Return the row of the screen `now` that is the same as `row` of the screen `then`.

        Raises `ToolError`, which names the row in its place, if there is none or it is ambiguous.
        """
        found = find_again(row, then, now)
        if found is None:
            there = now.row_at(*row.node.center)
            stands = "nothing" if there is None else describe_row(there)
            where = f" of screen {number}" if number else ""
            raise ToolError(
                f"the screen has changed: {describe_row(row)}{where} is not there, or cannot be told from others; "
                f"in its place stands {stands}. Nothing was done.",
                self.show(device, now),
            )
        return found

    def _first(self) -> int:
        return 100 + int.from_bytes(self._link.engine.entropy(2)) % FIRST_LOOKS

    def _describe(self, node: ScreenNode, members: dict[str, str]) -> Flow[JsonObject | None]:
        answer = yield from self._link.call("POST", "/describe_node", {**members, "nodeId": node.node_id})
        body = JsonObject.of(answer.body)
        return body if answer.status < 400 and "checkable" in body else None
