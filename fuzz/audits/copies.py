"""Copies of chats, and copies of copies: their numbers, whatever titles are beside, and that each goes its own way."""

from __future__ import annotations

import re
from collections.abc import Callable

from attrs import define

from fuzz.audit import Audit
from fuzz.audits.heard import Listener

__all__ = ["COPIES"]

CHATS = "/api/sessions"
LONGEST = 100  # characters of a title, wire api 3.1
NUMBERED = re.compile(r"(.+) #([0-9]{1,9})")
# Beside {w} #2, {w} #3, ...: what is numbered, what only looks so, what a database might take for more.
BESIDE = (
    *("{w}", "{w} #7", "{w} #0012", "{w} # 3", "{w}#4", "{w} #x", "{w} #5 #3", "{w} #5 #8", "{w} other #9"),
    *("{w}_ #6", "{w}% #9", "%{w} #30", "_ #41", "{u} #50", "{w}  #60", "{w} #", "é{w} #2", "{w} #0", "{w} #1234567"),
)
LONG = ("{w} {x}", "{w} {x} #2", "{w} {x} #9", "{w} {x} #99")
Row = tuple[str, str]


@define(eq=False)
class _Chat:
    id: str
    title: str | None
    rows: list[Row]
    reason: str | None = None


class _Copies:
    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.there: list[_Chat] = []
        self.pool = [self.filled(each) for each in audit.rng.sample((*BESIDE, *BESIDE, *LONG), 7)]

    def filled(self, form: str) -> str:
        """A title of that form; a long one is as long as may be."""
        word = self.audit.name + str(self.audit.crowd.world.script.seed)
        text = form.format(w=word, u=word.upper(), x="{x}")
        return text.replace("{x}", "x" * (LONGEST - len(text) + 3))

    def steps(self) -> None:
        audit = self.audit
        for title in (self.filled("{w}"), *self.pool[:3]):
            self.make(title)
        kinds: tuple[Callable[[], None], ...] = (
            *(self.copy, self.copy, self.copy, self.copy, self.speak, self.rename, self.drop),
            *(self.hide, lambda: self.make(audit.pick(self.pool))),
        )
        for _ in range(audit.rng.randint(14, 24)):
            audit.pick(kinds)()
        for chat in self.there:
            self.check(chat)

    def make(self, title: str | None) -> None:
        audit = self.audit
        view = audit.right(audit.ask_api("POST", CHATS, {"title": title}), 201)
        audit.same(view["title"], None if title is None else " ".join(title.split()), "the title of a chat")
        self.there.append(_Chat(view["id"], view["title"], []))

    def due(self, title: str) -> str:
        """The first number behind those in use; a stem that is too long is cut, and may be in use then."""
        while True:
            found = NUMBERED.fullmatch(title)
            stem = title if found is None else found[1]
            others = [NUMBERED.fullmatch(chat.title) for chat in self.there if chat.title is not None]
            used = [int(each[2]) for each in others if each is not None and each[1] == stem]
            number = f" #{max((1, *used)) + 1}"
            if len(stem) + len(number) <= LONGEST:
                return stem + number
            title = stem[: LONGEST - len(number)] + number

    def copy(self) -> None:
        """One by itself, or some at once."""
        audit, source = self.audit, self.audit.pick(self.there)
        named = audit.chance(0.15)
        body = {"title": audit.pick(self.pool)} if named else {}
        many = audit.pick((1, 1, 1, 2, 3))
        callers = [audit.begin_api("POST", f"{CHATS}/{source.id}/fork", body) for _ in range(many)]
        titles: list[str | None] = []
        made: list[_Chat] = []
        for _ in callers:
            titles.append(" ".join(body["title"].split()) if named else source.title and self.due(source.title))
            made.append(_Chat("", titles[-1], [*source.rows]))
            self.there.append(made[-1])
        views = [audit.right(audit.answer(caller), 201) for caller in callers]
        audit.same(
            sorted(str(view["title"]) for view in views), sorted(map(str, titles)), f"copies of {source.title!r}"
        )
        for view in views:
            chat = next(each for each in made if each.title == view["title"] and not each.id)
            chat.id = view["id"]
            about = (view["parent_session_id"], view["message_count"], view["ended_at"], view["end_reason"])
            audit.same(about, (source.id, len(source.rows), None, None), "a copy")
        source.reason = source.reason or "branched"

    def speak(self) -> None:
        """In one of them, and in no other; its model is given what was copied."""
        audit, chat = self.audit, self.audit.pick(self.there)
        text = f"plain: {audit.word()}"
        heard = Listener(audit, text)
        told = audit.right(audit.ask_api("POST", f"{CHATS}/{chat.id}/chat", {"message": text}), 200)
        heard.stop()
        audit.same(heard.said(), [*chat.rows, ("user", text)], "what a model is given of a copy")
        chat.rows += [("user", text), ("assistant", told["message"]["content"])]

    def rename(self) -> None:
        audit, chat = self.audit, self.audit.pick(self.there)
        title = audit.pick((*self.pool, None))
        view = audit.right(audit.ask_api("PATCH", f"{CHATS}/{chat.id}", {"title": title}), 200)
        chat.title = None if title is None else " ".join(title.split())
        audit.same(view["title"], chat.title, "a title")

    def hide(self) -> None:
        """What is archived is in use all the same."""
        chat = self.audit.pick(self.there)
        self.audit.right(self.audit.ask_api("PATCH", f"{CHATS}/{chat.id}", {"archived": True}), 200)

    def drop(self) -> None:
        audit, chat = self.audit, self.audit.pick(self.there)
        if len(self.there) > 1:
            audit.right(audit.ask_api("DELETE", f"{CHATS}/{chat.id}"), 204)
            self.there.remove(chat)

    def check(self, chat: _Chat) -> None:
        audit = self.audit
        rows = audit.rows_of(chat.id)
        audit.same([(row["role"], row["content"]) for row in rows], chat.rows, "the rows of a copy")
        view = audit.right(audit.ask_api("GET", f"{CHATS}/{chat.id}"), 200)["session"]
        told = (view["title"], view["end_reason"], view["message_count"])
        audit.same(told, (chat.title, chat.reason, len(chat.rows)), "a chat with copies")


def copies(audit: Audit) -> None:
    """Chats are copied, and their copies, among others that are called nearly the same."""
    _Copies(audit).steps()


COPIES = (copies,)
