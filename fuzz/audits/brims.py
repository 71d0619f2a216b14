"""What is full: tables, lines and texts at their limits, one more, and again when there is room.

The limits are those of wire api 2.1, 2.3, 6.2 and 8.3; some tables are made small, so that they are full sooner.
"""

from __future__ import annotations

import json
from typing import Any

from fuzz.audit import Audit
from fuzz.audits.heard import Events, Listener
from fuzz.audits.lodge import Lodge
from fuzz.audits.messages import Client
from fuzz.audits.refusals import refused
from fuzz.part import Round, asking
from svc_proto.api.service import Api
from svc_proto.machines.chatrun import ChatRuns
from tests.support.sim_http import RequestClient as Caller

__all__ = ["BRIMS"]

CHATS = "/api/sessions"
CAP, LINE, ENDED, KEYS = 2, 3, 4, 3  # runs at once, that wait, that are remembered; keys: small, and reached soon
HELD = 400_000  # characters of a chat that a model is given
RESULT = 64 * 1024  # characters of one result
CUT = "\n[cut: the rest is too long]"
ANSWER = 1024 * 1024  # characters of one answer, and of events that nobody reads
CALLS = 32  # of one answer
OF_CALLER = 32  # sessions of MCP
CAPS = {"memory": 2_200, "user": 1_375}  # characters of notes
Members = dict[str, Any]


def _fit(api: Api) -> None:
    api.runs.registry = ChatRuns(CAP, max_queued=LINE, max_ended=ENDED)
    for route in api.router.routes:
        keys = getattr(getattr(route.handler, "__self__", None), "_keys", None)
        if keys is not None:
            keys._entries._cap = KEYS


def _the_line(lodge: Lodge) -> None:
    """So many turns wait, in chats that are busy or not; one more is refused, and leaves nothing."""
    runs: list[str] = []
    for _ in range(CAP):
        body = {"input": asking(lodge.word(), Round(text="so", hang=True))}
        runs.append(lodge.right(lodge.ask_api("POST", "/v1/runs", body), 202)["run_id"])
    chats = [lodge.new_chat() for _ in range(2)]
    waits: list[tuple[str, str, Caller, Events]] = []

    def wait() -> None:
        text, chat, events = f"plain: {lodge.word()}", lodge.pick(chats), Events()
        caller = lodge.begin_api("POST", f"{CHATS}/{chat}/chat/stream", {"message": text}, events)
        lodge.rest(0.3)
        waits.append((text, chat, caller, events))

    for _ in range(LINE):
        wait()
    for _ in range(2):
        late = lodge.ask_api("POST", f"{CHATS}/{lodge.pick(chats)}/chat", {"message": f"late {lodge.word()}"})
        refused(lodge, late, 429, "rate_limit_exceeded", None)
        lodge.same(late.answer.headers.get(b"retry-after"), b"1", "when there may be a place")
    told = lodge.right(lodge.ask_api("GET", "/health/detailed"), 200)
    lodge.same(told["active_agents"], CAP + LINE, "how many turns there are")
    leaver = waits.pop(lodge.rng.randrange(LINE))  # which gives its place back, wherever it stood
    if lodge.chance(0.5):
        run = next(run for run in lodge.api.runs.registry.live() if run.session_id == leaver[1] and not run.has_slot)
        mine = [each for each in [*waits, leaver] if each[1] == leaver[1]]
        first = min(mine, key=lambda each: int(each[0].split("audit")[1].rstrip("x")))
        lodge.stop_run(run.id)
        lodge.answer(first[2], 10.0)
        lodge.same(first[3].names, ["error", "done"], "a turn that was stopped before it began")
        waits = [each for each in [*waits, leaver] if each is not first]
    else:
        leaver[2].hang_up(reset=True)  # and its turn waits on
        waits.append(leaver)
        lodge.stop_run(runs.pop())
        lodge.rest(0.5)
    wait()
    for each in runs:
        lodge.stop_run(each)
    lodge.rest(5.0)
    for chat in chats:
        rows = lodge.rows_of(chat)
        said = [row["content"] for row in rows if row["role"] == "user"]
        due = [text for text, where, _, _ in waits if where == chat]
        lodge.same(sorted(said), sorted(due), "what was said in a chat whose turns have waited")
    for _, _, caller, events in waits:
        if caller.status:
            lodge.same(events.names[-1:], ["done"], "a turn that has waited")


def _the_ended(lodge: Lodge) -> None:
    """So many runs that are over are remembered: the one that ended first is forgotten, and no other."""
    ended: list[str] = []
    for _ in range(ENDED + lodge.pick((0, 1, 2))):
        body = {"input": f"plain: {lodge.word()}"}
        run = lodge.right(lodge.ask_api("POST", "/v1/runs", body), 202)["run_id"]
        lodge.rest(3.0)
        ended.append(run)
    for place, run in enumerate(reversed(ended)):
        caller = lodge.ask_api("GET", f"/v1/runs/{run}")
        if place < ENDED:
            lodge.same(lodge.right(caller, 200)["status"], "completed", f"a run behind which {place} others ended")
        else:
            refused(lodge, caller, 404, "run_not_found", None)


def _the_keys(lodge: Lodge) -> None:
    """So many keys stand for an answer: the one that was put there first is forgotten. A failure stands for none."""
    path = lodge.pick(("/v1/chat/completions", "/v1/responses"))
    stands: dict[str, tuple[str, str]] = {}  # key: text, id; the oldest first
    names = [lodge.word() for _ in range(KEYS + 2)]
    texts = [f"plain: {lodge.word()}" for _ in range(2)] + [asking(lodge.word(), Round(status=400))]
    heard = Listener(lodge)
    for _ in range(9):
        key, text = lodge.pick(names), lodge.pick(texts)
        body: Members = {"input": text} if "resp" in path else {"messages": [{"role": "user", "content": text}]}
        before = len(heard.asked)
        caller = lodge.ask_api("POST", path, body, idempotency_key=key)
        again = stands.get(key, ("", ""))[0] == text and text in texts[:2]
        lodge.same(len(heard.asked) == before, again, f"whether a key stands for {text[:20]}, of {[*stands]}")
        failed = text == texts[2]
        told = lodge.right(caller, 502 if failed else 200)
        if again:
            lodge.same(told["id"], stands[key][1], "the answer that a key stands for")
            continue
        stands.pop(key, None)
        if len(stands) >= KEYS:
            del stands[next(iter(stands))]
        stands[key] = (text, "" if failed else told["id"])
    heard.stop()


def _the_unread(lodge: Lodge) -> None:
    """What nobody reads is kept up to a size, and the run goes on; and an answer has an end."""
    long = lodge.chance(0.5)
    size = (ANSWER - 60_000) // 8 if not long else ANSWER // 8 + 10_000
    word = lodge.word()
    text = asking(word, Round(text=" ".join(["x" * size] * 8)))
    run = lodge.right(lodge.ask_api("POST", "/v1/runs", {"input": text}), 202)["run_id"]
    lodge.rest(20.0)
    view = lodge.right(lodge.ask_api("GET", f"/v1/runs/{run}"), 200)
    lodge.same(view["status"], "completed", "a run that nobody reads")
    whole = ("x" * size + " ") * 8
    lodge.same(
        len(view["output"]) >= ANSWER - 200_000 and whole.startswith(view["output"][:ANSWER]), True, "its output"
    )
    if not long:
        lodge.same(view["output"], whole, "the whole of a long answer")
    events = Events()
    reader = lodge.answer(lodge.begin_api("GET", f"/v1/runs/{run}/events", None, events), 60.0)
    small = sum(len(data["delta"]) for _, data in events.told if "delta" in data)
    if reader.status == 200:
        lodge.same((events.names[-1], small <= ANSWER), ("run.completed", True), "what was kept for a reader")
    else:
        refused(lodge, reader, 404, "run_not_found", None)
        lodge.same(size * 16 > ANSWER, True, "whether too much was kept for nobody")


def _the_history(lodge: Lodge) -> None:
    """Of a long chat a model is given the newest turns that fit, whole, and never half of one."""
    chat, heard = lodge.new_chat(), Listener(lodge)
    said: list[list[tuple[str, str]]] = []
    for _ in range(lodge.rng.randint(4, 6)):
        size = lodge.pick((500, 60_000, 90_000, 130_000, 199_000))
        first = [[name, {}] for name in lodge.pick(([], [], ["skills_list"]))]
        rounds = ([Round(text="so", calls=first)] if first else []) + [Round(text="y" * lodge.pick((10, 50_000)))]
        text = asking(lodge.word(), *rounds, more="x" * size)
        lodge.right(lodge.ask_api("POST", f"{CHATS}/{chat}/chat", {"message": text}), 200)
        due: list[tuple[str, str]] = []
        total, near = 0, False
        for turn in reversed(said):
            total += sum(len(content) for _, content in turn)
            # calls of tools count with their names and arguments, about a hundred characters each
            near = near or abs(total - HELD) < 1_000
            if total > HELD:
                break
            due = [*turn, *due]
        told = [(row["role"], row["content"]) for row in heard.rows(-len(rounds))][:-1]
        if not near:
            lodge.same(
                [(role, len(words)) for role, words in told], [(role, len(words)) for role, words in due], "sizes"
            )
            lodge.same(told == due, True, "whether a model is given the newest turns of a chat")
        rows = lodge.right(
            lodge.ask_api("GET", f"{CHATS}/{chat}/messages?limit={2 + 2 * len(first)}&order=latest"), 200
        )
        said.append([(row["role"], row["content"]) for row in rows["messages"]])
    heard.stop()


def _the_result(lodge: Lodge) -> None:
    """A long result is cut, says so, and is stored as the model is given it."""
    word, size = lodge.word(), lodge.pick((60_000, 65_300, 65_600, 200_000))
    content = f"# Do {word}\n" + "z" * size
    lodge.home.disk.put(f"{lodge.home.state}/skills/{word}/SKILL.md", content.encode())
    chat, heard = lodge.new_chat(), Listener(lodge)
    text = asking(word, Round(calls=[["skill_view", {"name": word}]]), Round(text="So."))
    lodge.right(lodge.ask_api("POST", f"{CHATS}/{chat}/chat", {"message": text}), 200)
    told = heard.asked[-1]["messages"][-1]["content"]
    heard.stop()
    shown = json.dumps(lodge.right(lodge.ask_api("GET", f"/api/skills/{word}"), 200), separators=(",", ":"))
    is_ = shown if len(shown) <= RESULT else shown[: RESULT - len(CUT)] + CUT
    lodge.same((len(told), told == is_), (len(is_), True), "the result of a tool that says much")
    rows = lodge.rows_of(chat)
    lodge.same([row["content"] == told for row in rows if row["role"] == "tool"], [True], "what is stored of it")


def _the_calls(lodge: Lodge) -> None:
    """So many calls in one answer are made, in their order; one more is an error, and none is made."""
    lodge.home.disk.put(f"{lodge.home.state}/memories/MEMORY.md", b"")
    for many in (CALLS, CALLS + 1):
        chat = lodge.new_chat()
        is_ = [f"{n}{lodge.word()}" for n in range(many)]
        calls: list[list[Any]] = [["memory", {"action": "add", "content": word}] for word in is_]
        text = asking(lodge.word(), Round(calls=calls), Round(text="So."))
        lodge.right(lodge.ask_api("POST", f"{CHATS}/{chat}/chat", {"message": text}), 200 if many == CALLS else 502)
        notes = lodge.right(lodge.ask_api("GET", "/api/memory?target=memory"), 200)["entries"]
        lodge.same([each for each in notes if each in is_], is_ if many == CALLS else [], f"what comes of {many} calls")
        for note in notes:
            lodge.right(lodge.ask_api("DELETE", "/api/memory", {"target": "memory", "old_text": note}), 200)


def _the_notes(lodge: Lodge) -> None:
    """Notes up to a size, to the character; what makes them less is taken also where a person has written too many."""
    target = lodge.pick([*CAPS])
    cap, entries = CAPS[target], list[str]()
    path = f"{lodge.home.state}/memories/{'MEMORY' if target == 'memory' else 'USER'}.md"
    if lodge.chance(0.4):
        entries = [f"{n} " + "p" * 900 for n in range(3)]
    lodge.home.disk.put(path, "\n§\n".join(entries).encode())

    def usage(of: list[str]) -> str:
        size = sum(map(len, of))
        return f"{size * 100 // cap}% - {size:,}/{cap:,} chars"

    for _ in range(8):
        room = cap - sum(map(len, entries))
        word = lodge.word()
        fresh = (word + "n" * max(0, lodge.pick((room, room + 1, room // 2, 30)) - len(word)))[: cap + 1]
        kind = lodge.pick(("add", "add", "replace", "remove"))
        old = lodge.pick(entries) if entries else ""
        if kind == "add" or not old:
            method, body, then = "POST", {"content": fresh}, [*entries, fresh]
        elif kind == "replace":
            method, body = "PATCH", {"old_text": old, "content": fresh}
            then = [fresh if each == old else each for each in entries]
        else:
            method, body, then = "DELETE", {"old_text": old}, [each for each in entries if each != old]
        caller = lodge.ask_api(method, "/api/memory", {"target": target, **body})
        size = sum(map(len, then))
        good = size <= cap or size <= sum(map(len, entries))
        told = lodge.right(caller, 200 if good else 400, about=f"{size} of {cap} characters")
        entries = then if good else entries
        lodge.same((told["success"], told["usage"]), (good, usage(entries)), "how full notes are")
        if good:
            lodge.same((told["target"], told["entry_count"]), (target, len(entries)), "notes")
        else:
            lodge.same(told["current_entries"], entries, "the notes that are there")
        shown = lodge.right(lodge.ask_api("GET", f"/api/memory?target={target}"), 200)
        row = {"target": target, "entries": entries, "entry_count": len(entries), "usage": usage(entries)}
        lodge.same(shown, {**row, "targets": [row]}, "the notes")


def _the_sessions(lodge: Lodge) -> None:
    """A caller has so many sessions of MCP; one more ends that which was not used for longest, and is not under way."""
    client = Client(lodge, (lodge.home, lodge.inside), lodge.key, "svc-agent")
    there = [client.open() for _ in range(OF_CALLER)]
    for _ in range(3):
        lodge.rest(1.5)  # which was used last is known to the second
        used = lodge.pick(there[:4])
        lodge.right(client.request("ping", {}, used), 200, about="a session of MCP among many")
        there.remove(used)
        there.append(used)
    gone = there.pop(0)
    there.append(client.open())
    told = [client.request("ping", {}, each).status for each in (gone, *there[:3])]
    lodge.same(told, [404, 200, 200, 200], "sessions, when there was one too many")


BRIMFUL = (
    *(_the_line, _the_line, _the_ended, _the_keys, _the_keys, _the_unread, _the_history, _the_result),
    *(_the_calls, _the_notes, _the_notes, _the_sessions),
)


def brims(audit: Audit) -> None:
    """Some of what can be full is filled."""
    lodge = Lodge(audit, fit=_fit)
    for part in audit.rng.sample(BRIMFUL, 4):
        part(lodge)
    lodge.leave()


BRIMS = (brims, brims)
