"""Chats: every field of every chat and row, the order of lists, pages, searches, copies, and each event of a turn."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from attrs import define, field

from fuzz.audit import Audit
from fuzz.audits.heard import Events, Listener

__all__ = ["TALKS"]

FIELDS = (
    *("title", "pinned", "archived", "end_reason", "message_count", "parent_session_id", "preview", "source"),
    *("model", "tool_call_count", "input_tokens", "output_tokens", "has_system_prompt", "object", "id"),
)
PREVIEW, TITLE, CONTEXT = 60, 100, 200  # characters
CLOSE = 0.5  # s between what the relay and we take for a time


@define(eq=False)
class _Chat:
    """A chat as it has to be shown."""

    id: str
    started: float
    title: str | None = None
    model: str | None = None
    prompt: str | None = None
    updated: float = 0.0
    active: float = 0.0
    pinned: bool = False
    archived: bool = False
    end_reason: str | None = None
    ended: float | None = None
    parent: str | None = None
    preview: str | None = None
    rows: list[tuple[str, str]] = field(factory=list)
    calls: int = 0
    tokens: tuple[int, int] = (0, 0)

    def shown(self) -> dict[str, Any]:
        values = (self.title, self.pinned, self.archived, self.end_reason, len(self.rows), self.parent, self.preview)
        more = ("api_server", self.model, self.calls, *self.tokens, self.prompt is not None, "svc.session", self.id)
        return dict(zip(FIELDS, (*values, *more), strict=True))


class _Talks:
    """All chats, those of others as they were found."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.mine: list[_Chat] = []
        self.gone: list[str] = []
        body = audit.right(audit.ask_api("GET", "/api/sessions?include_archived=1&include_children=1"), 200)
        self.others = [view["id"] for view in body["sessions"]]
        self.shown = [view["id"] for view in audit.right(audit.ask_api("GET", "/api/sessions"), 200)["sessions"]]
        self.name = audit.right(audit.ask_api("GET", "/v1/models"), 200)["data"][0]["id"]

    def steps(self) -> None:
        audit = self.audit
        self.make()
        kinds = (self.make, *[self.change] * 2, *[self.turn] * 3, self.fork, self.drop, self.refuse)
        looks = (self.list_all, self.list_all, self.page, self.read, self.read, self.search, self.look)
        for _ in range(audit.rng.randint(8, 14)):
            if not self.mine:
                self.make()
            audit.pick(kinds)()
            if self.mine:
                audit.pick(looks)()
            audit.rest(audit.pick((0.0, 1.5)))
        if audit.chance(0.25) and self.mine:
            audit.restart("api", kill=audit.chance(0.5))
            for look in (self.list_all, self.read, self.look):
                look()

    # --- what is done ---

    def make(self) -> None:
        audit = self.audit
        word = audit.word()
        given, kept = audit.pick(
            ((f" {word}\t ", word), (None, None), ("x" * TITLE, "x" * TITLE), (f"{word}\u200b\n#", f"{word} #"))
        )
        body: dict[str, Any] = {} if given is None else {"title": given}
        model, prompt = audit.pick((None, None, "other")), audit.pick((None, None, f"Be {word}."))
        chosen = f"my-{audit.word()}" if audit.chance(0.3) else None
        body |= {} if model is None else {"model": model}
        body |= {} if prompt is None else {"system_prompt": prompt}
        body |= {} if chosen is None else {audit.pick(("id", "session_id")): chosen}
        view = audit.right(audit.ask_api("POST", "/api/sessions", body), 201)
        if chosen is not None:
            audit.same(view["id"], chosen, "an id that was chosen")
            audit.right(audit.ask_api("POST", "/api/sessions", {"id": chosen}), 409, "session_exists")
        now = audit.wall
        chat = _Chat(view["id"], now, kept, model or self.name, prompt, now, now)
        self.check(chat, view, "a chat that is made")
        audit.same({**view, "session": 0}, {**view["session"], "session": 0}, "a chat, flat and nested")
        self.mine.append(chat)

    def change(self) -> None:
        audit, chat = self.audit, self.audit.pick(self.mine)
        word, body = audit.word(), {}
        if audit.chance(0.5):
            given, chat.title = audit.pick(((word, word), (None, None), (" \u200b ", None)))
            body["title"] = given
        for name in ("pinned", "archived"):
            if audit.chance(0.4):
                body[name] = audit.pick((True, False, 1, 0))
                setattr(chat, name, bool(body[name]))
        if audit.chance(0.2):
            body["end_reason"] = word
            if chat.end_reason is None:
                chat.end_reason, chat.ended = word, audit.wall
        if body:
            chat.updated = audit.wall
        view = audit.right(audit.ask_api("PATCH", f"/api/sessions/{chat.id}", body), 200)
        self.check(chat, view, f"a chat that is changed by {body}")

    def turn(self) -> None:
        """Somebody says something, and is told the answer piece by piece, or in one."""
        audit, chat = self.audit, self.audit.pick(self.mine)
        manner = audit.pick(("plain", "plain", "notes")) if not chat.rows else "plain"
        text = f"{manner}: {audit.word()}" + audit.pick(("", "\nand more", f" {'w' * PREVIEW}"))
        system = audit.pick((None, None, f"Now {audit.word()}."))
        body: dict[str, Any] = {audit.pick(("message", "input")): text}
        body |= {} if system is None else {audit.pick(("system_message", "instructions")): system}
        heard = Listener(audit, text)
        history = [*chat.rows]
        if audit.chance(0.5):
            told = self.stream(chat, body, text)
        else:
            answer = audit.right(audit.ask_api("POST", f"/api/sessions/{chat.id}/chat", body), 200)
            told = answer["message"]["content"]
            flags = (answer["session_id"], answer["completed"], answer["partial"], answer["interrupted"])
            audit.same(flags, (chat.id, True, False, False), "an answer")
        heard.stop()
        self.learn(chat, text, told, heard, history, system)

    def learn(
        self,
        chat: _Chat,
        text: str,
        told: str,
        heard: Listener,
        history: list[tuple[str, str]],
        system: str | None,
    ) -> None:
        audit = self.audit
        audit.same(heard.said(), [*history, ("user", text)], "what a model is given")
        for words in (chat.prompt, system):
            if words is not None and words not in heard.orders():
                audit.wrong(f"a model is not told {words!r}")
        audit.same(told.strip(), f"You said {text}".strip(), "what a model says")
        answer = audit.rows_of(chat.id)
        if not text.startswith("notes"):
            fresh = [(row["role"], row["content"]) for row in answer][len(chat.rows) :]
            audit.same(fresh, [("user", text), ("assistant", told)], "the rows of a turn")
            chat.rows += fresh
        else:  # tools were called in between
            chat.rows = [(row["role"], row["content"]) for row in answer]
            chat.calls += sum(len(row.get("tool_calls", ())) for row in answer)
            rounds = sum(row["role"] == "assistant" for row in answer)
            chat.tokens = (9 * rounds, rounds)
            usage = [row["usage"]["total_tokens"] for row in answer if "usage" in row]
            audit.same(sum(usage[-1:]), 10 * rounds, "the tokens of a turn")
        if chat.preview is None:
            line = " ".join(text.split())
            chat.preview = line if len(line) <= PREVIEW else line[:PREVIEW] + "..."
        chat.updated = chat.active = answer[-1]["timestamp"]
        audit.near(chat.active, audit.wall, "the time of a row", 5.0)

    def stream(self, chat: _Chat, body: dict[str, Any], text: str) -> str:
        """The events of a turn, in their order, each as the last has said."""
        audit, events = self.audit, Events()
        caller = audit.begin_api("POST", f"/api/sessions/{chat.id}/chat/stream", body, piece=events)
        audit.right(audit.answer(caller, 600.0), 200)
        headers = caller.answer.headers
        audit.same((headers.get(b"x-svc-session-id") or b"").decode(), chat.id, "the session of a stream")
        audit.same((headers.get(b"content-type") or b"").decode(), "text/event-stream", "the type of a stream")
        names = events.names
        middle = [name for name in names[3:-3] if name != "assistant.delta"]
        audit.same(names[:3], ["session.created", "run.started", "message.started"], "how a stream begins")
        audit.same(names[-3:], ["assistant.completed", "run.completed", "done"], "how a stream ends")
        if not text.startswith("notes") and middle:
            audit.wrong(f"there are {middle} in a plain stream")
        members = [data for _, data in events.told]
        run = members[0]["run_id"]
        for number, data in enumerate(members, start=1):
            audit.same((data["session_id"], data["run_id"], data["seq"]), (chat.id, run, number), "whose an event is")
            audit.near(data["ts"], audit.wall, "the time of an event", 120.0)
        times = [data["ts"] for data in members]
        audit.same(times, sorted(times), "the times of events")
        audit.same(members[0]["title"], chat.title, "the title of a chat")
        asked = members[1]["user_message"]
        audit.same((asked["role"], asked["content"]), ("user", text), "what was asked")
        message = members[2]["message"]["id"]
        done = members[-3]
        told = "".join(data["delta"] for data in members if "delta" in data and "content" not in data)
        audit.same((done["content"], done["message_id"]), (told, message), "the whole of an answer")
        for data in members[-3:-1]:
            flags = (data["completed"], data["partial"], data["interrupted"])
            audit.same(flags, (True, False, False), "how an answer ended")
        audit.same(members[-1]["state"], "final", "the last word")
        stored = audit.rows_of(chat.id)
        audit.same((stored[-1]["id"], stored[-1]["run_id"]), (message, run), "the row of an answer")
        audit.same(asked["id"], [row["id"] for row in stored if row["content"] == text][-1], "the row of a question")
        for each in stored:
            if (
                each["role"] == "tool"
                and each["run_id"] == run
                and each["tool_call_id"] not in [data.get("tool_call_id") for data in members]
            ):
                audit.wrong(f"the call {each['tool_call_id']} was not told")
        return str(told)

    def fork(self) -> None:
        audit, source = self.audit, self.audit.pick(self.mine)
        word = audit.word()
        body: dict[str, Any] = {"title": word} if audit.chance(0.3) else {}
        view = audit.right(audit.ask_api("POST", f"/api/sessions/{source.id}/fork", body), 201)
        title = word if body else self.title_of_copy(source.title, view["title"])
        now = audit.wall
        copy = _Chat(view["id"], now, title, source.model, source.prompt, now, now)
        copy.parent, copy.preview, copy.rows = source.id, source.preview, [*source.rows]
        copy.calls, copy.tokens = source.calls, source.tokens
        if source.end_reason is None:
            source.end_reason, source.ended, source.updated = "branched", now, now
        self.check(copy, view, "a copy")
        self.mine.append(copy)

    def title_of_copy(self, title: str | None, told: str) -> str | None:
        if title is None:
            return None
        stem, mark, number = title.rpartition(" #")
        stem = stem if mark and number.isdecimal() else title
        used = [1]
        for chat in self.mine:
            base, mark, number = (chat.title or "").rpartition(" #")
            if mark and base == stem and number.isdecimal():
                used.append(int(number))
        if stem.startswith("x"):
            return told if told.startswith("xx") and len(told) <= TITLE else "a title of 100 characters"
        return f"{stem} #{max(used) + 1}"

    def drop(self) -> None:
        audit, chat = self.audit, self.audit.pick(self.mine)
        caller = audit.ask_api("DELETE", f"/api/sessions/{chat.id}")
        audit.right(caller, 204)
        audit.same(caller.answer.body, b"", "what is told of a chat that is deleted")
        self.mine.remove(chat)
        self.gone.append(chat.id)
        for other in self.mine:
            other.parent = None if other.parent == chat.id else other.parent

    def refuse(self) -> None:
        audit = self.audit
        own, gone = f"/api/sessions/{audit.pick(self.mine).id}", f"/api/sessions/{audit.pick((*self.gone, 'nobody'))}"
        rows: tuple[tuple[str, str, Any, int, str | None], ...] = (
            ("GET", gone, None, 404, "session_not_found"),
            ("GET", f"{gone}/messages", None, 404, "session_not_found"),
            ("DELETE", gone, None, 404, "session_not_found"),
            ("PATCH", gone, {"title": "x"}, 404, "session_not_found"),
            ("POST", f"{gone}/fork", {}, 404, "session_not_found"),
            ("POST", f"{gone}/chat", {"message": "x"}, 404, "session_not_found"),
            ("POST", f"{gone}/chat/stream", {}, 404, "session_not_found"),
            ("POST", f"{own}/chat", {"message": "  "}, 400, "missing_message"),
            ("POST", f"{own}/chat/stream", {}, 400, "missing_message"),
            ("POST", f"{own}/chat", {"message": "x", "system_message": 5}, 400, "invalid_system_message"),
            ("POST", f"{own}/chat", b"{", 400, None),
            ("PATCH", own, {"title": "x" * (TITLE + 1)}, 400, "invalid_title"),
            ("PATCH", own, {"title": 5}, 400, "invalid_title"),
            ("PATCH", own, {"model": "x"}, 400, "unsupported_session_field"),
            ("PATCH", own, {"archived": 2}, 400, None),
            ("POST", "/api/sessions", [], 400, None),
            ("POST", "/api/sessions", {"id": "a/b"}, 400, "invalid_session_id"),
            ("POST", "/api/sessions", {"id": "x" * 257}, 400, "invalid_session_id"),
            ("POST", "/api/sessions", {"system_prompt": 5}, 400, "invalid_system_prompt"),
            ("GET", "/api/sessions/search?q=%20", None, 400, None),
            ("GET", "/api/sessions/search?q=x&limit=-1", None, 400, None),
            ("PUT", own, {}, 405, None),
        )
        for method, path, body, status, code in audit.rng.sample(rows, 4):
            caller = audit.ask_api(method, path, body)
            audit.right(caller, status, about=f"{method} with {body!r:.50}")
            if code is not None:
                audit.same(caller.answer.json["error"]["code"], code, f"the code of {method} {path}")
            if status == 405 and not caller.answer.headers.get(b"allow"):
                audit.wrong("405 does not say what is allowed")

    # --- what is looked at ---

    def check(self, chat: _Chat, view: dict[str, Any], about: str) -> None:
        audit = self.audit
        audit.same({name: view.get(name) for name in FIELDS}, chat.shown(), about)
        audit.near(view["started_at"], chat.started, "the start of a chat", CLOSE)
        audit.near(view["last_active"], chat.active, "the last activity of a chat", CLOSE)
        if chat.ended is None:
            audit.same(view["ended_at"], None, "the end of a chat")
        else:
            audit.near(view["ended_at"], chat.ended, "the end of a chat", CLOSE)

    def expected(self, *, archived: bool) -> list[str]:
        there = sorted(
            (chat for chat in self.mine if archived or not chat.archived), key=lambda chat: chat.active, reverse=True
        )
        return [chat.id for chat in there]

    def list_all(self) -> None:
        audit, every = self.audit, self.audit.chance(0.5)
        query = f"?include_archived={audit.pick(('1', 'true'))}" if every else ""
        body = audit.right(audit.ask_api("GET", f"/api/sessions{query}"), 200)
        views = body["sessions"]
        listed = [view["id"] for view in views if view["id"] not in self.others]
        close = [chat.active for chat in self.mine]
        if all(abs(a - b) > CLOSE for n, a in enumerate(close) for b in close[:n]):
            audit.same(listed, self.expected(archived=every), "chats by their last activity")
        audit.same(sorted(listed), sorted(self.expected(archived=every)), "the chats that are there")
        others = [view["id"] for view in views if view["id"] in self.others]
        audit.same(
            others, self.shown if not every else [each for each in self.others if each in others], "chats of others"
        )
        keys = [(view["last_active"], view["started_at"], view["id"]) for view in views]
        audit.same(keys, sorted(keys, reverse=True), "the order of chats")
        page = (body["object"], body["offset"], body["has_more"], body["total"])
        audit.same(page, ("list", 0, False, len(views)), "what is said of a list")
        for chat in self.mine:
            for view in views:
                if view["id"] == chat.id:
                    self.check(chat, view, "a chat in a list")

    def page(self) -> None:
        audit = self.audit
        whole = [view["id"] for view in audit.right(audit.ask_api("GET", "/api/sessions"), 200)["sessions"]]
        limit, offset = audit.pick((1, 2, 3, 200)), audit.pick((0, 1, 2, len(whole), len(whole) + 1))
        body = audit.right(audit.ask_api("GET", f"/api/sessions?limit={limit}&offset={offset}"), 200)
        audit.same(
            [view["id"] for view in body["sessions"]], whole[offset : offset + limit], f"{limit} from {offset} on"
        )
        told = (body["limit"], body["offset"], body["total"], body["has_more"])
        audit.same(told, (limit, offset, len(whole), offset + limit < len(whole)), "what is said of a page")
        for junk, due in (("limit=999", 200), ("limit=x", 50), ("limit=0", 50), ("limit=-1&offset=-2", 50)):
            body = audit.right(audit.ask_api("GET", f"/api/sessions?{junk}"), 200)
            audit.same((body["limit"], body["offset"]), (due, 0), f"a page of {junk}")

    def read(self) -> None:
        audit, chat = self.audit, self.audit.pick(self.mine)
        limit, offset, order = audit.pick((0, 1, 2, 500)), audit.pick((0, 1, 2)), audit.pick(("oldest", "latest"))
        path = f"/api/sessions/{chat.id}/messages"
        whole = audit.right(audit.ask_api("GET", path), 200)
        audit.same(whole["session_id"], chat.id, "whose messages")
        rows = whole["messages"]
        audit.same([(row["role"], row["content"]) for row in rows], chat.rows, "the rows of a chat")
        if "pagination" in whole:
            audit.wrong("all rows are said to be a page")
        if len({row["id"] for row in rows}) < len(rows) or {row["session_id"] for row in rows} - {chat.id}:
            audit.wrong(f"rows of {chat.id} have one id, or another chat's: {rows!r:.300}")
        if not limit and not offset:
            return
        body = audit.right(audit.ask_api("GET", f"{path}?limit={limit}&offset={offset}&order={order}"), 200)
        if order == "latest":
            stop = max(0, len(rows) - offset)
            due = rows[max(0, stop - limit) if limit else 0 : stop]
        else:
            due = rows[offset : offset + limit] if limit else rows[offset:]
        audit.same(body["messages"], due, f"rows by {limit}, {offset}, {order}")
        told = body["pagination"]
        audit.same(
            (told["offset"], told["order"], told["returned"]), (offset, order, len(due)), "what is said of a page"
        )

    def search(self) -> None:
        audit = self.audit
        said = [row for chat in self.mine for row in chat.rows if row[0] == "user"]
        if not said:
            return
        word = audit.pick(said)[1].split()[1]
        case = audit.pick((str, str.upper))
        body = audit.right(audit.ask_api("GET", f"/api/sessions/search?q={quote(case(word))}&limit=100"), 200)
        due = sorted(chat.id for chat in self.mine for row in chat.rows if word in _words(row[1]))
        audit.same(sorted(hit["session_id"] for hit in body["results"]), due, f"where {word} is said")
        audit.same((body["query"], body["count"]), (case(word), len(due)), "what is said of a search")
        for hit in body["results"]:
            chat = next(chat for chat in self.mine if chat.id == hit["session_id"])
            if f">>>{word}<<<" not in hit["snippet"]:
                audit.wrong(f"{word} is not marked in {hit['snippet']!r}")
            told = (hit["session_title"], hit["model"], hit["source"])
            audit.same(told, (chat.title, chat.model, "api_server"), "the chat of a hit")
            place = next(n for n, row in enumerate(chat.rows) if word in _words(row[1]) and row[0] == hit["role"])
            around = [chat.rows[n] for n in (place - 1, place + 1) if 0 <= n < len(chat.rows)]
            audit.same(
                [(row["role"], row["content"]) for row in hit["context"]],
                [(role, text[:CONTEXT]) for role, text in around],
                "what is around",
            )
        few = audit.right(audit.ask_api("GET", f"/api/sessions/search?q={word}&limit=1&offset=1"), 200)["results"]
        audit.same([hit["id"] for hit in few], [hit["id"] for hit in body["results"]][1:2], "the second hit")

    def look(self) -> None:
        audit, chat = self.audit, self.audit.pick(self.mine)
        self.check(chat, audit.right(audit.ask_api("GET", f"/api/sessions/{chat.id}"), 200), "a chat")


def _words(text: str) -> list[str]:
    return text.replace(":", " ").split()


def talks(audit: Audit) -> None:
    """Chats are made, changed, talked in, copied, found and deleted."""
    _Talks(audit).steps()


TALKS = (talks, talks, talks)
