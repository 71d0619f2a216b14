"""A store, or a disk, that takes nothing for a while: who is told so, what is hidden, and that nothing is half done."""

from __future__ import annotations

from typing import Any

from fuzz.audit import Audit
from fuzz.audits.heard import Events, Listener
from fuzz.audits.lodge import Lodge
from fuzz.audits.refusals import refused
from fuzz.part import Round, asking
from svc_proto.api import store
from svc_proto.commands import StoreRequest
from svc_proto.store import Ping

__all__ = ["STALLS"]

CHATS = "/api/sessions"
GONE = "session_db_unavailable"
Kind = type[StoreRequest[Any]]
# What is asked, and which requests of the store may fail behind it. {chat} is one that is there.
ROWS: tuple[tuple[str, str, Any, tuple[Kind, ...]], ...] = (
    ("GET", CHATS, None, (store.ListChats,)),
    ("POST", CHATS, {"title": "new"}, (store.CreateChat,)),
    ("GET", "{chat}", None, (store.GetChat,)),
    ("GET", "{chat}/messages?limit=1", None, (store.ListMessages,)),
    ("GET", f"{CHATS}/search?q=x", None, (store.SearchMessages,)),
    ("PATCH", "{chat}", {"title": "other"}, (store.UpdateChat,)),
    ("DELETE", "{chat}", None, (store.GetChat, store.DeleteChat)),
    ("POST", "{chat}/fork", {}, (store.GetChat, store.ListTitles, store.ForkChat)),
    ("POST", "{chat}/chat", {"message": "plain: lost"}, (store.GetChat, store.BeginTurn)),
    ("POST", "{chat}/chat/stream", {"message": "plain: lost"}, (store.GetChat,)),
    ("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "plain: lost"}]}, (store.BeginTurn,)),
    ("POST", "/v1/responses", {"input": "plain: lost"}, (store.BeginTurn,)),
)
STREAMS: tuple[tuple[str, Any], ...] = (
    ("{chat}/chat/stream", {"message": "plain: lost"}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "plain: lost"}], "stream": True}),
    ("/v1/responses", {"input": "plain: lost", "stream": True}),
    ("/v1/runs", {"input": "plain: lost", "stream": True}),
)


class _Stall:
    def __init__(self, audit: Audit) -> None:
        self.lodge = Lodge(audit, troubled=True)
        self.chat = f"{CHATS}/{self.lodge.right(self.lodge.ask_api('POST', CHATS, {'title': 'mine'}), 201)['id']}"
        self.text = f"plain: {audit.word()}"
        self.lodge.right(self.lodge.ask_api("POST", f"{self.chat}/chat", {"message": self.text}), 200)

    def refuse(self, *kinds: Kind) -> None:
        self.lodge.home.store.refused = kinds

    def seen(self) -> object:
        """All that there is."""
        lodge = self.lodge
        views = lodge.right(lodge.ask_api("GET", f"{CHATS}?include_archived=1"), 200)
        rows = lodge.right(lodge.ask_api("GET", f"{self.chat}/messages"), 200)
        notes = lodge.right(lodge.ask_api("GET", "/api/memory"), 200)
        return views, rows, notes

    def calls(self) -> None:
        """What fails is said to have, and has changed nothing."""
        lodge = self.lodge
        for method, path, body, kinds in lodge.rng.sample(ROWS, 6):
            before, heard = self.seen(), Listener(lodge)
            self.refuse(lodge.pick(kinds))
            refused(lodge, lodge.ask_api(method, path.replace("{chat}", self.chat), body), 503, GONE, None)
            self.refuse()
            heard.stop()
            lodge.same(len(heard.asked), 0, f"how often a model is asked by {method} {path}")
            lodge.same(self.seen(), before, f"what there is behind a {method} {path} that failed")

    def streams(self) -> None:
        """A turn whose question cannot be stored: its model is not asked."""
        lodge = self.lodge
        path, body = lodge.pick(STREAMS)
        before, heard, events = self.seen(), Listener(lodge), Events()
        self.refuse(store.BeginTurn)
        caller = lodge.answer(lodge.begin_api("POST", path.replace("{chat}", self.chat), body, events), 60.0)
        self.refuse()
        heard.stop()
        lodge.right(caller, 200)
        lodge.same((len(heard.asked), self.seen()), (0, before), "what a turn has done whose question is not stored")
        self.check_end(path, events)

    def check_end(self, path: str, events: Events) -> None:
        lodge = self.lodge
        if path.endswith("chat/stream"):
            lodge.same(events.names[-2:], ["error", "done"], "a turn that failed")
            lodge.same(events.told[-2][1]["error"], GONE, "why a turn failed")
        elif path.endswith("completions"):
            last = events.told[-1][1]
            lodge.same(last["choices"][0]["finish_reason"], "error", "a completion that failed")
            lodge.same((events.raw[-1], last["error"]["type"]), ("[DONE]", "agent_error"), "a completion that failed")
        else:
            due = "response.failed" if "responses" in path else "run.failed"
            lodge.same(events.names[-1], due, "a turn that failed")

    def answers(self) -> None:
        """An answer that cannot be stored has failed; what was stored before is kept."""
        lodge, events = self.lodge, Events()
        text, word = f"plain: {lodge.word()}", lodge.word()
        text = asking(word, Round(text=f"{word} so", wait=5.0))
        caller = lodge.begin_api("POST", f"{self.chat}/chat/stream", {"message": text}, events)
        lodge.wait(lambda: "assistant.delta" in events.names, 20.0, "a turn does not begin")
        self.refuse(store.AddMessages)
        lodge.answer(caller, 60.0)
        self.refuse()
        self.check_end("chat/stream", events)
        rows = lodge.right(lodge.ask_api("GET", f"{self.chat}/messages"), 200)["messages"]
        lodge.same((rows[-1]["role"], rows[-1]["content"]), ("user", text), "what is stored of an answer that is not")

    def tools(self) -> None:
        """Rows that the store does not take for a while are stored with the next: nobody is told anything."""
        lodge, events, word = self.lodge, Events(), self.lodge.word()
        calls = [["demo_wait", {"seconds": 2}], ["skills_list", {}]]
        text = asking(word, Round(text="first", calls=calls), Round(text="then", wait=1.0))
        before = len(lodge.right(lodge.ask_api("GET", f"{self.chat}/messages"), 200)["messages"])
        caller = lodge.begin_api("POST", f"{self.chat}/chat/stream", {"message": text}, events)
        lodge.wait(lambda: "run.started" in events.names, 20.0, "a turn does not begin")
        self.refuse(store.AddMessages)
        lodge.wait(lambda: events.names.count("tool.completed") == lodge.pick((1, 2)), 20.0, "no tool is done")
        self.refuse()
        lodge.right(lodge.answer(caller, 60.0), 200)
        lodge.same(events.names[-3:], ["assistant.completed", "run.completed", "done"], "a turn whose store was away")
        rows = lodge.right(lodge.ask_api("GET", f"{self.chat}/messages"), 200)["messages"][before:]
        told = [(row["role"], row["content"].strip()) for row in rows]
        results = {("tool", "waited 2 s"), ("tool", '{"skills":[],"count":0}')}
        lodge.same((told[:2], told[-1]), ([("user", text), ("assistant", "first")], ("assistant", "then")), "its rows")
        lodge.same(({*told[2:-1]}, len(told)), (results, 5), "the results of tools whose store was away")

    def disk(self) -> None:
        """Notes that cannot be written are not there, nor after a restart."""
        lodge = self.lodge
        word = lodge.word()
        lodge.right(lodge.ask_api("POST", "/api/memory", {"target": "user", "content": word}), 200)
        before = self.seen()
        lodge.home.disk.capacity = 0
        rows = (
            ("POST", {"content": "x"}),
            ("PATCH", {"old_text": word, "content": "y"}),
            ("DELETE", {"old_text": word}),
        )
        for method, body in rows:
            told = lodge.right(lodge.ask_api(method, "/api/memory", {"target": "user", **body}), 503)
            lodge.same((told["success"], bool(told["error"])), (False, True), "a note that cannot be written")
        lodge.home.disk.capacity = None
        lodge.same(self.seen(), before, "what there is behind a full disk")
        if lodge.chance(0.5):
            lodge.again(kill=lodge.chance(0.5))
            lodge.same(self.seen(), before, "what there is behind a full disk and a restart")
        lodge.right(lodge.ask_api("DELETE", "/api/memory", {"target": "user", "old_text": word}), 200)

    def health(self) -> None:
        """It is said that the store is away, to who asks for that."""
        lodge = self.lodge
        lodge.rest(15.0)  # until an earlier word about it is too old
        self.refuse(Ping, store.ListChats)
        told = lodge.right(lodge.ask_api("GET", "/health/detailed"), 200)
        about = (told["status"], told["readiness"]["status"], told["readiness"]["checks"]["state_db"])
        lodge.same(about, ("degraded", "degraded", {"status": "degraded"}), "health without a store")
        told = lodge.right(lodge.ask_api("GET", "/readyz"), 503)
        lodge.same((told["status"], len(told["reasons"])), ("not ready", 1), "who is not ready")
        for path in ("/health", "/healthz", "/v1/models"):
            lodge.right(lodge.ask_api("GET", path), 200, about="what needs no store")
        self.refuse()
        lodge.rest(15.0)
        told = lodge.right(lodge.ask_api("GET", "/readyz"), 200)
        lodge.same(told, {"status": "ready", "reasons": []}, "who is ready again")
        lodge.same(lodge.right(lodge.ask_api("GET", "/health/detailed"), 200)["status"], "ok", "health again")


def stalls(audit: Audit) -> None:
    """A store and a disk that are away, again and again."""
    stall = _Stall(audit)
    parts = (stall.calls, stall.streams, stall.streams, stall.answers, stall.tools, stall.disk, stall.health)
    for part in audit.rng.sample(parts, 4):
        part()
    stall.lodge.leave()


STALLS = (stalls, stalls)
