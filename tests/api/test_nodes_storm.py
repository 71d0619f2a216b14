"""Nodes that are killed, cut off and started again while people chat at all of them: what holds whatever happens.

- A session is at one node at a time, as far as nodes can know it.
- What a stream has told to be complete is stored, once, right behind what it answers.
- Nothing is answered twice, and when all is whole again each session can be gone on with at each node.
"""

from __future__ import annotations

from random import Random
from typing import Any, cast

import pytest

from svc_proto.agent.contract import TextDelta
from svc_proto.api.shared_ownership import TAKE_WITHIN, SharedOwnership
from tests.api.nodes import NodesBook
from tests.api.puppet import Hand, text_told
from tests.api.world import ApiCall

SEEDS = range(20)
STEPS = 60


class Storm:
    """What happens, by a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.book = NodesBook(3)
        self.sessions = [self.book.session() for _ in range(2)]
        self.calls: list[tuple[str, str, ApiCall]] = []  # session, what was said, and its stream
        self.dead: set[int] = set()

    def run(self) -> None:
        deeds = (
            [self.chat] * 4
            + [self.answer] * 4
            + [self.wait] * 3
            + [self.stop, self.kill, self.cut, self.flush, self.mend]
        )
        for _ in range(STEPS):
            self.rng.choice(deeds)()
            self.check_owners()
        self.heal()
        self.check_rows()

    # --- deeds ---

    def _live(self) -> list[int]:
        return [n for n in range(3) if n not in self.dead]

    def _hands(self) -> list[Hand]:
        engines = [node.engine for node, _ in self.book.members if node.alive]
        hands = self.book.puppet.hands
        return [hand for hand in hands if not hand.cancelled and not hand.outcome and hand.book.engine in engines]

    def chat(self) -> None:
        session, said = self.rng.choice(self.sessions), f"message {len(self.calls)}"
        call = self.book.at(self.rng.choice(self._live())).chat(session, {"message": said})
        self.calls.append((session, said, call))

    def answer(self) -> None:
        if hands := self._hands():
            hand = self.rng.choice(hands)
            hand.tell(TextDelta(f"answer to {hand.turn.prompt}"))
            if self.rng.random() < 0.8:
                hand.finish()

    def wait(self) -> None:
        self.book.after(self.rng.choice([0.1, 0.7, 2.0, 6.0]))

    def stop(self) -> None:
        if hands := self._hands():
            run = self.rng.choice(hands).turn.run_id
            self.book.at(self.rng.choice(self._live())).call("POST", f"/v1/runs/{run}/stop")

    def kill(self) -> None:
        if self.dead:
            self.book.rise(self.dead.pop())
        else:
            n = self.rng.randrange(3)
            self.dead.add(n)
            self.book.apart.discard(self.book.members[n][0])
            self.book.kill(n)

    def cut(self) -> None:
        self.book.cut(self.rng.choice(self._live()))

    def flush(self) -> None:
        if self.rng.random() < 0.3:
            self.book.cut()

    def mend(self) -> None:
        self.book.mend()

    # --- what holds ---

    def check_owners(self) -> None:
        for session in self.sessions:
            owners = [
                n
                for n in self._live()
                if cast("SharedOwnership", self.book.members[n][1].ownership).leases.has(session)
            ]
            assert len(owners) <= 1, owners

    def heal(self) -> None:
        for n in list(self.dead):
            self.dead.discard(n)
            self.book.rise(n)
        self.book.mend()
        self.book.after(2 * TAKE_WITHIN)
        while hands := self._hands():
            for hand in hands:
                hand.tell(TextDelta(f"answer to {hand.turn.prompt}"))
                hand.finish()
            self.book.after(TAKE_WITHIN)
        for session in self.sessions:
            for n in range(3):
                said = f"at last {session} {n}"
                call = self.book.at(n).chat(session, {"message": said})
                self.calls.append((session, said, call))
                self.book.hand.tell(TextDelta("so it is"))
                self.book.hand.finish()
                assert told_completed(call)
        for _, api in self.book.members:
            assert len(cast("SharedOwnership", api.ownership).leases) == len(api.runs) == 0
        assert not [key for _, key in self.book.town.keys if b":lease:" in key]

    def check_rows(self) -> None:
        for session in self.sessions:
            rows = [(row["role"], row["content"]) for row in self.book.messages(session)]
            said = [content for role, content in rows if role == "user"]
            assert len(said) == len(set(said))
            for where, message, call in self.calls:
                if where == session and told_completed(call):
                    at = rows.index(("user", message))
                    assert rows[at + 1] == ("assistant", text_told(call))


def told_completed(call: ApiCall) -> bool:
    """Whether a stream has said that all of its turn is there."""
    done: list[dict[str, Any]] = [data for name, data in call.told() if name == "run.completed"]
    return bool(done) and done[0]["completed"]


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens(seed: int) -> None:
    Storm(seed).run()
