"""Servers of MCP that the agent uses: what a model is told of their tools, who is asked, and what comes of a call.

By docs/mcp-servers.md, with decisions 155, 156 and 162. A server says what it likes; here each answer is known.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import partial

from fuzz.audit import Audit
from fuzz.audits.heard import Events, Listener
from fuzz.audits.lodge import Lodge
from fuzz.audits.shop import CHATS, Bench, Members, Shop, called, tool
from fuzz.part import Round, asking

__all__ = ["SERVERS"]

LISTED_WITHIN = 6.0  # s in which a list that has changed is read again
READY = 20.0  # s that a turn waits for a server that was never there
TOOLS, ALL_TOOLS, SCHEMA = 64, 128, 8 * 1024  # of one server, of all, characters of one tool's parameters
SAID = 800  # characters of what it says of a tool
RESULT, CUT = 64 * 1024, "\n[cut: the rest is too long]"
DENIED, NOBODY = "the user did not allow this call", "nobody can be asked from here"
PNG = b"\x89PNG\r\n\x1a\n"
EDGE = 0.5  # s
CHOICES = ("once", "session", "always", "always", "deny")


def _text(*words: str, **more: object) -> Members:
    return {"result": {"content": [{"type": "text", "text": each} for each in words], **more}}


# --- who is asked ---


class _Memory:
    """Two servers with two tools each, what they say of them, and what was allowed of that."""

    def __init__(self, audit: Audit) -> None:
        self.bench = Bench(Lodge(audit))
        self.shops = [Shop("one"), Shop("two")]
        self.words = {(shop.name, name): tool(name) for shop in self.shops for name in ("look", "act")}
        self.args: dict[str, list[str]] = {shop.name: [] for shop in self.shops}
        self.always: list[str] = []
        self.here: list[tuple[str, str]] = []
        lodge = self.bench.lodge
        self.far = {shop.name: shop.opens_far(lodge) for shop in self.shops if lodge.chance(0.5)}
        for shop in self.shops:
            shop.opens(lodge)
        self.show()
        self.chats = [self.bench.lodge.new_chat() for _ in range(2)]

    def show(self) -> None:
        """They say so, and are to be used so, from now on."""
        for shop in self.shops:
            shop.tools = [self.words[shop.name, name] for name in ("look", "act")]
            shop.tell_changed()
        self.bench.configure({shop.name: self.entry(shop.name) for shop in self.shops})
        if self.far:  # nobody tells of a change from there
            self.bench.lodge.right(self.bench.lodge.ask_api("POST", "/api/mcp-servers/reload", {}), 200)

    def entry(self, name: str) -> Members:
        """A program with its arguments, or an address."""
        args = self.args[name]
        if name in self.far:
            return {"url": "/".join([self.far[name], *args])}
        return {"command": name, "args": args}

    def change(self, shop: Shop, name: str) -> str:
        """A word of it, or what it stands for; or the API goes, and is there again."""
        lodge, row = self.bench.lodge, self.words[shop.name, name]
        others: dict[str, Members] = {
            "words": {**row, "description": f"Does {lodge.word()}."},
            "schema": {**row, "inputSchema": {**row["inputSchema"], "title": lodge.word()}},
            "hints": {**row, "annotations": {"title": lodge.word()}},
            "back": tool(name),
        }
        change = str(lodge.pick(("", "", "", *others, "program", "go", "kill")))
        if change in others:
            self.words[shop.name, name] = others[change]
        elif change == "program":
            self.args[shop.name] = lodge.pick(([], ["-v"], [lodge.word()]))
        elif change:
            lodge.again(kill=change == "kill")
            self.here.clear()
        self.show()
        lodge.rest(LISTED_WITHIN)
        return change

    def call(self, shop: Shop, name: str) -> None:
        """In one of two chats: whether somebody is asked, what comes of that, and what is remembered of it."""
        lodge, bench, change = self.bench.lodge, self.bench, self.change(shop, name)
        chat, mark, choice = lodge.pick(self.chats), lodge.word(), lodge.pick(CHOICES)
        edition = json.dumps([shop.name, self.args[shop.name], self.words[shop.name, name]])
        asks = edition not in self.always and (chat, edition) not in self.here
        before = len(shop.marks)
        (told,) = bench.turn([called(shop.name, name, mark)], chat, choice)
        asked = [(data["tool"], data["args"], data["description"], data["allow_permanent"]) for data in bench.asked]
        tool_name, why = f"mcp_{shop.name}_{name}", f"It is a tool of the MCP server {shop.name}."
        due = [(tool_name, {"mark": mark}, why, True)] if asks else []
        lodge.same(asked, due, f"who is asked about {tool_name} behind {change or 'nothing'}")
        said = bench.offered[tool_name]["description"]
        is_ = f"[MCP server {shop.name}] {self.words[shop.name, name]['description']}"
        lodge.same(said, is_, "what a model is told of a tool")
        done = not asks or choice != "deny"
        lodge.same(shop.marks[before:], [mark] if done else [], f"what {shop.name} is told behind {choice}")
        lodge.same((told == f"done {mark}", DENIED in told), (done, not done), f"what a call came to: {told}")
        self.here += [(chat, edition)] if asks and choice in ("session", "always") else []
        self.always += [edition] if asks and choice == "always" else []


def _editions(audit: Audit) -> None:
    """An answer is for this tool at this server in these words: in its chat, or for good, over any restart."""
    memory = _Memory(audit)
    lodge = memory.bench.lodge
    shop, name = memory.shops[0], "act"
    for _ in range(lodge.rng.randint(6, 9)):
        if lodge.chance(0.3):
            shop, name = lodge.pick(memory.shops), lodge.pick(("look", "act"))
        memory.call(shop, name)
    if lodge.chance(0.5):
        _nobody(memory, memory.shops[0])
    lodge.leave()


def _nobody(memory: _Memory, shop: Shop) -> None:
    """Where no questions are shown a tool that asks is not called."""
    lodge = memory.bench.lodge
    heard, mark = Listener(lodge), lodge.word()
    memory.words[shop.name, "look"] = tool("look", f"Is {mark}.")
    memory.show()
    lodge.rest(LISTED_WITHIN)
    text, chat = asking(mark, Round(calls=[called(shop.name, "look", mark)]), Round(text="So.")), lodge.new_chat()
    path, body = lodge.pick(
        (
            (f"{CHATS}/{chat}/chat", {"message": text}),
            ("/v1/responses", {"input": text}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": text}]}),
        )
    )
    lodge.right(lodge.ask_api("POST", path, body), 200)
    heard.stop()
    lodge.same(mark in shop.marks, False, "whether is called what nobody could allow")
    lodge.same(NOBODY in str(heard.rows()[-1]["content"]), True, "what a model is told where nobody is asked")


# --- what there is ---


def _listed(audit: Audit) -> None:
    """Entries of all kinds: which tools there are of each, by which names, and which of them ask."""
    bench = Bench(Lodge(audit))
    lodge = bench.lodge
    names = ("look", "act", "see", "do it", "n" * 70)
    entries: dict[str, Members] = {
        "plain": {},
        "auto": {"auto": ["look", "n" * 70, "other"]},
        "Trusted One!": {"trust": True},
        "trusted  one": {"trust": "true"},
        "some": {"tools": ["look", "see", "other"]},
        "most": {"tools": {"exclude": ["look"]}},
        "both": {"tools": {"include": ["look", "see"], "exclude": ["see"]}},
        "beside": {"include": ["look", "act"], "exclude": ["act"], "auto": ["look"]},
    }
    slugs = {"Trusted One!": "trusted-one", "trusted  one": "trusted-one"}
    kept = lodge.rng.sample([*entries], 4)
    rows, due = list[Members](), dict[str, bool]()  # tools, and whether each asks
    taken: list[str] = []
    servers: dict[str, Members] = {}
    for place, name in enumerate(kept):
        shop = Shop(f"shop{place}", *(tool(each, readOnlyHint=each in ("look", "see")) for each in names))
        servers[name] = {"command": shop.opens(lodge), **entries[name]}
        slug = slugs.get(name, name)
        slug = f"{slug}-2" if slug in taken else slug
        taken.append(slug)
        wanted = {
            "some": ("look", "see"),
            "most": names[1:],
            "both": ("look",),
            "beside": ("look",),
        }.get(name, names)
        mine: list[tuple[str, bool]] = []
        for each in wanted:
            silent = each in entries[name].get("auto", ()) or (name == "Trusted One!" and each in ("look", "see"))
            mine.append((f"mcp_{slug}_{each}", not silent))
        due.update(mine)
        rows.append({"name": " ".join(name.split()) if name != "trusted  one" else name, "tools": mine})
    broken: dict[str, tuple[Members, str]] = {
        "off": ({"command": "shop0", "enabled": lodge.pick((False, "no"))}, "off"),
        "neither": ({}, "not usable"),
        "two": ({"command": "shop0", "url": "http://x/mcp"}, "not usable"),
        "list": ({"command": "shop0", "args": "x"}, "not usable"),
        "old": ({"url": "http://x/mcp", "transport": "sse"}, "not usable"),
        "lost": ({"command": "no-such-program"}, "failed"),
    }
    bad = lodge.rng.sample([*broken], 2)
    bench.configure({**servers, **{name: broken[name][0] for name in bad}})
    bench.turn([], lodge.new_chat())
    told = [name for name in bench.offered if name.startswith("mcp_")]
    _same_names(bench, told, [*due], "the tools of servers that a model is told of")
    shown = lodge.right(lodge.ask_api("GET", "/api/mcp-servers"), 200)["servers"]
    states = {row["name"]: row["state"] for row in shown}
    is_ = {**{row["name"]: "ready" for row in rows}, **{name: broken[name][1] for name in bad}}
    lodge.same(states, is_, "how servers are")
    by_name = {row["name"]: row for row in shown}
    for row in rows:
        view = by_name[row["name"]]
        kind = (view["transport"], view["problem"], view["left_out"])
        lodge.same(kind, ("stdio", None, 0), f"the server {row['name']}")
        _same_names(bench, [each["name"] for each in view["tools"]], [name for name, _ in row["tools"]], "its tools")
        lodge.same([each["asks"] for each in view["tools"]], [asks for _, asks in row["tools"]], "which tools ask")
    for name in bad:
        view = by_name[name]
        lodge.same((view["tools"], bool(view["problem"])), ([], True), f"a server that is {broken[name][1]}")
    sets = lodge.right(lodge.ask_api("GET", "/v1/toolsets"), 200)["data"]
    told = [name for row in sets if row["name"].startswith("mcp-") for name in row["tools"]]
    _same_names(bench, told, [*due], "the tools of toolsets")
    one = lodge.pick([name for name in bench.offered if name.startswith("mcp_")])
    place = [name for name in bench.offered if name.startswith("mcp_")].index(one)
    asks, mark = [*due.values()][place], lodge.word()
    bench.turn([[one, {"mark": mark}]], lodge.new_chat(), "once")
    lodge.same(len(bench.asked), int(asks), f"how often somebody is asked about {one}")
    lodge.leave()


def _same_names(bench: Bench, told: list[str], due: list[str], about: str) -> None:
    """A name that no model takes is told with another in its place, and a hash."""
    lodge = bench.lodge
    lodge.same(len(told), len(due), f"{about}: {told}, {due}")
    lodge.same(len({*told}), len(told), about)
    for name, is_ in zip(told, due, strict=True):
        if " " in is_ or len(is_) > 64:
            start = is_.replace(" ", "_")[:40]
            good = name.startswith(start) and len(name) <= 64 and " " not in name and name[-9] == "_"
            lodge.same(good, True, f"{about}: {name} for {is_}")
        else:
            lodge.same(name, is_, about)


def _bounds(audit: Audit) -> None:
    """So many tools, parameters and words: one more is left out, and said so."""
    bench = Bench(Lodge(audit))
    lodge = bench.lodge
    many = [lodge.pick((TOOLS - 1, TOOLS, TOOLS + 1, 20)) for _ in range(3)]
    shops = [Shop(f"s{n}", *(tool(f"t{each}") for each in range(count))) for n, count in enumerate(many)]
    large = lodge.pick((SCHEMA, SCHEMA + 1))
    properties: Members = {f"{n:02}".ljust(190, "p"): {} for n in range(41)}
    names = {"type": "object", "properties": properties}
    properties["q" * (large - len(json.dumps(names, separators=(",", ":"))) - len(',"":{}'))] = {}
    shops[0].tools[0] = {**shops[0].tools[0], "inputSchema": names}
    hidden = "x\u200by\x1b[1mz"
    shops[1].tools[0] = tool("t0", f"{hidden} " + "w" * lodge.pick((SAID - 10, SAID + 10)))
    bench.configure({shop.name: {"command": shop.opens(lodge)} for shop in shops})
    bench.turn([], lodge.new_chat())
    told = [name for name in bench.offered if name.startswith("mcp_")]
    due, out = list[str](), list[int]()
    for shop in shops:
        fit = [each for each in shop.tools if not (each["inputSchema"] is names and large > SCHEMA)]
        mine = fit[:TOOLS][: ALL_TOOLS - len(due)]
        due += [f"mcp_{shop.name}_{each['name']}" for each in mine]
        out.append(len(shop.tools) - len(mine))
    lodge.same(told, due, f"the tools of servers with {many}, parameters of {large}")
    shown = lodge.right(lodge.ask_api("GET", "/api/mcp-servers"), 200)["servers"]
    lodge.same([row["left_out"] for row in shown], out, "how many tools are left out")
    words = bench.offered["mcp_s1_t0"]["description"]
    said = shops[1].tools[0]["description"].replace(hidden, "x y [1mz")[:SAID]
    lodge.same(words, f"[MCP server s1] {said}", "what a model is told of a tool")
    lodge.leave()


# --- what a call comes to ---


def _results(audit: Audit) -> None:
    """A result as the model reads it: texts in order, what is no text by a word, failures; cut when long."""
    bench, shop = Bench(Lodge(audit)), Shop("s", tool("a"))
    lodge = bench.lodge
    bench.configure({"s": {"command": shop.opens(lodge), "auto": ["a"]}})
    chat, long = lodge.new_chat(), "z" * lodge.pick((RESULT - 1, RESULT, RESULT + 1, 2 * RESULT))
    data = b64encode(PNG + lodge.word().encode() * 3).decode()
    picture = {"type": "image", "data": data, "mimeType": "image/gif"}
    size = f"{3 * len(data) // 4} bytes"
    shown = f"[a picture, image/png, {size}: picture 1 of this result, shown once]"
    failed = {"result": {"content": [picture], "isError": True}}
    link = {"type": "resource_link", "uri": "x://y", "name": "n"}
    file = {"type": "resource", "resource": {"uri": "x://z", "text": "inside"}}
    sound = {"type": "audio", "data": "QUJD", "mimeType": "audio/wav"}
    rows: tuple[tuple[Members, str], ...] = (
        (_text("one", "two\tx"), "one\ntwo    x"),
        (_text(long), long if len(long) <= RESULT else long[: RESULT - len(CUT)] + CUT),
        (_text("MEDIA:svc-relay://x", " media:/etc/passwd"), "MEDIA :svc-relay://x\n MEDIA :/etc/passwd"),
        (_text(), "(the result is empty)"),
        ({"result": {"content": [], "structuredContent": {"b": 1, "a": [2]}}}, '{"b":1,"a":[2]}'),
        (_text("said", structuredContent={"b": 1}), "said"),
        (_text("broken", isError=True), "error: broken"),
        (_text(isError=True), "error: the tool failed, and does not say why"),
        (_text("fine", isError="true"), "fine"),
        ({"error": {"code": -1, "message": "no way"}}, "error: the MCP server s did not do it: it refuses: no way"),
        ({"result": {"content": [picture, file, link]}}, f"{shown}\ninside\n[a link: n x://y]"),
        ({"result": {"content": [sound]}}, "[a sound, audio/wav, 3 bytes: not shown]"),
        (failed, f"error: [a picture, image/gif, {size}: not shown]"),
    )  # fmt: skip
    chosen = lodge.rng.sample(rows, 4)
    by_mark = {lodge.word(): reply for reply, _ in chosen}
    shop.reply = lambda call: by_mark[call["arguments"]["mark"]]
    told = bench.turn([called("s", "a", mark) for mark in by_mark], chat)
    for mark, text, (_, due) in zip(by_mark, told, chosen, strict=True):
        lodge.same(text, due, f"a result of {by_mark[mark]!r:.200}")
    lodge.same((shop.marks, bench.asked), ([*by_mark], []), "what a server is told that asks nobody")
    seen = [part["image_url"]["url"] for row in bench.rows[1:] if row["role"] == "user" for part in row["content"][1:]]
    many = sum("picture 1" in due for _, due in chosen)
    lodge.same(seen, [f"data:image/png;base64,{data}"] * many, "the pictures that a model sees")
    stored = lodge.rows_of(chat)
    lodge.same([row["content"] for row in stored if row["role"] == "tool"], told, "what is stored of results")
    calls = [["memory", {"action": "add", "content": lodge.word()}]]
    fresh = lodge.chance(0.3)  # where nothing was read that others have written
    bench.turn(calls, lodge.new_chat() if fresh else chat)
    asked = [data["tool"] for data in bench.asked]
    lodge.same(asked, [] if fresh else ["memory"], f"what is asked about a note, in a fresh chat: {fresh}")
    read = next(mark for mark in by_mark if "image" not in str(by_mark[mark]))
    bench.turn([called("s", "a", read)], lodge.new_chat(), "deny", Round(calls=calls))
    lodge.same([data["tool"] for data in bench.asked], ["memory"], "what is asked once others' words were read")
    lodge.leave()


# --- how long ---


def _late(audit: Audit) -> None:
    """A call has its time; who gives up says so to the server; what was stopped is called off."""
    bench, shop = Bench(Lodge(audit)), Shop("s", tool("a"))
    lodge, limit = bench.lodge, audit.pick((1, 2.5, 30))
    env, secret = {"LEVEL": "low"}, f"secret-{lodge.word()}"
    lodge.world.secrets[secret] = "a variable of a server of MCP"
    entry = {"command": shop.opens(lodge), "auto": ["a"], "timeout": limit, "env": {**env, "KEY": secret}}
    bench.configure({"s": entry})
    chat = lodge.new_chat()
    bench.turn([called("s", "a", "x")], chat)
    seen = shop.children[0].child.env
    lodge.same((seen.get("LEVEL"), seen.get("KEY")), ("low", secret), "the variables of a program")
    lodge.same([name for name in seen if "API" in name or "MODEL" in name], [], "what a program must not see")
    for wait in lodge.rng.sample((limit - EDGE, limit + EDGE, None), 2):
        shop.answers_after, shop.reply = (wait or 0.0), _never if wait is None else _done
        began = lodge.now
        (told,) = bench.turn([called("s", "a", "y")], chat)
        done = wait is not None and wait < limit
        lodge.same(told.startswith("error: "), not done, f"a call that takes {wait} s of {limit}: {told}")
        if not done:
            said = f"error: the MCP server s did not do it: there was no answer in {limit:g} s"
            lodge.same(told, said, "a call that takes too long")
            lodge.near(lodge.now - began, limit, "how long a call is waited for", 3.0)
        lodge.rest(1.0)
        called_off = shop.numbers()[-1] in shop.cancelled()
        lodge.same(called_off, not done, "whether a server knows that nobody waits for it")
    shop.reply, shop.answers_after, before = _never, 0.0, len(shop.calls)
    text, events = asking(lodge.word(), Round(calls=[called("s", "a", "z")]), Round(text="never")), Events()
    caller = lodge.begin_api("POST", f"{CHATS}/{chat}/chat/stream", {"message": text}, events)
    lodge.wait(lambda: len(shop.calls) > before, 20.0, "a server is not called")
    lodge.stop_run(events.told[0][1]["run_id"])
    lodge.answer(caller)
    lodge.rest(0.5)
    lodge.same(shop.cancelled()[-1:], shop.numbers()[-1:], "what is called off when its turn is stopped")
    lodge.same(len(shop.children), 1, "how often a program was started that was slow")
    lodge.leave()


def _never(call: Members) -> None:
    return None


def _done(call: Members) -> Members:
    return _text("done")


def _crash(shop: Shop, call: Members) -> None:
    shop.children[-1].child.exit(3)


def _lives(audit: Audit) -> None:
    """Started when it is first needed, again behind a pause that doubles; another entry is another program."""
    bench, shop, other = Bench(Lodge(audit)), Shop("s", tool("a")), Shop("o", tool("a"))
    lodge = bench.lodge
    entry: Members = {"command": shop.opens(lodge), "auto": ["a"]}
    rest = {"o": {"command": other.opens(lodge), "auto": ["a"]}}
    bench.configure({"s": entry, **rest})
    lodge.right(lodge.ask_api("GET", "/api/mcp-servers"), 200)
    lodge.same(len(shop.children), 0, "how often a program was started that nobody needs")
    if lodge.chance(0.4):
        _slow(bench, shop)
        return
    chat, pause = lodge.new_chat(), 1.0
    bench.turn([called("s", "a", "x")], chat)
    steady = lodge.chance(0.4)
    for _ in range(lodge.rng.randint(2, 4)):
        lodge.rest(70.0 if steady else 1.0)
        pause = 1.0 if steady else pause
        if lodge.chance(0.5):  # in the middle of a call, which is not made again
            shop.reply = partial(_crash, shop)
            (told,) = bench.turn([called("s", "a", lodge.word())], chat)
            said = "error: the MCP server s did not do it: it has exited with status 3"
            lodge.same(told, said, "a call whose program has crashed")
        else:
            shop.children[-1].child.exit(3)
        shop.reply, ended, made = _done, lodge.now, len(shop.calls)
        lodge.rest(0.3)
        (told,) = bench.turn([called("s", "a", "y")], chat) if lodge.chance(0.3) and pause > 3.0 else ("",)
        if told:
            lodge.same("is not there: it has exited with status 3" in told, True, f"a call of what has crashed: {told}")
        state = lodge.right(lodge.ask_api("GET", "/api/mcp-servers"), 200)["servers"]
        lodge.same([row["state"] for row in state], ["failed", "ready"], "how servers are")
        lodge.rest_until(ended + pause + 1.0)
        lodge.near(shop.begun[-1] - ended, pause, "when a program is started again", 0.5)
        lodge.same(len(shop.calls), made, "calls of a program that was started again")
        state = lodge.right(lodge.ask_api("GET", "/api/mcp-servers"), 200)["servers"]
        lodge.same([row["state"] for row in state], ["ready", "ready"], "how servers are")
        pause *= 2
    before, kept, many = shop.children[-1].child, other.children[-1].child, len(shop.children)
    shop.stubborn = lodge.chance(0.5)
    way = lodge.pick(("change", "remove", "off", "reload", "same"))
    files: dict[str, Members] = {
        "change": {"s": {**entry, "timeout": 7}, **rest},
        "remove": rest,
        "off": {"s": {**entry, "enabled": False}, **rest},
        "reload": {"s": entry, **rest},
        "same": {**rest, "s": dict(reversed(entry.items()))},
    }
    bench.configure(files[way])
    if way == "reload":
        lodge.right(lodge.ask_api("POST", "/api/mcp-servers/reload", {}), 200)
    bench.turn([], chat)
    lodge.rest(5.0)
    lodge.same(before.alive, way == "same", f"whether a program goes on behind {way}")
    lodge.same(kept.alive, way != "reload", f"whether another program goes on behind {way}")
    if way != "same":
        due = ["TERMINATE", "KILL"][: 1 if shop.stubborn else 0]
        lodge.same([each.name for each in before.signals][:1], due, "how a program is told to go")
    lodge.same(len(shop.children) - many, int(way in ("change", "reload")), f"how often it was started behind {way}")
    lodge.same("mcp_s_a" in bench.offered, way not in ("remove", "off"), f"whether its tools are told of behind {way}")
    shop.stubborn = False
    lodge.leave()


def _slow(bench: Bench, shop: Shop) -> None:
    """A turn waits for a program that has never been there, so long; and goes on without it."""
    lodge, wait = bench.lodge, bench.lodge.pick((READY - 2.0, READY + 2.0))
    shop.greets_after = wait
    began, chat = lodge.now, lodge.new_chat()
    bench.turn([], chat)
    lodge.near(bench.began - began, min(wait, READY), "how long a turn waits for a program", 1.0)
    lodge.same("mcp_s_a" in bench.offered, wait < READY, f"whether a tool is told of whose program takes {wait:.0f} s")
    lodge.same("mcp_o_a" in bench.offered, True, "whether a tool is told of whose program is there")
    lodge.rest(5.0)
    began = lodge.now
    bench.turn([], chat)
    lodge.near(bench.began - began, 0.0, "how long a turn waits for what is there", 1.0)
    lodge.same("mcp_s_a" in bench.offered, True, "whether a tool is told of when its program is there")
    lodge.leave()


def _far(audit: Audit) -> None:
    """By HTTP: its own header fields and session with each request; a session that is forgotten is begun anew."""
    bench, shop = Bench(Lodge(audit)), Shop("f", tool("a"))
    lodge, secret = bench.lodge, f"Bearer far-{audit.word()}"
    lodge.world.secrets[secret] = "a header field for a server of MCP"
    entry: Members = {
        "url": shop.opens_far(lodge),
        "headers": {"Authorization": secret, "X-Mine": "a b"},
        "auto": ["a"],
    }
    bench.configure({"f": entry})
    chat, marks = lodge.new_chat(), list[str]()
    for _ in range(lodge.rng.randint(2, 4)):
        marks.append(lodge.word())
        shop.forgets = lodge.chance(0.4) and len(marks) > 1
        (told,) = bench.turn([called("f", "a", marks[-1])], chat)
        lodge.same(told, f"done {marks[-1]}", "a call of a server far away")
    lodge.same(shop.marks, marks, "what a server far away is told")
    row = lodge.right(lodge.ask_api("GET", "/api/mcp-servers"), 200)["servers"][0]
    lodge.same((row["transport"], row["state"], row["problem"]), ("http", "ready", None), "a server far away")
    if entry["url"] in json.dumps(row):
        lodge.wrong(f"where a server is, is told: {row}")
    bench.configure({})
    bench.turn([], chat)
    lodge.rest(2.0)
    lodge.same("mcp_f_a" in bench.offered, False, "whether a tool is told of whose server is not wanted")
    for head in shop.heads:
        mine = (head.headers.get(b"authorization"), head.headers.get(b"x-mine"))
        lodge.same(mine, (secret.encode(), b"a b"), f"the header fields of {head.method}")
    kinds = [each["method"] for each in shop.heard if "method" in each]
    lodge.same(kinds.count("initialize"), shop.session, "how often a session is begun")
    spoken = [head for head in shop.heads if head.headers.get(b"mcp-protocol-version") is not None]
    lodge.same({head.headers.get(b"mcp-protocol-version") for head in spoken}, {b"2025-06-18"}, "the version")
    lodge.same(shop.heads[-1].method, "DELETE", "how a session far away ends")
    lodge.leave()


PARTS = (_editions, _editions, _editions, _listed, _bounds, _results, _results, _late, _lives, _lives, _far)


def servers(audit: Audit) -> None:
    """Some of what an agent does with servers of MCP."""
    for part in {audit.pick(PARTS): None, audit.pick(PARTS): None}:
        part(audit)


SERVERS = (servers, servers)
