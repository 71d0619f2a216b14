"""Tests of random sequences of requests to several kinds of stores, compared with a model in Python."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from runtimes.store.store_service import Store
from svc_proto.api.chat import store_requests
from svc_proto.api.chat.records import ChatPage, ChatSession, Content, Message, Usage
from tests.runtimes.store.chat_stores import EMBEDDED, execute, new_store
from tests.runtimes.store.postgresql_server import needs_postgresql

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
MESSAGE_IDS = st.sampled_from([f"m{number}" for number in range(6)] + ["b:1", "c:2"])
TIMES = st.floats(0.0, 2e9) | st.integers(0, 9).map(float)
WORDS = ("red", "Green", "BLUE", "bleu", "grün", "赤い")
TEXTS = st.lists(st.sampled_from([*WORDS, "-", " "]), max_size=4).map(" ".join) | st.text(max_size=90)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
PARTS = st.lists(
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS})
    | st.dictionaries(st.sampled_from(["type", "url", "more"]), JSON, max_size=3),
    max_size=3,
).map(tuple)
TITLES = st.none() | st.sampled_from(["Plan", "Plan #2", "Plan #3", "plan #2", "Plan 9", "%"])
COUNTS = st.integers(0, 2**40)
MESSAGES = st.builds(
    Message,
    id=MESSAGE_IDS,
    session_id=st.just(""),
    role=st.sampled_from(["user", "assistant", "tool", "system"]),
    content=TEXTS | PARTS,
    timestamp=TIMES,
    tool_calls=st.lists(st.dictionaries(st.text(max_size=3), JSON, max_size=2), max_size=2).map(tuple),
    tool_name=st.none() | st.just("screen"),
    finish_reason=st.none() | st.just("stop"),
    reasoning=st.none() | st.sampled_from(["", "because"]),
    usage=st.none() | st.builds(Usage, input_tokens=COUNTS, output_tokens=COUNTS),
)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "title": TITLES,
        "model": st.none() | st.just("m"),
        "pinned": st.booleans(),
        "archived": st.booleans(),
        "end_reason": st.none() | st.sampled_from(["one", "two"]),
        "ended_at": st.none() | TIMES,
    },
)


class Model:
    """Expected answers of a store for chats, in plain dictionaries."""

    def __init__(self) -> None:
        self.sessions: dict[str, ChatSession] = {}
        self.messages: dict[str, dict[str, Message]] = {}

    def create(self, session: ChatSession) -> bool:
        if session.id in self.sessions:
            return False
        self.sessions[session.id] = session
        self.messages[session.id] = {}
        return True

    def list(self, request: store_requests.ListChats) -> ChatPage:
        shown = [
            session
            for session in self.sessions.values()
            if request.source in (None, session.source)
            and (request.include_children or not session.is_child)
            and (request.include_archived or not session.archived)
        ]
        shown.sort(key=lambda session: (session.last_active, session.started_at, session.id), reverse=True)
        page = shown[request.offset : request.offset + request.limit]
        return ChatPage(sessions=tuple(page), total=len(shown))

    def update(self, session_id: str, changes: Mapping[str, Any], now: float) -> ChatSession | None:
        if session_id not in self.sessions:
            return None
        session = self.sessions[session_id]
        if session.end_reason is not None:
            changes = {name: value for name, value in changes.items() if not name.startswith("end")}
        self.sessions[session_id] = attrs.evolve(session, **changes, updated_at=now)
        return self.sessions[session_id]

    def delete(self, session_id: str) -> bool:
        if self.sessions.pop(session_id, None) is None:
            return False
        del self.messages[session_id]
        for child in list(self.sessions.values()):
            if child.parent_id == session_id and child.is_child:
                self.delete(child.id)
            elif child.parent_id == session_id:
                self.sessions[child.id] = attrs.evolve(child, parent_id=None)
        return True

    def fork(self, source_id: str, session: ChatSession, now: float) -> ChatSession | bool:
        source = self.sessions.get(source_id)
        if source is None:
            return True
        if not self.create(attrs.evolve(session, parent_id=source_id)):
            return False
        for place, message in enumerate(self.messages[source_id].values(), 1):
            name = f"{session.id}:{place}"
            self.messages[session.id][name] = attrs.evolve(message, id=name, session_id=session.id)
        self.count(session.id, max(source.last_active, session.last_active), session.updated_at)
        if source.end_reason is None:
            self.sessions[source_id] = attrs.evolve(source, ended_at=now, end_reason="branched", updated_at=now)
        return self.sessions[session.id]

    def add(self, session_id: str, messages: tuple[Message, ...]) -> bool:
        session = self.sessions.get(session_id)
        if session is None:
            return False
        for message in messages:
            self.messages[session_id][message.id] = attrs.evolve(message, session_id=session_id)
        times = [message.timestamp for message in messages]
        if times:
            self.count(session_id, max(session.last_active, *times), max(session.updated_at, *times))
        return True

    def count(self, session_id: str, last_active: float, updated_at: float) -> None:
        rows = self.messages[session_id].values()
        lines = [" ".join(words(row.content).split()) for row in rows if row.role == "user"]
        line = next(filter(None, lines), None)
        used = sum((row.usage for row in rows if row.usage is not None), Usage())
        self.sessions[session_id] = attrs.evolve(
            self.sessions[session_id],
            last_active=last_active,
            updated_at=updated_at,
            preview=line if line is None or len(line) <= 60 else line[:60] + "...",
            message_count=len(rows),
            tool_call_count=sum(len(row.tool_calls) for row in rows),
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
        )

    def window(self, request: store_requests.ListMessages) -> tuple[Message, ...] | None:
        if request.session_id not in self.sessions:
            return None
        rows = list(self.messages[request.session_id].values())
        if request.latest:
            rows.reverse()
        rows = rows[request.offset :][: request.limit]
        return tuple(reversed(rows) if request.latest else rows)


def words(content: Content) -> str:
    if isinstance(content, str):
        text = content
    else:
        text = "\n".join(part["text"] for part in content if isinstance(part.get("text"), str))  # type: ignore[misc]  # seen
    return text.replace("\0", "\ufffd")


class Stores(RuleBasedStateMachine):
    """State machine that sends the same requests to a store of each of `kinds` and to the model."""

    kinds: tuple[str, ...] = EMBEDDED

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.stores: list[Store] = [new_store(kind, self.folder) for kind in self.kinds]
        self.model = Model()

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        shutil.rmtree(self.folder)

    def check(self, request: Any, expected: object) -> None:
        for kind, store in zip(self.kinds, self.stores, strict=True):
            assert execute(store, request) == expected, kind

    @rule(
        name=NAMES,
        at=TIMES,
        title=TITLES,
        parent=st.none() | NAMES,
        is_child=st.booleans(),
        archived=st.booleans(),
        source=st.sampled_from(["api_server", "phone"]),
    )
    def create(self, name: str, at: float, **more: Any) -> None:
        session = ChatSession(
            id=name, started_at=at, updated_at=at, last_active=at, parent_id=more.pop("parent"), **more
        )
        self.check(store_requests.CreateChat(session=session), self.model.create(session))

    @rule(name=NAMES, messages=st.lists(MESSAGES, max_size=4).map(tuple))
    def add(self, name: str, messages: tuple[Message, ...]) -> None:
        self.check(store_requests.AddMessages(session_id=name, messages=messages), self.model.add(name, messages))

    @rule(name=NAMES, changes=CHANGES, now=TIMES)
    def update(self, name: str, changes: dict[str, object], now: float) -> None:
        self.check(store_requests.UpdateChat(id=name, changes=changes, now=now), self.model.update(name, changes, now))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.check(store_requests.DeleteChat(id=name), self.model.delete(name))

    @rule(source=NAMES, name=NAMES, at=TIMES, title=TITLES, now=TIMES)
    def fork(self, source: str, name: str, at: float, title: str | None, now: float) -> None:
        session = ChatSession(id=name, started_at=at, updated_at=at, last_active=at, title=title)
        request = store_requests.ForkChat(source=source, session=session, now=now)
        self.check(request, self.model.fork(source, session, now))

    @rule(
        limit=st.integers(0, 6),
        offset=st.integers(0, 6),
        source=st.none() | st.just("phone"),
        include_children=st.booleans(),
        include_archived=st.booleans(),
    )
    def list(self, **how: Any) -> None:
        request = store_requests.ListChats(**how)
        self.check(request, self.model.list(request))

    @rule(name=NAMES, limit=st.none() | st.integers(0, 5), offset=st.integers(0, 5), latest=st.booleans())
    def window(self, name: str, **how: Any) -> None:
        request = store_requests.ListMessages(session_id=name, **how)
        self.check(request, self.model.window(request))

    @rule(base=st.sampled_from(["Plan", "plan", "%", ""]))
    def titles(self, base: str) -> None:
        titles = [session.title for session in self.model.sessions.values() if session.title is not None]
        expected = sorted(title for title in titles if title == base or title.startswith(f"{base} #"))
        self.check(store_requests.ListTitles(base=base), tuple(expected))

    @rule(word=st.sampled_from(WORDS))
    def search(self, word: str) -> None:
        """Search for a word: each store finds at least the messages of the model that have it as a word of its own."""
        there = {
            (name, message.id)
            for name, rows in self.model.messages.items()
            for message in rows.values()
            if word in words(message.content).split()
        }
        for kind, store in zip(self.kinds, self.stores, strict=True):
            hits = execute(store, store_requests.SearchMessages(query=word, limit=1000))
            found = {(hit.session.id, hit.message.id) for hit in hits}
            assert there <= found, kind
            for hit in hits:
                rows = list(self.model.messages[hit.session.id].values())
                place = rows.index(hit.message)
                assert hit.context == (*rows[max(0, place - 1) : place], *rows[place + 1 : place + 2])
                assert hit.session == self.model.sessions[hit.session.id]

    @invariant()
    def all_is_there(self) -> None:
        for name, rows in self.model.messages.items():
            self.check(store_requests.GetChat(id=name), self.model.sessions[name])
            self.check(store_requests.ListMessages(session_id=name), tuple(rows.values()))
        request = store_requests.ListChats(limit=100, include_children=True, include_archived=True)
        self.check(request, self.model.list(request))


class WithServer(Stores):
    """State machine with a PostgreSQL store among the stores."""

    kinds = ("portable", "postgresql")


TestStores = Stores.TestCase
TestStores.settings = settings(max_examples=12, stateful_step_count=30)
TestServer = needs_postgresql(WithServer.TestCase)
TestServer.settings = settings(max_examples=4, stateful_step_count=30)
