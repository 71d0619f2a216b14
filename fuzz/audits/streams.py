"""Streams that are silent, left, cut by a restart, or of a model that fails at first; and what is found afterwards."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fuzz.audit import Audit
from fuzz.audits.heard import Events
from fuzz.audits.refusals import refused
from fuzz.part import Round, asking
from fuzz.upstream import Manner
from tests.support.sim_http import RequestClient as Caller

__all__ = ["STREAMS"]

KEEPALIVE = b": keepalive\n\n"
EVERY = 30.0  # s of silence
NOTICED = 8.0  # s in which the end of a reader is noticed
Members = dict[str, Any]
Way = tuple[str, Callable[[str], Members]]


def _ways(audit: Audit) -> dict[str, Way]:
    """Where a turn may be asked for, by name, and how."""
    chat = audit.new_chat()
    path = f"/api/sessions/{chat}/chat"
    return {
        "chat": (path, lambda text: {"message": text}),
        "chat, streamed": (f"{path}/stream", lambda text: {"message": text}),
        "completion": ("/v1/chat/completions", lambda text: {"messages": [{"role": "user", "content": text}]}),
        "completion, streamed": (
            "/v1/chat/completions",
            lambda text: {"messages": [{"role": "user", "content": text}], "stream": True},
        ),
        "response": ("/v1/responses", lambda text: {"input": text}),
        "response, streamed": ("/v1/responses", lambda text: {"input": text, "stream": True}),
        "run, streamed": ("/v1/runs", lambda text: {"input": text, "stream": True}),
    }


def _begin(audit: Audit, way: Way, text: str, events: Events | None = None) -> Caller:
    path, body = way
    goes_on = path == "/v1/chat/completions" and audit.chance(0.5)  # in a session that is there
    session = audit.new_chat() if goes_on else ""
    return audit.begin_api("POST", path, body(text), events, **({"x_svc_session_id": session} if session else {}))


def _silence(audit: Audit) -> None:
    """A comment for each half minute in which nothing is said, in each kind of stream, and none before."""
    ways = {name: way for name, way in _ways(audit).items() if name.endswith("streamed")}
    for name in audit.rng.sample([*ways], 2):
        wait = audit.pick((EVERY - 2.0, EVERY + 2.0, 2 * EVERY - 2.0, 2 * EVERY + 2.0, 3 * EVERY + 2.0))
        word = audit.word()
        caller = _begin(audit, ways[name], asking(word, Round(text=f"{word} so", wait=wait)))
        audit.right(audit.answer(caller, 200.0), 200)
        told, due = caller.answer.body.count(KEEPALIVE), int(wait // EVERY)
        audit.same(told, due, f"the comments in {wait:.0f} s of a {name}")
        if word.encode() not in caller.answer.body:
            audit.wrong(f"a {name} that was silent says {caller.answer.body[-200:]!r}")
        fields = [caller.answer.headers.get(each) for each in (b"content-type", b"cache-control", b"x-accel-buffering")]
        audit.same(fields, [b"text/event-stream", b"no-cache", b"no"], f"the headers of a {name}")


def _is_asked(audit: Audit, text: str) -> bool:
    return text in audit.world.upstream.questions


def _left(audit: Audit) -> None:
    """Who leaves a chat, or a run, finds its end later; who leaves anything else has it stopped."""
    ways = _ways(audit)
    for name in audit.rng.sample([*ways], 3):
        path, _ = ways[name]
        lasts = name.startswith(("chat", "run"))
        events, word = Events(), audit.word()
        text = asking(word, Round(text=f"{word} so", wait=20.0))
        caller = _begin(audit, ways[name], text, events if name.endswith("streamed") else None)
        audit.wait(partial(_is_asked, audit, text), 20.0, "the model is not asked")
        audit.rest(audit.pick((0.5, 3.0)))
        caller.hang_up(reset=True)
        audit.rest(NOTICED)
        asked = text in audit.world.upstream.questions
        audit.same(asked, lasts, f"whether a model goes on for a {name} that nobody reads")
        if name == "response, streamed" and events.told:
            response = events.told[0][1]["response"]["id"]
            kept = audit.right(audit.ask_api("GET", f"/v1/responses/{response}"), 200)
            audit.same(kept["status"], "incomplete", "a response that was left")
        run_id = events.told[0][1]["run_id"] if name.startswith("run") and events.told else ""
        if run_id:
            refused(audit, audit.ask_api("GET", f"/v1/runs/{run_id}/events"), 404, "run_not_found", None)
        audit.rest(25.0)
        if run_id:
            view = audit.right(audit.ask_api("GET", f"/v1/runs/{run_id}"), 200)
            audit.same((view["status"], view["output"]), ("completed", f"{word} so "), "a run that was left")
        if name.startswith("chat"):
            chat = path.removeprefix("/api/sessions/").partition("/")[0]
            rows = audit.rows_of(chat)
            said = [(row["role"], row["content"]) for row in rows][-2:]
            audit.same(said, [("user", text), ("assistant", f"{word} so ")], "a turn that was left")


def _stopped(audit: Audit) -> None:
    """The server is told to go: who reads is told, what was said is stored, and no run is known afterwards."""
    ways = _ways(audit)
    names = audit.rng.sample([each for each in ways if each.endswith("streamed")], 2)
    turns: list[tuple[str, str, Caller, Events]] = []
    for name in names:
        word, events = audit.word(), Events()
        text = asking(word, Round(text=f"{word} so", hang=True))
        turns.append((name, word, _begin(audit, ways[name], text, events), events))
    audit.rest(4.0)
    killed = audit.chance(0.3)
    audit.restart("api", kill=killed)
    for name, word, caller, events in turns:
        audit.wait_over(caller, 30.0, "a stream outlives its server")
        if killed:
            continue
        audit.same(caller.status, 200, f"a {name} that a restart ends")
        last, body = events.names[-1:], caller.answer.body
        ends = {"chat": ["done"], "comp": [], "resp": ["response.incomplete"], "run,": ["run.cancelled"]}[name[:4]]
        if ends:
            audit.same(last, ends, f"the end of a {name}")
        elif b'"finish_reason":"error"' not in body or not body.endswith(b"data: [DONE]\n\n"):
            audit.wrong(f"a {name} that a restart ends says {body[-300:]!r}")
        if name.startswith("chat"):
            flags = {key: events.told[-3][1][key] for key in ("completed", "partial", "interrupted", "content")}
            is_ = {"completed": False, "partial": True, "interrupted": True, "content": f"{word} so "}
            audit.same(flags, is_, "a turn that a restart ends")
            chat = ways[name][0].removeprefix("/api/sessions/").partition("/")[0]
            rows = audit.rows_of(chat)
            audit.same(rows[-1]["content"], f"{word} so ", "what was said until a restart")
        if name.startswith(("chat", "run")):
            run_id = events.told[0][1]["run_id"]
            refused(audit, audit.ask_api("GET", f"/v1/runs/{run_id}"), 404, "run_not_found", None)


def _at_last(audit: Audit) -> None:
    """A model that fails at first is asked again, four times in all; nobody is told, and nothing is said twice."""
    upstream, ways = audit.world.upstream, _ways(audit)
    name = audit.pick(ways)
    word, events = audit.word(), Events()
    for_good = audit.chance(0.3)
    upstream.trouble = audit.pick((Manner.REFUSE, Manner.REFUSE, Manner.BREAK)) if not for_good else Manner.REFUSE
    asked = upstream.asked
    text = f"plain: {word}"
    caller = _begin(audit, ways[name], text, events if name.endswith("streamed") else None)
    audit.wait(lambda: upstream.asked > asked, 20.0, "the model is not asked")
    audit.rest(60.0 if for_good else audit.pick((0.0, 2.0)))
    broke = upstream.trouble is Manner.BREAK
    upstream.trouble = None
    audit.answer(caller, 60.0)
    tries = upstream.asked - asked
    if for_good:
        audit.same(tries, 4, "how often a model is asked that fails")
        if not name.endswith("streamed"):
            refused(audit, caller, 502, "agent_incomplete", None)
        else:
            audit.same(caller.status, 200, f"a {name} whose model fails")
            if b"error" not in caller.answer.body and b"failed" not in caller.answer.body:
                audit.wrong(f"a {name} whose model fails says {caller.answer.body[-300:]!r}")
        return
    if broke:  # what was begun cannot be begun again
        return
    audit.right(caller, 200)
    said = caller.answer.body
    if name.endswith("streamed") and name[0] in "cr":
        deltas = [data.get("delta", "") for _, data in events.told if isinstance(data.get("delta"), str)]
        chunks = [data["choices"][0]["delta"].get("content", "") for _, data in events.told if data.get("choices")]
        audit.same(
            "".join((*deltas, *chunks)), f"You said {text} ", f"what a {name} says of a model that failed at first"
        )
    elif said.count(f"You said {text}".encode()) != 1:
        audit.wrong(f"a {name} of a model that failed at first says {said!r:.300}")
    if not 2 <= tries <= 4:
        audit.wrong(f"a model that failed at first was asked {tries} times")


def streams(audit: Audit) -> None:
    """Silence, readers who leave, a server that goes, and a model that fails at first."""
    for part in audit.rng.sample((_silence, _left, _stopped, _at_last, _at_last), 2):
        part(audit)


STREAMS = (streams,)
