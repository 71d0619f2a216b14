"""What goes to the model, and comes back: pictures and other parts, a client's own tools, options, long histories."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from fuzz.audit import Audit, header
from fuzz.audits.heard import Events, Listener
from fuzz.part import Round, asking

__all__ = ["PARTS"]

MOST = 100  # responses that are kept
KEPT = 100  # rows that `truncation: "auto"` keeps
Members = dict[str, Any]
OPTIONS: tuple[tuple[str, Any], ...] = (
    *(("temperature", 0), ("temperature", 2), ("top_p", 0.5), ("presence_penalty", -2), ("frequency_penalty", 1.5)),
    *(("seed", 7), ("stop", "x"), ("stop", ["x", "y"]), ("response_format", {"type": "json_object"})),
)
HARMLESS: tuple[Members, ...] = ({"n": 1}, {"logprobs": False}, {"user": "u"}, {"store": False}, {"metadata": {}})


def _pictures(audit: Audit, heard: Listener) -> None:
    """Text and pictures in any of their forms come to the model in one, are stored so, and are there the next time."""
    word = audit.word()
    data = f"data:image/png;base64,{b64encode(word.encode()).decode()}"
    web = f"https://example.org/{word}.png"
    shown = {"type": "image_url", "image_url": {"url": web, "detail": "low"}}
    text = f"plain: {word}"
    forms: tuple[tuple[Members, Any], ...] = (
        (
            {"message": [{"type": "text", "text": text}, "and", {"type": "input_text", "text": "so\x00on"}]},
            f"{text}\nand\nsoon",
        ),
        (
            {"message": [{"type": "text", "text": text}, {"type": "input_image", "image_url": f" {data} "}]},
            [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": data}}],
        ),
        ({"message": [text, shown]}, [{"type": "text", "text": text}, shown]),
        (
            {
                "message": text,
                "attachments": [
                    {"contentType": "text/plain", "content": "!"},
                    {"contentType": "image/png", "content": f" {data.rpartition(',')[2]}\n"},
                ],
            },
            [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": data}}],
        ),
    )
    body, due = audit.pick(forms)
    chat = audit.new_chat()
    audit.right(audit.ask_api("POST", f"/api/sessions/{chat}/chat", body), 200)
    audit.same(heard.rows(), [{"role": "user", "content": due}], "what a model is shown")
    stored = audit.rows_of(chat)
    audit.same(stored[0]["content"], due, "what is stored of a picture")
    view = audit.right(audit.ask_api("GET", f"/api/sessions/{chat}"), 200)
    audit.same(view["preview"], " ".join(due.split() if isinstance(due, str) else text.split()), "a preview")
    audit.right(audit.ask_api("POST", f"/api/sessions/{chat}/chat", {"message": "plain: then"}), 200)
    audit.same(heard.rows()[0], {"role": "user", "content": due}, "a picture that was sent before")
    alone = {"message": [shown]}
    if audit.chance(0.5):
        body = {"messages": [{"role": "user", "content": [text, shown]}]}
        audit.right(audit.ask_api("POST", "/v1/chat/completions", body), 200)
        audit.same(heard.rows(), [{"role": "user", "content": [{"type": "text", "text": text}, shown]}], "a completion")
    else:
        audit.right(audit.ask_api("POST", f"/api/sessions/{chat}/chat", alone), 200, about="a picture alone")


def _options(audit: Audit, heard: Listener) -> None:
    """What shapes an answer goes to the model as it is; of two limits the lesser; what says nothing is left out."""
    names = dict(audit.rng.sample(OPTIONS, 3))
    limits = audit.pick(({}, {"max_tokens": 9}, *[{"max_tokens": 7, "max_completion_tokens": 9}] * 2))
    body = {"messages": [{"role": "user", "content": "plain: x"}], **names, **limits, **audit.pick(HARMLESS)}
    audit.right(audit.ask_api("POST", "/v1/chat/completions", body), 200)
    asked = heard.asked[-1]
    members = {name: value for name, value in asked.items() if name not in ("model", "messages", "tools")}
    stream = {"stream": True, "stream_options": {"include_usage": True}}
    due = {**names, **stream, **({"max_tokens": min(limits.values())} if limits else {})}
    audit.same(members, due, "the options of a model")
    if not asked["tools"]:
        audit.wrong("a model is told of no tools")


def _own_tools(audit: Audit, heard: Listener) -> None:
    """A client that brings tools has the model to itself: its messages and tools alone; calls are the answer."""
    word = audit.word()
    tools = [
        {"type": "function", "function": {"name": f"t_{n}", "description": word, "parameters": {"type": "object"}}}
        for n in range(audit.pick((1, 2)))
    ]
    calls = [[f"t_{n}", {"n": n}] for n in range(len(tools))]
    question = asking(
        word, Round(text=audit.pick(("", "let me")), calls=calls, usage=[5, 3]), Round(text="so", usage=[2, 1])
    )
    said = [{"role": "system", "content": f"Be {word}."}, {"role": "user", "content": question}]
    streams = audit.chance(0.5)
    more = audit.pick(({}, {"tool_choice": "auto"}, {"tool_choice": "required", "parallel_tool_calls": True}))
    body: Members = {"messages": said, "tools": tools, "stream": streams, **more}
    message, reason = _completed(audit, body)
    audit.same(heard.asked[-1]["tools"], tools, "the tools of a model whose client brings some")
    audit.same(heard.asked[-1]["messages"], said, "what a model is told whose client brings tools")
    audit.same({name: heard.asked[-1].get(name) for name in more}, more, "how a model is to choose")
    told = [{"id": f"call_0_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for n, (name, given) in enumerate(calls)]  # fmt: skip
    audit.same((message.get("tool_calls"), reason), (told, "tool_calls"), "the calls of a model")
    text = "let me " if "let me" in question else ""
    audit.same(message["content"], text or None, "what a model says beside its calls")
    results = [{"role": "tool", "tool_call_id": call["id"], "content": f"r {n}"} for n, call in enumerate(told)]
    then = [*said, {"role": "assistant", "content": text, "tool_calls": told}, *results]
    asked = len(heard.asked)
    message, reason = _completed(audit, {**body, "messages": then, "tool_choice": None})
    audit.same(heard.asked[-1]["messages"], then, "what a model is told of its calls")
    audit.same((message["content"], reason, len(heard.asked)), ("so ", "stop", asked + 1), "the answer behind results")
    rows: tuple[list[Members], ...] = (
        [*said, {"role": "assistant", "content": "", "tool_calls": told}],
        [*said, {"role": "assistant", "content": "", "tool_calls": [{"id": 5}]}, *results],
        [*said, {"role": "tool", "content": "x"}],
    )
    audit.right(audit.ask_api("POST", "/v1/chat/completions", {**body, "messages": audit.pick(rows)}), 400)
    audit.same(len(heard.asked), asked + 1, "how often a model was asked")


def _completed(audit: Audit, body: Members) -> tuple[Members, str]:
    """The message of a completion, in one or from its pieces, and why it ended."""
    events = Events()
    caller = audit.answer(audit.begin_api("POST", "/v1/chat/completions", body, events if body["stream"] else None))
    audit.right(caller, 200)
    if not body["stream"]:
        choice = caller.answer.json["choices"][0]
        return choice["message"], choice["finish_reason"]
    deltas = [data["choices"][0] for _, data in events.told]
    calls = [call for each in deltas for call in each["delta"].get("tool_calls", ())]
    audit.same([call.pop("index") for call in calls], list(range(len(calls))), "the places of calls")
    text = "".join(each["delta"].get("content", "") for each in deltas)
    content = text if text or not calls else None
    return {"content": content, **({"tool_calls": calls} if calls else {})}, deltas[-1]["finish_reason"]


def _long(audit: Audit, heard: Listener) -> None:
    """Of a long conversation all is given, or by `truncation` its last hundred rows: no result without its call."""
    word, many = audit.word(), audit.pick((29, 30, 31))
    calls: list[list[Any]] = [["skills_list", {}]] * many
    body: Members = {"conversation": word}
    session = ""
    for _ in range(audit.pick((3, 4))):
        text = asking(audit.word(), Round(calls=calls), Round(text="So."))
        caller = audit.ask_api("POST", "/v1/responses", {**body, "input": text})
        audit.right(caller, 200)
        session = header(caller, "x-svc-session-id")
    rows = audit.rows_of(session)
    text, cut = f"plain: {audit.word()}", audit.chance(0.6)
    audit.right(
        audit.ask_api("POST", "/v1/responses", {**body, "input": text, **({"truncation": "auto"} if cut else {})}), 200
    )
    due = rows[-KEPT:] if cut else rows
    while due[0]["role"] == "tool":
        due = due[1:]
    told = heard.rows()
    names = ("role", "content", "tool_call_id", "tool_calls")
    order = {call["id"]: n for row in due for n, call in enumerate(row.get("tool_calls", ()))}
    is_: list[Members] = []
    for row in due:  # results stand in the order of their calls, whenever they came
        kept = {name: row[name] for name in names if name in row}
        place = len(is_)
        while row["role"] == "tool" and is_[place - 1].get("role") == "tool":
            if order[is_[place - 1]["tool_call_id"]] < order[row["tool_call_id"]]:
                break
            place -= 1
        is_.insert(place, kept)
    audit.same(
        told, [*is_, {"role": "user", "content": text}], f"what a model is given of {len(rows)} rows, cut: {cut}"
    )


def _many(audit: Audit, heard: Listener) -> None:
    """A hundred responses are kept: the one that nobody has used for longest goes."""
    asked = [audit.ask_api("POST", "/v1/responses", {"input": "plain:"}) for _ in range(MOST)]
    ids = [audit.right(caller, 200)["id"] for caller in asked]
    used, goes, stays = ids[0], ids[1], ids[2]
    audit.right(audit.ask_api("GET", f"/v1/responses/{used}"), 200, about="the oldest of a hundred")
    audit.right(audit.ask_api("POST", "/v1/responses", {"input": "plain:"}), 200)
    if audit.chance(0.5):
        audit.restart("api")
    for each, status in ((goes, 404), (used, 200), (stays, 200)):
        audit.right(audit.ask_api("GET", f"/v1/responses/{each}"), status, about="one of a hundred and one")


def parts(audit: Audit) -> None:
    """Pictures, options, a client's own tools, and long histories."""
    heard = Listener(audit)
    for part in audit.rng.sample((_pictures, _pictures, _options, _own_tools, _long), 3):
        part(audit, heard)
    if audit.chance(0.12):
        _many(audit, heard)
    heard.stop()


PARTS = (parts,)
