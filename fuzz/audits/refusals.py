"""What is refused, with its whole answer, and what just is not: bodies, texts, lists and names at their limits.

One row for each rule of wire api 2.1 and 2.5: `param` names the place, the code is the one of the table, nobody is
asked, and nothing is stored.
"""

from __future__ import annotations

from typing import Any

from fuzz.audit import Audit
from fuzz.world import API_KEY
from tests.support.sim_http import RequestClient as Caller

__all__ = ["REFUSALS", "check_fields", "refused"]

COMPLETIONS, RESPONSES, RUNS, CHATS = "/v1/chat/completions", "/v1/responses", "/v1/runs", "/api/sessions"
FIELDS = {  # of every answer that is no stream, wire api 2.4; none says that it came by TLS
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "x-xss-protection": "0",
    "strict-transport-security": "",
    "access-control-allow-origin": "",
}
USER = {"role": "user", "content": "plain: x"}


def _said(content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


def _image(url: object) -> list[dict[str, Any]]:
    return [{"type": "image_url", "image_url": {"url": url}}]


def _named(session: object) -> dict[str, Any]:
    return {"input": "x", "session_id": session}


def _called(length: int) -> dict[str, Any]:
    return {"input": "x", "conversation": "n" * length}


def _with(**more: Any) -> dict[str, Any]:
    return {"messages": [USER], **more}


TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
# Path, body, code, place; all 400. {chat} is a chat that is there.
ROWS: tuple[tuple[str, Any, str | None, str | None], ...] = (
    *((path, b"{", None, None) for path in (COMPLETIONS, RESPONSES, RUNS, CHATS, "{chat}/chat", "{chat}/chat/stream")),
    *((path, [], None, None) for path in (COMPLETIONS, RESPONSES, RUNS, CHATS, "{chat}/chat", "{chat}/fork")),
    *((path, b"", None, None) for path in (COMPLETIONS, CHATS, "{chat}/fork", "{chat}/chat")),
    (COMPLETIONS, b'{"messages":[{"role":"user","content":"\\ud800"}]}', None, None),
    (COMPLETIONS, {}, None, "messages"),
    (COMPLETIONS, {"messages": []}, None, "messages"),
    (COMPLETIONS, {"messages": "x"}, None, "messages"),
    (COMPLETIONS, {"messages": [USER, 5]}, None, "messages[1]"),
    (COMPLETIONS, {"messages": [{"content": "x"}]}, None, "messages[0].role"),
    (COMPLETIONS, {"messages": [USER, {"role": "king", "content": "x"}]}, None, "messages[1].role"),
    (COMPLETIONS, {"messages": [{"role": "system", "content": "x"}]}, None, "messages"),
    (COMPLETIONS, _said(" \n\u200b"), None, "messages[0].content"),
    (COMPLETIONS, _said(5), "invalid_content_part", "messages[0].content"),
    (COMPLETIONS, _said([5]), "invalid_content_part", "messages[0].content[0]"),
    (COMPLETIONS, _said(["x", {"type": "text"}]), "invalid_content_part", "messages[0].content[1].text"),
    (COMPLETIONS, _said([{"text": "x"}]), "invalid_content_part", "messages[0].content[0].type"),
    (COMPLETIONS, _said([{"type": "file"}]), "unsupported_content_type", "messages[0].content[0].type"),
    (COMPLETIONS, _said(_image("ftp://x/y")), "invalid_image_url", "messages[0].content[0].image_url"),
    (COMPLETIONS, _said(_image("data:text/html,x")), "invalid_image_url", "messages[0].content[0].image_url"),
    (COMPLETIONS, _said(_image(None)), "invalid_image_url", "messages[0].content[0].image_url"),
    (COMPLETIONS, _with(stream="maybe"), None, "stream"),
    (COMPLETIONS, _with(temperature=2.01), None, "temperature"),
    (COMPLETIONS, _with(top_p=-0.01), None, "top_p"),
    (COMPLETIONS, _with(presence_penalty="1"), None, "presence_penalty"),
    (COMPLETIONS, _with(frequency_penalty=-2.5), None, "frequency_penalty"),
    (COMPLETIONS, _with(seed=0.5), None, "seed"),
    (COMPLETIONS, _with(stop=[]), None, "stop"),
    (COMPLETIONS, _with(response_format="json"), None, "response_format"),
    (COMPLETIONS, _with(max_tokens=0), None, "max_tokens"),
    (COMPLETIONS, _with(n=2), None, "n"),
    (COMPLETIONS, _with(logprobs=True), None, "logprobs"),
    (COMPLETIONS, _with(functions=[]), None, "functions"),
    (COMPLETIONS, _with(tools={}), None, "tools"),
    (COMPLETIONS, _with(tools=[TOOL, {}]), None, "tools[1]"),
    (COMPLETIONS, _with(tools=[{"type": "function", "function": {}}]), None, "tools[0].function.name"),
    (COMPLETIONS, _with(tool_choice="required"), None, "tool_choice"),
    (COMPLETIONS, _with(stream_options=5), None, "stream_options"),
    (RESPONSES, {}, None, "input"),
    (RESPONSES, {"input": []}, None, "input"),
    (RESPONSES, {"input": 5}, None, "input"),
    (RESPONSES, {"input": "  "}, None, "input[0].content"),
    (RESPONSES, {"input": "x", "instructions": 5}, None, "instructions"),
    (RESPONSES, {"input": "x", "conversation": ""}, None, "conversation"),
    (RESPONSES, {"input": "x", "conversation": "a", "previous_response_id": "b"}, None, "conversation"),
    (RESPONSES, {"input": "x", "conversation_history": {}}, None, "conversation_history"),
    (RESPONSES, {"input": "x", "store": "perhaps"}, None, "store"),
    (RUNS, {}, None, "input"),
    (RUNS, {"input": " "}, "missing_message", "input"),
    (RUNS, {"input": 5}, "invalid_content_part", "input"),
    (RUNS, {"input": [{"role": "user", "content": " "}]}, None, "input[0].content"),
    (RUNS, {"input": "x", "instructions": []}, None, "instructions"),
    (RUNS, {"input": "x", "conversation_history": [USER, {"role": "tool"}]}, None, "conversation_history[1].role"),
    (RUNS, {"input": "x", "conversation_history": [{"role": "user"}]}, None, "conversation_history[0].content"),
    *((RUNS, _named(each), "invalid_session_id", "session_id") for each in ("", "a/b", "..", "C:x", 5)),
    (CHATS, {"title": 5}, "invalid_title", "title"),
    (CHATS, {"model": 5}, None, "model"),
    (CHATS, {"system_prompt": 5}, "invalid_system_prompt", "system_prompt"),
    *((CHATS, {"id": each}, "invalid_session_id", "id") for each in ("a\\b", "x\ny", "a..b", "d:x")),
    ("{chat}/chat", {}, "missing_message", "message"),
    ("{chat}/chat", {"input": "\u200b"}, "missing_message", "input"),
    ("{chat}/chat", {"message": {"a": 1}}, "invalid_content_part", "message"),
    ("{chat}/chat", {"message": "x", "instructions": 5}, "invalid_system_message", "instructions"),
    (
        "{chat}/chat/stream",
        {"message": "x", "attachments": [{"contentType": "image/png", "content": "!"}]},
        "invalid_image_url",
        "attachments[0].content",
    ),
    ("{chat}/chat/stream", {"message": _image("x")}, "invalid_image_url", "message[0].image_url"),
)  # fmt: skip
HEADERS: tuple[tuple[dict[str, str], str | None, str], ...] = (  # of completions
    ({"x_svc_session_id": "../x"}, "invalid_session_id", "Session-Id"),
    ({"x_hermes_session_id": "x" * 257}, "invalid_session_id", "Session-Id"),
    ({"x_svc_session_key": "k" * 257}, None, "Session-Key"),
)


def _edges() -> tuple[tuple[str, Any, Any, str | None, str], ...]:
    """What just fits, what does not any more, and how that is refused. Made when it is needed: it is long."""
    web = "https://example.org/"
    parts = [{"type": "text", "text": "x"}]
    attached = {"contentType": "text/plain", "content": ""}
    return (
        (COMPLETIONS, _said(parts * 1_000), _said(parts * 1_001), "invalid_content_part", "messages[0].content"),
        (
            COMPLETIONS,
            _said(_image(web.ljust(8_192, "x"))),
            _said(_image(web.ljust(8_193, "x"))),
            "invalid_image_url",
            "messages[0].content[0].image_url",
        ),
        (COMPLETIONS, _with(tools=[TOOL] * 128), _with(tools=[TOOL] * 129), None, "tools"),
        (COMPLETIONS, _with(temperature=2), _with(temperature=2.1), None, "temperature"),
        (COMPLETIONS, _with(top_p=0), _with(top_p=1.1), None, "top_p"),
        (COMPLETIONS, {"messages": [USER] * 10_000}, {"messages": [USER] * 10_001}, None, "messages"),
        (RESPONSES, _called(256), _called(257), None, "conversation"),
        (
            RUNS,
            {"input": "x", "session_id": "s" * 256, "stream": True},
            {"input": "x", "session_id": "s" * 257},
            "invalid_session_id",
            "session_id",
        ),
        (
            "{chat}/chat",
            {"message": "x", "attachments": [attached] * 1_000},
            {"message": "x", "attachments": [attached] * 1_001},
            "invalid_content_part",
            "attachments",
        ),
        (CHATS, {"title": " " + "t" * 100}, {"title": "t" * 101}, "invalid_title", "title"),
    )  # fmt: skip


def check_fields(audit: Audit, caller: Caller) -> None:
    """The header fields that every answer carries."""
    headers = caller.answer.headers
    told = {name: (headers.get(name.encode()) or b"").decode() for name in FIELDS}
    audit.same(told, FIELDS, f"the headers of {caller.method} {caller.path}")
    if not headers.get(b"permissions-policy"):
        audit.wrong(f"{caller.path} is answered without a policy of permissions")


def refused(audit: Audit, caller: Caller, status: int, code: str | None, param: str | None) -> None:
    """The whole of a refusal in the long form (wire api 2.1)."""
    about = f"{caller.method} {caller.path}"
    audit.right(caller, status, about=about)
    error = dict(caller.answer.json["error"])
    said = error.pop("message")
    kind = "rate_limit_error" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
    is_: dict[str, Any] = {"type": kind, "param": param, "code": code}
    if status == 401:
        is_.pop("param")
    audit.same((error, bool(said), [*caller.answer.json]), (is_, True, ["error"]), f"how {about} is refused: {said}")
    if API_KEY in caller.answer.body.decode():
        audit.wrong(f"{about} says the key")
    check_fields(audit, caller)


def refusals(audit: Audit) -> None:
    """Bad requests are refused to the letter, and change nothing; what is just not too much is taken."""
    upstream = audit.world.upstream
    chat = f"{CHATS}/{audit.new_chat()}"
    total = audit.right(audit.ask_api("GET", f"{CHATS}?limit=1"), 200)["total"]
    asked = upstream.asked
    for path, body, code, param in audit.rng.sample(ROWS, 26):
        refused(audit, audit.ask_api("POST", path.replace("{chat}", chat), body), 400, code, param)
    headers, code, param = audit.pick(HEADERS)
    refused(audit, audit.ask_api("POST", COMPLETIONS, {"messages": [USER]}, **headers), 400, code, param)
    edges = _edges()
    for path, good, bad, code, param in audit.rng.sample(edges, 3):
        refused(audit, audit.ask_api("POST", path.replace("{chat}", chat), bad), 400, code, param)
        audit.same(upstream.asked, asked, f"how often the model was asked, and {path} was refused")
        caller = audit.ask_api("POST", path.replace("{chat}", chat), good)
        audit.right(caller, 201 if path == CHATS else 200, about=f"what just is not too much for {param}")
        total += path != "{chat}/chat"
        asked = upstream.asked
    audit.same(upstream.asked, asked, "how often the model was asked, and all was refused")
    now = audit.right(audit.ask_api("GET", f"{CHATS}?limit=1"), 200)["total"]
    if now > total:
        audit.wrong(f"there are {now} chats, and {total} were made")
    audit.right(audit.ask_api("DELETE", chat), 204)


REFUSALS = (refusals,)
