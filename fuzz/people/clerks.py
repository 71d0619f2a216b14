"""Errands at the API: chats of one's own, notes, responses, keys and runs, each beside the plainest model of it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from attrs import define, field

from fuzz.errands import Ask, Clerk, Errand, GivenUp, Kind, is_one, said_back
from fuzz.invariants import Invariant
from fuzz.model import violated
from fuzz.steps import ReadAloud, SaySomething, TalkToAgent, TryRoutes
from tests.support.sim_http import RequestClient

__all__ = ["CLERKS"]

TITLES: tuple[tuple[object, str | None], ...] = (  # as given, and as kept; {} is a word of one's own
    ("{}", "{}"),
    (" {} \t trip ", "{} trip"),
    ("{}\u200b\u202e day", "{} day"),
    ("   ", None),
    (None, None),
)
TOO_LONG = "x" * 101
SHOWN = ("title", "pinned", "archived", "end_reason", "message_count", "parent_session_id")
NOTES_CAP = 1_375  # characters of what is noted of the user, wire api 8.3
SHOWS_KEYS = (ReadAloud, TalkToAgent, SaySomething, TryRoutes)  # to the relay, which asks the API about them
GUESSES, BLOCKED_FOR = 5, 360.0  # wrong keys, and s for which at most they count
ASKED_FOR = 60  # s that a run is waited for
ON_ITS_WAY = ("queued", "running", "stopping")
OVER = ("completed", "failed", "cancelled")


@define(eq=False)
class _Own:
    """A chat that only we use."""

    id: str
    title: str | None
    pinned: bool = False
    archived: bool = False
    end_reason: str | None = None
    parent_session_id: str | None = None
    said: list[str] = field(factory=list)  # user and assistant in turns
    words: list[str] = field(factory=list)  # that are in it

    @property
    def message_count(self) -> int:
        return len(self.said)


def _same(own: _Own, view: dict[str, Any], where: str) -> None:
    expected = {name: getattr(own, name) for name in SHOWN}
    told = {name: view.get(name) for name in SHOWN}
    if told != expected or (view["ended_at"] is None) is not (own.end_reason is None):
        violated(Invariant.AS_TOLD, f"{where}: {own.id} is {told}, and was left as {expected}")


class _Drawer:
    """Some chats, and what becomes of them."""

    def __init__(self, clerk: Clerk) -> None:
        self.clerk = clerk
        self.there: list[_Own] = []
        self.gone: list[str] = []

    def steps(self) -> Errand:
        rng = self.clerk.rng
        yield from self.make()
        kinds = (self.make, self.change, self.change, self.put_away, self.say, self.say, self.fork, self.drop, self.end)
        looks = (self.list_all, self.look, self.read, self.search, self.page, self.refuse)
        for _ in range(rng.randint(3, 7)):
            if not self.there:
                yield from self.make()
            yield from rng.choice(kinds)()
            yield from rng.choice(looks)()
        self.clerk.lasts.append(self.afterwards)

    def afterwards(self, clerk: Clerk) -> Errand:
        """Everything is as it was left."""
        for look in (self.list_all, self.look, self.read, self.search):
            yield from look()

    def pick(self) -> _Own:
        return self.clerk.rng.choice(self.there)

    def make(self) -> Errand:
        clerk = self.clerk
        given, kept = clerk.rng.choice(TITLES)
        word = clerk.word()
        given, kept = _filled(given, word), _filled(kept, word)
        caller = yield from clerk.ask("POST", "/api/sessions", {"title": given} if given is not None else {})
        view = is_one(caller, 201, "a chat that is made")
        own = _Own(str(view["id"]), kept)
        _same(own, view, "made")
        self.there.append(own)

    def change(self) -> Errand:
        own, rng = self.pick(), self.clerk.rng
        given, kept = rng.choice(TITLES)
        word = self.clerk.word()
        own.title = _filled(kept, word)
        yield from self._patched(own, {"title": _filled(given, word)})

    def put_away(self) -> Errand:
        own, rng = self.pick(), self.clerk.rng
        name = rng.choice(("pinned", "archived", "archived"))
        value = not getattr(own, name) if rng.random() < 0.8 else getattr(own, name)
        setattr(own, name, value)
        yield from self._patched(own, {name: rng.choice((value, int(value)))})

    def end(self) -> Errand:
        own, reason = self.pick(), self.clerk.rng.choice(("done", "left"))
        own.end_reason = own.end_reason or reason  # the first one stays
        yield from self._patched(own, {"end_reason": reason})

    def _patched(self, own: _Own, changes: dict[str, object]) -> Errand:
        caller = yield from self.clerk.ask("PATCH", f"/api/sessions/{own.id}", changes)
        _same(own, is_one(caller, 200, f"a change {changes}"), f"changed {changes}")

    def say(self) -> Errand:
        own, word = self.pick(), self.clerk.word()
        text = f"plain: {word}"
        caller = yield from self.clerk.ask("POST", f"/api/sessions/{own.id}/chat", {"message": text}, for_a_place=True)
        told = is_one(caller, 200, "a turn")["message"]["content"]
        said_back(told, text)
        own.said += [text, told]
        own.words.append(word)

    def fork(self) -> Errand:
        source, rng, word = self.pick(), self.clerk.rng, self.clerk.word()
        body: dict[str, object] = {"title": word} if rng.random() < 0.3 else {}
        caller = yield from self.clerk.ask("POST", f"/api/sessions/{source.id}/fork", body)
        view = is_one(caller, 201, "a copy")
        title = word if body else self._next_title(source.title)
        copy = _Own(str(view["id"]), title, parent_session_id=source.id, said=[*source.said], words=[*source.words])
        source.end_reason = source.end_reason or "branched"
        _same(copy, view, "copied")
        self.there.append(copy)

    def _next_title(self, title: str | None) -> str | None:
        if title is None:
            return None
        stem = title.partition(" #")[0]
        taken = [own.title.partition(" #") for own in self.there if own.title is not None]
        return f"{stem} #{max([int(number or 1) for first, _, number in taken if first == stem]) + 1}"

    def drop(self) -> Errand:
        own = self.pick()
        caller = yield from self.clerk.ask("DELETE", f"/api/sessions/{own.id}")
        is_one(caller, 204, "a chat that is deleted")
        self.there.remove(own)
        self.gone.append(own.id)
        for other in self.there:
            if other.parent_session_id == own.id:
                other.parent_session_id = None

    # --- looking ---

    def look(self) -> Errand:
        for own in self.there:
            caller = yield from self.clerk.ask("GET", f"/api/sessions/{own.id}")
            _same(own, is_one(caller, 200, "a chat"), "looked at")
        for identity in self.gone[-2:]:
            more = self.clerk.rng.choice(("", "/messages"))
            caller = yield from self.clerk.ask("GET", f"/api/sessions/{identity}{more}")
            is_one(caller, 404, "a chat that was deleted", "session_not_found")

    def list_all(self) -> Errand:
        everything = self.clerk.rng.random() < 0.5
        query = "?include_archived=1" if everything else ""
        caller = yield from self.clerk.ask("GET", f"/api/sessions{query}")
        body = is_one(caller, 200, "all chats")
        listed = {view["id"]: view for view in body["sessions"]}
        for own in self.there:
            if (own.id in listed) is not (everything or not own.archived):
                so = "listed" if own.id in listed else "not listed"
                violated(Invariant.AS_TOLD, f"{own.id} is {so}, archived {own.archived}, all wanted: {everything}")
            if own.id in listed:
                _same(own, listed[own.id], "listed")
        if set(self.gone) & listed.keys():
            violated(Invariant.AS_TOLD, f"{[each for each in self.gone if each in listed]} are deleted, and listed")
        times = [view["last_active"] for view in body["sessions"]]
        if times != sorted(times, reverse=True):
            violated(Invariant.AS_TOLD, f"chats are not listed by their last activity: {times}")

    def page(self) -> Errand:
        limit, offset = self.clerk.rng.randint(1, 3), self.clerk.rng.randint(0, 3)
        caller = yield from self.clerk.ask("GET", f"/api/sessions?limit={limit}&offset={offset}")
        body = is_one(caller, 200, "a page of chats")
        count, total = len(body["sessions"]), body["total"]
        if count != max(0, min(limit, total - offset)) or body["has_more"] is not (offset + count < total):
            so = f"has {count} of {total}, {body['has_more']}"
            violated(Invariant.AS_TOLD, f"a page of {limit} from {offset} on {so}")

    def read(self) -> Errand:
        if not self.there:
            return
        own, rng = self.pick(), self.clerk.rng
        limit, offset = rng.choice((0, 1, 2, 3)), rng.choice((0, 0, 1, 2))
        order = rng.choice(("oldest", "latest"))
        query = f"?limit={limit}&offset={offset}&order={order}" if limit else ""
        caller = yield from self.clerk.ask("GET", f"/api/sessions/{own.id}/messages{query}")
        rows = is_one(caller, 200, "messages")["messages"]
        expected = own.said
        if limit and order == "latest":
            stop = len(own.said) - offset
            expected = own.said[max(0, stop - limit) : max(0, stop)]
        elif limit:
            expected = own.said[offset : offset + limit]
        if [row["content"] for row in rows] != expected:
            violated(Invariant.AS_TOLD, f"{query} of {own.said} is {[row['content'] for row in rows]}")
        if len({row["id"] for row in rows}) < len(rows):
            violated(Invariant.AS_TOLD, f"two messages of {own.id} have one id")

    def search(self) -> Errand:
        words = [word for own in self.there for word in own.words]
        if not words:
            return
        word = self.clerk.rng.choice(words)
        caller = yield from self.clerk.ask("GET", f"/api/sessions/search?q={word}&limit=100")
        found = {hit["session_id"] for hit in is_one(caller, 200, "a search")["results"]}
        expected = {own.id for own in self.there if word in own.words}
        if found != expected:
            violated(Invariant.AS_TOLD, f"{word} is said in {sorted(expected)}, and found in {sorted(found)}")

    def refuse(self) -> Errand:
        if not self.there:
            return
        own = self.pick()
        refusals: tuple[tuple[dict[str, object], str], ...] = (
            ({"title": TOO_LONG}, "invalid_title"),
            ({"title": 7}, "invalid_title"),
            ({"system_prompt": "x"}, "unsupported_session_field"),
            ({"pinned": "yes"}, ""),
        )
        body, code = self.clerk.rng.choice(refusals)
        caller = yield from self.clerk.ask("PATCH", f"/api/sessions/{own.id}", body)
        is_one(caller, 400, f"a change {body!r:.60}", code)
        caller = yield from self.clerk.ask("GET", f"/api/sessions/{own.id}")
        _same(own, is_one(caller, 200, "a chat"), f"after a change that was refused, {body!r:.60}")


def _filled(text: object, word: str) -> Any:
    return text.replace("{}", word) if isinstance(text, str) else None


def drawer(clerk: Clerk) -> Errand:
    """Chats of one's own are made, changed, put away, copied, found and deleted."""
    return _Drawer(clerk).steps()


def notes_of_the_user(clerk: Clerk) -> Errand:
    """What is known of the user is added to, replaced and removed; only one clerk at a time."""
    return clerk.alone("notes", _notes(clerk))


def _notes(clerk: Clerk) -> Errand:
    rng, path = clerk.rng, "/api/memory"
    first = yield from clerk.ask("GET", f"{path}?target=user")
    known: list[str] = list(is_one(first, 200, "what is noted")["entries"])
    for _ in range(rng.randint(4, 9)):
        word = clerk.word()
        kind = rng.choice(("add", "add", "again", "replace", "remove", "unknown", "full", "both"))
        if kind in ("add", "full"):
            entry = word if kind == "add" else word + "y" * NOTES_CAP
            caller = yield from clerk.ask("POST", path, {"target": "user", "content": f" {entry} "})
            is_one(caller, 400 if kind == "full" else 200, f"a note of {len(entry)} characters")
            known += [entry] if kind == "add" else []
        elif kind == "again" and known:
            caller = yield from clerk.ask("POST", path, {"target": "user", "content": known[0]})
            is_one(caller, 200, "a note that is there")
        elif kind == "replace" and known:
            old = rng.choice(known)
            caller = yield from clerk.ask("PATCH", path, {"target": "user", "old_text": old, "content": word})
            known[known.index(old)] = word
            is_one(caller, 200, "a note that is replaced")
        elif kind == "remove" and known:
            old = rng.choice(known)
            caller = yield from clerk.ask("DELETE", path, {"target": "user", "old_text": old})
            known.remove(old)
            is_one(caller, 200, "a note that is removed")
        elif kind == "both" and len(known) > 1:  # a text that is in several
            caller = yield from clerk.ask("DELETE", path, {"target": "user", "old_text": "errand"})
            is_one(caller, 400, "a text that several notes have")
        else:
            caller = yield from clerk.ask("DELETE", path, {"target": "user", "old_text": f"no {word}"})
            is_one(caller, 400, "a note that is not there")
        caller = yield from clerk.ask("GET", f"{path}?target=user")
        told = is_one(caller, 200, "what is noted")
        if told["entries"] != known or told["entry_count"] != len(known):
            violated(Invariant.AS_TOLD, f"{kind}: {told['entries']} is noted, and should be {known}")


def responses(clerk: Clerk) -> Errand:
    """Responses are asked for, gone on with, asked for again, and deleted."""
    rng = clerk.rng
    kept: list[tuple[dict[str, Any], list[str]]] = []  # the answer, and all that was said in its session
    for _ in range(rng.randint(2, 5)):
        text, store = f"plain: {clerk.word()}", rng.random() < 0.8
        body: dict[str, object] = {"input": text, **({} if store else {"store": False})}
        said: list[str] = []
        if kept and rng.random() < 0.6:
            last, said = rng.choice(kept)
            body["previous_response_id"] = last["id"]
        heard = yield from _heard_by_model(clerk, text, clerk.ask("POST", "/v1/responses", body, for_a_place=True))
        caller, asked = heard
        answer = is_one(caller, 200, "a response")
        said_back(_text_of(answer), text)
        said.append(text)
        if asked is not None and asked[-len(said) :] != said:
            violated(Invariant.HISTORY, f"{text!r} was asked behind {asked[:-1]}, and {said[:-1]} was said")
        caller = yield from clerk.ask("GET", f"/v1/responses/{answer['id']}")
        if store:
            again = is_one(caller, 200, "a response that is kept")
            if again != answer:
                violated(Invariant.STORED, f"{answer!r:.300} was answered, and {again!r:.300} is kept")
            kept.append((answer, said))
        else:
            is_one(caller, 404, "a response that is not to be kept")
        if kept and rng.random() < 0.3:
            gone, _ = kept.pop(rng.randrange(len(kept)))
            caller = yield from clerk.ask("DELETE", f"/v1/responses/{gone['id']}")
            is_one(caller, 200, "a response that is deleted")
            caller = yield from clerk.ask("GET", f"/v1/responses/{gone['id']}")
            is_one(caller, 404, "a response that was deleted")
            body = {"input": text, "previous_response_id": gone["id"]}
            caller = yield from clerk.ask("POST", "/v1/responses", body, for_a_place=True)
            is_one(caller, 404, "to go on with a response that was deleted")

    def afterwards(clerk: Clerk) -> Errand:
        for answer, _ in kept:
            caller = yield from clerk.ask("GET", f"/v1/responses/{answer['id']}")
            is_one(caller, 200, "a response that is kept")

    if not clerk.crowd.world.disk_trouble:
        clerk.lasts.append(afterwards)


def _is_whole(answer: dict[str, Any]) -> bool:
    """Whether the model came to the end of a completion, or of a response."""
    if "choices" in answer:
        return bool(answer["choices"][0]["finish_reason"] == "stop")
    return bool(answer["status"] == "completed")


def _text_of(answer: dict[str, Any]) -> str:
    """What is said in a completion, or in a response."""
    if "choices" in answer:
        return str(answer["choices"][0]["message"]["content"])
    texts = [part["text"] for item in answer["output"] if item["type"] == "message" for part in item["content"]]
    return "".join(texts)


def _heard_by_model(
    clerk: Clerk, text: str, asking: Generator[Ask | float, RequestClient, RequestClient]
) -> Generator[Ask | float, RequestClient, tuple[RequestClient, list[str] | None]]:
    """Ask, and learn what users said to the model by that."""
    heard: list[list[str]] = []

    def note(question: str, rows: list[dict[str, Any]]) -> None:
        if question == text:
            heard.append([str(row["content"]) for row in rows if row["role"] == "user"])

    listeners = clerk.crowd.world.upstream.on_question
    listeners.append(note)
    try:
        caller = yield from asking
    finally:
        listeners.remove(note)
    return caller, heard[0] if heard else None


def keys(clerk: Clerk) -> Errand:
    """With one key the same is answered as before, and something else anew (wire api 2.3)."""
    key = clerk.word()
    rng, path = clerk.rng, clerk.rng.choice(("/v1/chat/completions", "/v1/responses"))
    newest: tuple[str, str] | None = None  # the question that the key stands for, and the answer's id
    seen: list[str] = []
    texts = [f"plain: {clerk.word()}" for _ in range(2)]
    for _ in range(rng.randint(3, 5)):
        text = rng.choice(texts)
        body: dict[str, object] = {"model": "sim"}
        body |= {"messages": [{"role": "user", "content": text}]} if "chat" in path else {"input": text}
        caller = yield from clerk.ask("POST", path, body, headers={"idempotency-key": key}, for_a_place=True)
        answer = is_one(caller, 200, "a question with a key")
        if not clerk.same_programs or not _is_whole(answer):  # one that failed answers nobody else
            return
        if newest is not None and (newest[0] == text) is not (newest[1] == answer["id"]):
            violated(Invariant.ONE_ANSWER, f"{text!r} got {answer['id']}, and its key stands for {newest}")
        if answer["id"] in seen and newest is not None and newest[1] != answer["id"]:
            violated(Invariant.ONE_ANSWER, f"{text!r} got {answer['id']}, which is over")
        said_back(_text_of(answer), text)
        newest = text, answer["id"]
        seen.append(answer["id"])


def one_run(clerk: Clerk) -> Errand:
    """A run is begun, looked at until it is over, and then nothing more can be done with it."""
    text = f"plain: {clerk.word()}"
    caller = yield from clerk.ask("POST", "/v1/runs", {"input": text}, for_a_place=True)
    path = f"/v1/runs/{is_one(caller, 202, 'a run')['run_id']}"
    stops = clerk.rng.random() < 0.3
    if stops:
        caller = yield from clerk.ask("POST", f"{path}/stop", {})
        stops = caller.status == 200  # else it was over already
    last = ""
    for _ in range(ASKED_FOR):
        last = yield from _status(clerk, path, text, stops=stops)
        if last in OVER:
            break
        yield 1.0
    else:
        return  # it waits for others, or for a model that is silent
    caller = yield from clerk.ask("POST", f"{path}/stop", {})
    if clerk.same_programs:
        is_one(caller, 404, "to stop a run that is over", "run_not_found")
    caller = yield from clerk.ask("POST", f"{path}/approval", {"choice": "once"})
    if clerk.same_programs:
        is_one(caller, 409, "to allow something to a run that is over", "approval_not_active")
    again = yield from _status(clerk, path, text, stops=stops)
    if again != last:
        violated(Invariant.AS_TOLD, f"{path} was {last}, and is {again}")


def _status(clerk: Clerk, path: str, text: str, *, stops: bool) -> Generator[Ask | float, RequestClient, str]:
    caller = yield from clerk.ask("GET", path)
    if not clerk.same_programs:
        raise GivenUp
    view = is_one(caller, 200, "a run")
    status = str(view["status"])
    wrong = ("queued", "running") if stops else ("stopping", "cancelled")
    if status in wrong or status not in (*ON_ITS_WAY, *OVER):
        violated(Invariant.AS_TOLD, f"{path} asks nobody, was stopped: {stops}, and is {status}")
    if status == "completed":
        said_back(view["output"], text)
    return status


def wrong_keys(clerk: Clerk) -> Errand:
    """Five wrong keys in a minute are 429 for five; the right one is good all the same (decision 51)."""
    return clerk.alone("keys", _wrong_keys(clerk))


def _wrong_keys(clerk: Clerk) -> Errand:
    rng, wrong = clerk.rng, {"authorization": f"Bearer {clerk.word()}"}
    alone = not any(type(step) in SHOWS_KEYS for step in clerk.crowd.world.script.steps)
    for number in range(rng.randint(3, 9)):
        sent = clerk.crowd.now
        caller = yield from clerk.ask("GET", "/api/skills", headers=wrong, takes=(401, 429))
        guesses: list[float] = clerk.crowd.guessed_keys
        recent = [when for when in guesses if when > sent - BLOCKED_FOR]
        if alone and caller.status == 429 and len(recent) < GUESSES:
            violated(Invariant.NOT_BLOCKED, f"wrong key {number + 1} got 429 after {recent}")
        if caller.status == 429 and not 0 < int(caller.answer.headers.get(b"retry-after") or b"0") <= BLOCKED_FOR:
            violated(Invariant.BLOCKED, f"who guesses is told to come back {caller.answer.headers!r:.200}")
        if caller.status not in (401, 429):
            violated(Invariant.DOORS, f"a wrong key got {caller.status}")
        guesses.append(clerk.crowd.now)
        yield rng.choice((0.1, 0.1, 5.0))
    caller = yield from clerk.ask("GET", "/api/skills", takes=(401, 429))
    is_one(caller, 200, "the right key, where others have guessed")


CLERKS: tuple[Kind, ...] = (drawer, drawer, drawer, notes_of_the_user, responses, keys, one_run, wrong_keys)
