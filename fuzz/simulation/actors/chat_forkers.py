"""Clients that fork chats, and copies of chats: each copy has the messages until then, and a title of its own."""

from fuzz.simulation.actors.actor_context import StepHandler
from fuzz.simulation.actors.chat_clients import ChatClients
from fuzz.simulation.invariants import Invariant, violated
from fuzz.steps import ForkChat, Step
from tests.support.sim_http import RequestClient


class ChatForkers:
    """Handler of the steps in which clients fork chats; checks messages and titles of the copies."""

    def __init__(self, chats: ChatClients) -> None:
        self.chats = chats
        self.world = chats.world
        self._copies: dict[str, str] = {}  # ids of copies, oldest first: their titles
        self.handlers: dict[type[Step], StepHandler] = {ForkChat: self._fork}

    def _fork(self, step: ForkChat) -> None:
        chat = self.chats.pick(step.chat)
        if chat is None:
            return
        copies = list(self._copies)
        if copies and step.copy % 3 == 0:
            del self._copies[copies[0]]
            self.chats.request("DELETE", f"/api/sessions/{copies[0]}", None, lambda caller: self._request_fork(chat.id))
        else:
            self._request_fork(copies[-1] if copies and step.copy % 3 == 1 else chat.id)

    def _request_fork(self, source: str) -> None:
        before, there = self._message_texts(source), list(self._copies.values())

        def done(caller: RequestClient) -> None:
            if caller.status != 201:
                return
            self.world.count("chats forked")
            copy, title = str(caller.answer.json["id"]), str(caller.answer.json["title"])
            said, after = self._message_texts(copy), self._message_texts(source)
            if after and not (said[: len(before)] == before and said == after[: len(said)]):
                violated(Invariant.STORED, f"a copy holds {said!r:.150}, and its source {after!r:.150}")
            if title in there:
                violated(Invariant.STORED, f"two copies are called {title!r}")
            self._copies[copy] = title

        self.chats.request("POST", f"/api/sessions/{source}/fork", {}, done)

    def _message_texts(self, session_id: str) -> list[str]:
        return [str(row.content) for row in self.chats.rows(session_id)]
