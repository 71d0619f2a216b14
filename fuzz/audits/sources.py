"""Chats of every source, children and archived ones: which are listed, in which order, and what a deletion takes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any
from urllib.parse import quote

from attrs import evolve

from fuzz.audit import Audit
from fuzz.audits.lodge import Lodge
from svc_proto.api.rows import ChatSession, Message
from svc_proto.api.store import AddMessages, CreateChat

__all__ = ["SOURCES"]

CHATS = "/api/sessions"
ALL = ("api_server", "cli", "Cli", "telegram chat", "a%")
Members = dict[str, Any]


class _Sources:
    """A store in which others have chats, too: other programs, sub-agents, and whoever continues a chat."""

    def __init__(self, audit: Audit) -> None:
        self.lodge = Lodge(audit)
        self.there: dict[str, ChatSession] = {}
        self.said: dict[str, list[str]] = {}
        self.numbers = count()

    def steps(self) -> None:
        lodge = self.lodge
        for _ in range(lodge.rng.randint(5, 9)):
            self.make()
        kinds: tuple[Callable[[], None], ...] = (self.make, self.change, self.drop, self.look, self.look, self.look)
        for _ in range(lodge.rng.randint(8, 12)):
            lodge.pick(kinds)()
            self.look()
        self.find()
        lodge.leave()

    def make(self) -> None:
        """Some begin at one time, some were active at one time, and some are another's children."""
        lodge, rng = self.lodge, self.lodge.rng
        mine, now = lodge.chance(0.4), lodge.wall
        if mine:
            view = lodge.right(lodge.ask_api("POST", CHATS, {}), 201)
            chat = ChatSession(
                id=view["id"], started_at=view["started_at"], updated_at=0.0, last_active=view["last_active"]
            )
        else:
            started = now - rng.choice((50.0, 50.0, 1_000.0))
            parent = rng.choice([None, *self.there]) if self.there else None
            chat = ChatSession(
                id=f"{rng.choice('zaZ9')}{next(self.numbers)}",
                started_at=started,
                updated_at=started,
                last_active=started,
                source=rng.choice(ALL),
                parent_id=parent,
                is_child=parent is not None and rng.random() < 0.6,
                archived=rng.random() < 0.3,
            )
            lodge.home.store.apply(CreateChat(session=chat))
            if lodge.chance(0.6):
                word = lodge.word()
                when = started + rng.choice((0.0, 20.0, 20.0))
                row = Message(id=f"m-{word}", session_id=chat.id, role="user", content=word, timestamp=when)
                lodge.home.store.apply(AddMessages(session_id=chat.id, messages=(row,)))
                chat = evolve(chat, last_active=max(started, when))
                self.said[chat.id] = [word]
        self.there[chat.id] = chat

    def change(self) -> None:
        lodge = self.lodge
        if self.there:
            identity, archived = lodge.pick(self.there), lodge.chance(0.5)
            lodge.right(lodge.ask_api("PATCH", f"{CHATS}/{identity}", {"archived": archived}), 200)
            self.there[identity] = evolve(self.there[identity], archived=archived)

    def drop(self) -> None:
        """Its children go with it, and theirs; a copy stays, and is nobody's."""
        lodge = self.lodge
        if not self.there:
            return
        identity = lodge.pick([*self.there])
        lodge.right(lodge.ask_api("DELETE", f"{CHATS}/{identity}"), 204)
        doomed = [identity]
        while doomed:
            gone = doomed.pop()
            del self.there[gone]
            self.said.pop(gone, None)
            for other in [chat for chat in self.there.values() if chat.parent_id == gone]:
                if other.is_child:
                    doomed.append(other.id)
                else:
                    self.there[other.id] = evolve(other, parent_id=None)

    def look(self) -> None:
        lodge = self.lodge
        source = lodge.pick((None, None, *ALL, "a", "", "none"))
        children, archived = (lodge.pick(("", "1", "true", "0", "no", "Yes")) for _ in range(2))
        limit, offset = lodge.pick((None, 1, 2, 5)), lodge.pick((0, 0, 1, 3, 50))
        query = [f"source={quote(source)}"] if source is not None else []
        query += [f"include_children={children}"] if children else []
        query += [f"include_archived={archived}"] if archived else []
        query += [f"limit={limit}", f"offset={offset}"] if limit is not None else []
        body = lodge.right(lodge.ask_api("GET", f"{CHATS}?{'&'.join(query)}"), 200)
        yes = ("1", "true", "Yes")
        due = [
            chat
            for chat in self.there.values()
            if (not source or chat.source == source)
            and (not chat.is_child or children in yes)
            and (not chat.archived or archived in yes)
        ]
        due.sort(key=lambda chat: (chat.last_active, chat.started_at, chat.id), reverse=True)
        part = due if limit is None else due[offset : offset + limit]
        told = [(view["id"], view["source"], view["archived"], view["parent_session_id"]) for view in body["sessions"]]
        is_ = [(chat.id, chat.source, chat.archived, chat.parent_id) for chat in part]
        lodge.same(told, is_, f"the chats of {query}")
        start = offset if limit is not None else 0
        about = (body["total"], body["offset"], body["has_more"])
        lodge.same(about, (len(due), start, start + len(part) < len(due)), f"what is said of the list of {query}")

    def find(self) -> None:
        """Words are found wherever they were said."""
        lodge = self.lodge
        for identity, words in [*self.said.items()][:3]:
            hits = lodge.right(lodge.ask_api("GET", f"{CHATS}/search?q={words[0]}"), 200)["results"]
            told = [(hit["session_id"], hit["source"]) for hit in hits]
            lodge.same(told, [(identity, self.there[identity].source)], "where a word was said")


def sources(audit: Audit) -> None:
    """Chats of many sources are listed."""
    _Sources(audit).steps()


SOURCES = (sources,)
