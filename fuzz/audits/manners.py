"""An API by other settings: open to its network, to some pages, to a monitor, by another name, and without a model."""

from __future__ import annotations

from typing import Any

from fuzz.audit import Audit
from fuzz.audits.guesses import Guesses
from fuzz.audits.heard import Events
from fuzz.audits.lodge import Lodge
from fuzz.audits.refusals import refused
from fuzz.part import Round, asking
from svc_proto.basics.brand import BRANDS
from tests.support.sim_http import RequestClient as Caller

__all__ = ["MANNERS"]

CHATS = "/api/sessions"
EDGE = 1.5  # s
OTHERS = (("GET", "/health", 200), ("GET", "/v1/none", 404), ("DELETE", "/v1/models", 405), ("OPTIONS", CHATS, 200))
Members = dict[str, Any]
HELLO = [{"role": "user", "content": "plain: x"}]


def _raw(lodge: Lodge, method: str, path: str, body: object = None, **fields: str) -> Caller:
    """With just these fields."""
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return lodge.answer(lodge.begin((lodge.home, lodge.inside), method, path, body, named))


def _open(audit: Audit) -> None:
    """Without a key everybody of this network is served who names this host as such; some headers need a key."""
    lodge = Lodge(audit, key="", names=("mine.example",))
    told = lodge.right(_raw(lodge, "GET", "/v1/capabilities"), 200)
    lodge.same(told["auth"], {"type": "bearer", "required": False}, "whether a key is needed")
    names = {
        "127.0.0.1:8642": True,
        "localhost": True,
        "box": True,
        "box.local:1": True,
        "box.lan": True,
        "[::1]:1": True,
    }
    names |= {"mine.example": True, "mine.example:9": False, "evil.example": False, "x.mine.example": False}
    for name in lodge.rng.sample([*names], 5):
        if name == "mine.example:9":
            continue
        for path in ("/api/sessions", "/health"):
            caller = _raw(lodge, "GET", path, host=name)
            if names[name] or path == "/health":
                lodge.right(caller, 200, about=f"{path} of {name}")
            else:
                refused(lodge, caller, 403, "host_not_allowed", None)
    lodge.right(_raw(lodge, "GET", CHATS, authorization="Bearer whatever"), 200, about="a key where none is needed")
    for field in ("x_svc_session_id", "x_hermes_session_id", "x_svc_session_key", "x_hermes_session_key"):
        before = lodge.world.upstream.asked
        caller = _raw(lodge, "POST", "/v1/chat/completions", {"messages": HELLO}, **{field: "mine"})
        refused(lodge, caller, 403, None, None)
        lodge.same(lodge.world.upstream.asked, before, "how often a model is asked for who may not say that")
    plain = _raw(lodge, "POST", "/v1/chat/completions", {"messages": HELLO})
    lodge.right(plain, 200, about="a completion without a key")
    lodge.leave()


def _pages(audit: Audit) -> None:
    """Pages of the origins that are allowed may call, and read what they are told; others get 403 and nothing."""
    every = audit.chance(0.3)
    good = ("https://a.example", "http://b.example:81")
    lodge = Lodge(audit, cors_origins=("*",) if every else good)
    origins = (*good, *good, "https://a.example:444", "http://a.example", "https://A.example", "null", "")
    chat = lodge.new_chat()
    rows: tuple[tuple[str, str, Any, int], ...] = (
        ("GET", CHATS, None, 200),
        ("GET", "/health", None, 200),
        ("GET", f"{CHATS}/nobody", None, 404),
        ("GET", "/v1/nothing", None, 404),
        ("POST", f"{CHATS}/{chat}/chat/stream", {"message": "plain: x"}, 200),
        ("POST", "/v1/chat/completions", {"messages": HELLO, "stream": True}, 200),
        ("POST", "/v1/runs", {}, 400),
        ("OPTIONS", CHATS, None, 200),
        ("OPTIONS", "/v1/nothing", None, 200),
    )
    for _ in range(9):
        method, path, body, status = lodge.pick(rows)
        origin, key = lodge.pick(origins), lodge.chance(0.8)
        fields = {"authorization": f"Bearer {lodge.key}"} if key else {}
        fields |= {"origin": origin} if origin else {}
        caller = _raw(lodge, method, path, body, **fields)
        allowed = not origin or every or origin in good
        needs = not key and method != "OPTIONS" and path not in ("/health", "/v1/nothing")
        due = 403 if not allowed else 401 if needs else status
        lodge.same(caller.status, due, f"{method} {path} by a page of {origin!r}, key: {key}")
        headers = caller.answer.headers
        shown = (headers.get(b"access-control-allow-origin") or b"").decode()
        is_ = "*" if every else origin if origin in good else ""
        lodge.same(shown, is_, f"whom {method} {path} is for, by a page of {origin!r}")
        lodge.same(b"origin" in (headers.get(b"vary") or b"").lower(), not every, "whether an answer is of its page")
        if not allowed:
            lodge.same(caller.answer.body, b"", "what a page is told that may not call")
        if method == "OPTIONS" and allowed:
            names = ("access-control-allow-methods", "access-control-allow-headers", "access-control-max-age")
            told = [(headers.get(name.encode()) or b"").decode() for name in names]
            words = "Authorization, Content-Type, Idempotency-Key"
            lodge.same(told, ["GET, POST, PATCH, DELETE, OPTIONS", words, "600"], "what a page may send")
    lodge.leave()


def _monitored(audit: Audit) -> None:
    """With a token of their own monitors come from anywhere, and nobody else does."""
    token = f"monitor-{audit.word()}"
    lodge = Lodge(audit, metrics_token=token)
    far = lodge.host()

    def ask(shown: str, *, here: bool) -> int:
        place = (lodge.home, lodge.inside) if here else (far, lodge.outside)
        fields = {"authorization": shown} if shown else {}
        return lodge.answer(lodge.begin(place, "GET", "/metrics", None, fields)).status

    for here in (True, False):
        told = [ask(shown, here=here) for shown in (f"Bearer {token}", f"bearer {token}", "", f"Bearer {token}x")]
        lodge.same(told, [200, 200, 401, 401], f"what monitors are told, here: {here}")
        lodge.same(ask(f"Bearer {lodge.key}", here=here), 401, "the API's key at the monitor's door")
    lodge.right(lodge.ask_api("GET", CHATS), 200)
    caller = lodge.begin_with(token, "GET", CHATS, place=(far, lodge.outside))
    refused(lodge, lodge.answer(caller), 401, "invalid_api_key", None)
    lodge.leave()


def _guessed(audit: Audit) -> None:
    """Wrong keys are counted by address: five in a minute are a block of five minutes, which the right key passes."""
    lodge = Lodge(audit)
    hosts = [lodge.host() for _ in range(2)]
    guesses = {host.address: Guesses() for host in hosts}
    for _ in range(lodge.rng.randint(14, 26)):
        host = lodge.pick((*hosts, hosts[0], hosts[0]))
        mine, now = guesses[host.address], lodge.now
        kind = lodge.pick(("wrong",) * 8 + ("right", "none", "other", "other", "wait", "wait"))
        if kind == "wait":
            if not lodge.rest_about(mine.marks, EDGE):
                lodge.rest(20.0)
            continue
        if any(abs(now - mark) < EDGE / 2 for mark in mine.marks):
            lodge.rest(EDGE)
            continue
        if kind == "other":  # what no key opens, or shuts, is neither a guess nor a right one
            method, path, status = lodge.pick(OTHERS)
            key = lodge.pick((lodge.key, f"no-{lodge.word()}", ""))
            caller = lodge.answer(lodge.begin_with(key, method, path, place=(host, lodge.outside)))
            lodge.same(caller.status, status, f"{method} {path} with {key!r}")
            continue
        key = {"wrong": f"no-{lodge.word()}", "right": lodge.key, "none": ""}[kind]
        path = lodge.pick(("/v1/models", "/api/sessions", "/v1/runs/x", "/mcp"))
        path = "/v1/models" if kind == "right" else path
        caller = lodge.answer(lodge.begin_with(key, "GET", path, place=(host, lodge.outside)))
        if kind == "right":
            lodge.right(caller, 200, about="the right key")
            mine.failures.clear()
        elif kind == "none":
            refused(lodge, caller, 401, "invalid_api_key", None)
        elif now < mine.until:
            refused(lodge, caller, 429, "rate_limit_exceeded", None)
        else:
            refused(lodge, caller, 401, "invalid_api_key", None)
            mine.failed(lodge.now)
    lodge.leave()


def _named(audit: Audit) -> None:
    """By the words of clients in use: each name that bears the product's, and both spellings of what is asked."""
    name = audit.pick([*BRANDS])
    lodge = Lodge(audit, brand=BRANDS[name])
    view = lodge.right(lodge.ask_api("POST", CHATS, {}), 201)
    lodge.same(view["object"], f"{name}.session", "the kind of a chat")
    other = lodge.pick(("svc", "hermes"))
    text = asking(lodge.word(), Round(calls=[["skills_list", {}]]), Round(text="So."))
    body = {"messages": [{"role": "user", "content": text}], "stream": True}
    wants = lodge.pick(("1", "true", "0", ""))
    fields = {f"x_{other}_session_id": view["id"], f"x_{other}_session_key": "scope"}
    fields |= {f"x_{other}_tool_progress": wants} if wants else {}
    events = Events()
    caller = lodge.answer(lodge.begin_api("POST", "/v1/chat/completions", body, events, **fields))
    lodge.right(caller, 200)
    told = {
        key.decode(): value.decode() for key, value in caller.answer.headers if key.startswith((b"x-svc", b"x-herm"))
    }
    lodge.same(
        told, {f"x-{name}-session-id": view["id"], f"x-{name}-session-key": "scope"}, "the headers of a completion"
    )
    shown = [data for kind, data in events.told if kind == f"{name}.tool.progress"]
    kinds = {kind for kind, _ in events.told if kind != "message"}  # which is that of an event without a name
    due = (
        [("skills_list", "call_0_0", "running"), ("skills_list", "call_0_0", "completed")]
        if wants in ("1", "true")
        else []
    )
    lodge.same([(data["tool"], data["toolCallId"], data["status"]) for data in shown], due, "the progress of tools")
    lodge.same(kinds, {f"{name}.tool.progress"} if due else set(), "the events of a stream of chunks")
    rows = lodge.rows_of(view["id"])
    lodge.same(rows[0]["content"], text, "the session that a header names")
    run = lodge.right(lodge.ask_api("POST", "/v1/runs", {"input": "plain: x"}), 202)["run_id"]
    kind = lodge.right(lodge.ask_api("GET", f"/v1/runs/{run}"), 200)["object"]
    lodge.same(kind, f"{name}.run", "the kind of a run")
    lodge.leave()


def _alone(audit: Audit) -> None:
    """Without a model the built-in agent answers: it does what it is told, says what came of it, and counts words."""
    lodge = Lodge(audit, model=False)
    word = lodge.word()
    rows: tuple[tuple[str, str, list[str]], ...] = (  # what is said, what is answered, and the tools that it takes
        (f"/echo {word} so", f"{word} so", []),
        (f"/echo  {word}", word, []),
        ("/count 5", "1 2 3 4 5", []),
        (f"/no{word} x", f"I know no command /no{word}. `/help` lists those there are.", []),
        ("/think", "Thought of.", []),
        ("/wait 1", "`demo_wait` answered:\n\n```\nwaited 1 s\n```", ["demo_wait"]),
        ("/skills", '`skills_list` answered:\n\n```\n{"skills":[],"count":0}\n```', ["skills_list"]),
        ("/memory", "memory (0% - 0/2,200 chars):\nuser (0% - 0/1,375 chars):", []),
        ("/memory dance", "Say `/memory add TEXT`, `/memory remove TEXT` or `/memory replace OLD => NEW`.", []),
    )
    said = 0
    chat, history = lodge.new_chat(), 0
    for line, due, tools in lodge.rng.sample(rows, 5):
        body, events = {"message": line}, Events()
        lodge.answer(lodge.begin_api("POST", f"{CHATS}/{chat}/chat/stream", body, events), 120.0)
        told = "".join(data["delta"] for name, data in events.told if name == "assistant.delta")
        lodge.same(told, due, f"what {line!r} is answered")
        used = [data["tool_name"] for name, data in events.told if name == "tool.completed"]
        lodge.same(used, tools, f"the tools of {line!r}")
        done = events.told[-3][1]
        lodge.same((done["content"], done["completed"]), (due, True), "the end of such an answer")
        said += 2 + 2 * bool(tools)
        if not tools and line != "/think":
            tokens = {"input_tokens": len(line.split()) + history, "output_tokens": len(due.split())}
            shown = {name: done["usage"][name] for name in tokens}
            lodge.same(shown, tokens, f"the words of {line!r}, counted")
        rows_now = lodge.rows_of(chat)
        lodge.same(len(rows_now), said, "the rows of a chat with the built-in agent")
        history = sum(len(row["content"].split()) for row in rows_now)
    plain = lodge.right(lodge.ask_api("POST", f"{CHATS}/{chat}/chat", {"message": "hello"}), 200)["message"]["content"]
    lodge.same("No model is connected" in plain, True, "what is said where there is no model")
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    asked = {"messages": [{"role": "user", "content": "/echo x"}], "tools": [tool]}
    told = lodge.right(lodge.ask_api("POST", "/v1/chat/completions", asked), 200)["choices"][0]
    lodge.same((told["finish_reason"], told["message"]["content"]), ("stop", "x"), "tools that the agent does not call")
    refused(
        lodge, lodge.ask_api("POST", "/v1/chat/completions", {**asked, "tool_choice": "required"}), 400, None, "tools"
    )
    models = lodge.right(lodge.ask_api("GET", "/api/available-models"), 200)
    lodge.same(
        (models["provider"], [each["id"] for each in models["models"]]), ("builtin", ["svc-agent"]), "the models"
    )
    lodge.leave()


def manners(audit: Audit) -> None:
    """Some APIs, each with settings of its own."""
    for part in audit.rng.sample((_open, _pages, _pages, _monitored, _guessed, _guessed, _named, _alone), 3):
        part(audit)


MANNERS = (manners, manners)
