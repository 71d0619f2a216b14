"""One turn, told in seven ways: whatever a client speaks, it is told the same of the same turn, and finds it stored.

What the model says is drawn beforehand, round by round (`fuzz.part`). From that follows, by wire api 3.7, 4, 5.3, 6 and
7, everything that anybody has to be told: rows, events, chunks, items, usage, flags, headers and statuses.
"""

from __future__ import annotations

import json
from hashlib import sha256

from fuzz.audit import Audit, header
from fuzz.audits.heard import Events, Listener
from fuzz.audits.tale import NO_OBJECT, NOBODY, Said, Tale, Use, drawn, for_model, heard_of
from fuzz.audits.tallies import numbers_of
from fuzz.world import MODEL_KEY
from tests.support.sim_http import RequestClient as Caller

__all__ = ["TELLINGS"]

PREVIEW = 120
SECRET = ("password", "token", "secret", "otp", "bearer")  # names whose values nobody is shown
OUTSIDE = ("session_id", "run_id", "seq", "ts")


class _Teller:
    """Somebody who asks in all ways, and the sessions that come of it."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.notes: list[str] = []  # that the agent has kept
        self.sessions: dict[str, list[Tale]] = {}
        self.responses: list[tuple[Said, str]] = []  # kept ones, and their sessions
        self.names: dict[str, str] = {}  # of conversations, and their sessions
        self.turns = 0

    def steps(self) -> None:
        audit = self.audit
        self.heard = Listener(audit)
        counted = numbers_of(audit, audit.ask_api("GET", "/metrics"))
        ways = (self.chat, self.streamed_chat, self.completion, self.chunks, self.response, self.run, self.posted_run)
        told = [audit.pick((*ways, self.told_response))() for _ in range(audit.rng.randint(4, 6))]
        self.count(told, counted)
        self.heard.stop()
        self.look_back()
        for note in self.notes:
            audit.right(audit.ask_api("DELETE", "/api/memory", {"target": "memory", "old_text": note}), 200)

    # --- asking, and what is common to all answers ---

    def ask(self, tale: Tale, path: str, body: Said, events: Events | None = None, **headers: str) -> Caller:
        audit = self.audit
        self.heard.clear()
        caller = audit.begin_api("POST", path, body, events, **headers)
        audit.answer(caller, 120.0)
        return caller

    def check_asked(self, tale: Tale) -> None:
        """What the model was given: all that was said, its own calls and their results, and nothing else."""
        audit = self.audit
        audit.same(len(self.heard.asked), len(tale.rounds), "how often the model was asked")
        due = [*tale.history, {"role": "user", "content": tale.question}]
        for number, (head, asked) in enumerate(zip(self.heard.heads, self.heard.asked, strict=True)):
            audit.same(
                head.headers.get(b"authorization"),
                f"Bearer {MODEL_KEY}".encode(),
                "the key that a model's server is shown",
            )
            told = (asked["model"], asked["stream"], asked["stream_options"])
            audit.same(told, ("sim", True, {"include_usage": True}), "what is asked of a model")
            rows = self.heard.rows(number)
            if number:
                use = tale.uses[number - 1]
                given = rows[-1]
                self.learn(tale, use, given["tool_call_id"], given["content"])
                due = [*due, *(for_model(row) for row in tale.rows[2 * number - 1 : 2 * number + 1])]
            audit.same(rows, due, f"what a model is given the {number + 1}. time")
            orders = self.heard.orders(number)
            if tale.system not in orders or orders.count("Be audit") != bool(tale.system):
                audit.wrong(f"a model is told {orders[:200]!r}, and it is {tale.system!r}")
        self.turns += 1

    def learn(self, tale: Tale, use: Use, identity: str, told: str) -> None:
        """What only the server knows: an id that was given anew, and how full the notes are."""
        audit = self.audit
        if not use.id:
            if not identity.startswith("call_") or len(identity) != len("call_") + 24:
                audit.wrong(f"a call whose id is taken is now {identity}")
            use.id = identity
        if use.name == "memory" and not use.failed:
            body = json.loads(told)
            audit.same((body["success"], body["target"]), (True, "memory"), "a note")
            use.output = told
            self.notes.append(use.given["content"])
        elif use.output in (NOBODY, NO_OBJECT):  # and why, and what to do
            if not told.startswith(f"error: {use.output}"):
                audit.wrong(f"a call with {use.given!r} is told as {told!r}")
            use.output = told.removeprefix("error: ")

    def check_rows(self, tale: Tale, session: str, run_id: str, message_id: str | None = None) -> None:
        """What is stored of a turn, row by row, and what the session says of it."""
        audit = self.audit
        tales = self.sessions.setdefault(session, [])
        tales.append(tale)
        stored = audit.rows_of(session)
        due = [row for each in tales for row in each.rows]
        fresh = stored[len(due) - len(tale.rows) :]
        for row in stored:
            audit.near(row["timestamp"], audit.wall, "the time of a row", 3_600.0)
        names = ("id", "created_at", "timestamp", "run_id", "session_id")
        shown = [{name: value for name, value in row.items() if name not in names} for row in stored]
        audit.same(shown, due, "the rows of a session")
        if run_id:
            audit.same({row["run_id"] for row in fresh}, {run_id}, "the run of rows")
        if message_id is not None and "usage" in tale.rows[-1]:
            audit.same(fresh[-1]["id"], message_id, "the id of an answer")
        view = audit.right(audit.ask_api("GET", f"/api/sessions/{session}"), 200)["session"]
        counts = (view["message_count"], view["tool_call_count"], view["input_tokens"], view["output_tokens"])
        used = [row["usage"] for row in due if "usage" in row]
        tokens = [sum(each[name] for each in used) for name in ("input_tokens", "output_tokens")]
        audit.same(counts, (len(due), sum("tool_calls" in row for row in due), *tokens), "the counts of a session")

    def failed(self, tale: Tale, caller: Caller) -> bool:
        """A turn that has said nothing, and is not complete, is 502 where the answer is no stream."""
        if tale.completed or tale.content:
            return False
        error = self.audit.right(caller, 502, "agent_incomplete")["error"]
        told = (error["type"], error["param"], bool(error["message"]))
        self.audit.same(told, ("server_error", None, True), "an answer that is none")
        return True

    # --- the ways ---

    def own(self) -> tuple[str, list[Tale]]:
        """A chat, perhaps one in which something was said."""
        audit = self.audit
        mine = [each for each in self.sessions if not each.startswith("api-")]
        session = audit.pick(mine) if mine and audit.chance(0.5) else audit.new_chat()
        return session, self.sessions.setdefault(session, [])

    def header(self, caller: Caller, name: str) -> str:
        return header(caller, f"x-svc-{name}")

    def chat(self) -> Tale:
        """`POST /api/sessions/{id}/chat`."""
        audit = self.audit
        session, before = self.own()
        tale = drawn(audit, heard_of(before))
        body = {"message": tale.question, **({"system_message": tale.system} if tale.system else {})}
        caller = self.ask(tale, f"/api/sessions/{session}/chat", body)
        self.check_asked(tale)
        if self.failed(tale, caller):
            self.check_rows(tale, session, "")
            return tale
        told = audit.right(caller, 200)
        ids = told.pop("run_id"), told["message"].pop("id")
        flags = {"completed": tale.completed, "partial": not tale.completed, "interrupted": False}
        is_ = {"object": "svc.session.chat.completion", "session_id": session, **flags, "usage": tale.tokens}
        is_["message"] = {"role": "assistant", "content": tale.content}
        error = told.pop("error", None)
        audit.same((told, error is not None), (is_, tale.end == "error"), "an answer")
        audit.same((self.header(caller, "session-id"), self.header(caller, "run-id")), (session, ids[0]), "whose it is")
        self.check_rows(tale, session, *ids)
        return tale

    def streamed_chat(self) -> Tale:
        """`POST /api/sessions/{id}/chat/stream`."""
        audit, events = self.audit, Events()
        session, before = self.own()
        tale = drawn(audit, heard_of(before))
        body = {"input": tale.question, **({"instructions": tale.system} if tale.system else {})}
        caller = self.ask(tale, f"/api/sessions/{session}/chat/stream", body, events)
        audit.right(caller, 200)
        self.check_asked(tale)
        told, names = [data for _, data in events.told], events.names
        run_id, message_id = told[0]["run_id"], told[2]["message"]["id"]
        parts = [name for name in names if name not in ("assistant.delta", "tool.progress")]
        ends = ["error", "done"] if tale.end == "error" else ["assistant.completed", "run.completed", "done"]
        begins = ["session.created", "run.started", "message.started"]
        audit.same(parts, [*begins, *tale.names("tool.failed"), *ends], "the events of a turn")
        audit.same([data["seq"] for data in told], list(range(1, len(told) + 1)), "the numbers of events")
        audit.same(
            {(data["session_id"], data["run_id"]) for data in told}, {(session, run_id)}, "whose events they are"
        )
        self.check_pieces(tale, events, "assistant.delta", "tool.progress", "delta", {"message_id": message_id})
        self.check_tools(tale, events, "tool_name", "tool.failed")
        flags = {"completed": tale.completed, "partial": not tale.completed, "interrupted": False}
        members = [{name: value for name, value in data.items() if name not in OUTSIDE} for data in told]
        if tale.end == "error":
            audit.same(
                (bool(members[-2].pop("message")), [*members[-2]]), (True, ["error"]), "what is said of a failure"
            )
        else:
            common = {"message_id": message_id, **flags, "usage": tale.tokens}
            due = [{**common, "content": tale.content}, {**common, "api_calls": len(tale.rounds)}]
            audit.same(members[-3:-1], due, "how a turn ends")
        audit.same(members[-1], {"state": "final"}, "the last word")
        self.check_rows(tale, session, run_id, message_id)
        return tale

    def check_pieces(self, tale: Tale, events: Events, text: str, thought: str, member: str, more: Said) -> None:
        """The words, and the thoughts, piece by piece, each where it belongs."""
        audit = self.audit
        words = [data for name, data in events.told if (name or data.get("event")) == text]
        thoughts = [data for name, data in events.told if (name or data.get("event")) == thought]
        audit.same("".join(data["delta"] for data in words), tale.content, "the words of an answer")
        told = "".join(data[member] for data in thoughts)
        audit.same(told, "".join(tale.thoughts), "the thoughts of an answer")
        if not all(data["delta"] for data in words):
            audit.wrong("a piece of an answer is empty")
        for data in (*words, *thoughts) if more else ():
            audit.same({name: data[name] for name in more}, more, "a piece of an answer")

    def check_tools(self, tale: Tale, events: Events, called: str, failed: str) -> None:
        audit = self.audit
        told = [(name, data) for name, data in events.told if name.startswith(("tool.", "memory."))]
        told = [(name, data) for name, data in told if name != "tool.progress"]
        for use in tale.uses:
            count = 3 if use.name == "memory" and not use.failed else 2
            mine, told = told[:count], told[count:]
            for name, data in mine:
                named = data["tool"] if name == "memory.updated" and called == "tool" else data[called]
                ids = (named, data["call_id"], data["tool_call_id"], data["args"])
                audit.same(ids, (use.name, use.id, use.id, use.args), "an event of a tool")
            audit.same(mine[0][1]["preview"], _short(use.args) if use.args else None, "what is shown of a call")
            last = mine[-1][1]
            audit.near(last["duration"], 0.0, "how long a tool took", 5.0)
            shown = last["error"] if failed == "tool.failed" and use.failed else last["result_preview"]
            audit.same(shown, use.output if use.failed else _short(json.loads(use.output)), "what is shown of a result")
            if failed == "tool.failed":
                audit.same(last["success"], not use.failed, "whether a tool has failed")
            else:
                audit.same(last["error"], use.failed, "whether a tool has failed")
            if count == 3:
                word = use.given["content"]
                noted = {name: mine[1][1][name] for name in ("target", "added", "removed", "undo")}
                undo = {"method": "DELETE", "body": {"target": "memory", "old_text": word}}
                audit.same(noted, {"target": "memory", "added": word, "removed": None, "undo": undo}, "a note is told")
                audit.same(mine[1][1]["entry_count"], json.loads(use.output)["entry_count"], "the number of notes")

    def asked_before(self) -> tuple[str, list[Tale], str]:
        """Completions: no session, or a stored one by its header."""
        mine = [each for each in self.sessions if self.sessions[each]]
        if mine and self.audit.chance(0.4):
            session = self.audit.pick(mine)
            return session, self.sessions[session], session
        return "", [], ""

    def completion_of(self, *, stream: bool) -> tuple[Tale, Caller, Events, str, Said]:
        audit, events = self.audit, Events()
        session, before, shown = self.asked_before()
        tale = drawn(audit, heard_of(before))
        said: list[Said] = [{"role": "system", "content": tale.system}] if tale.system else []
        earlier = [{"role": "user", "content": audit.word()}, {"role": "assistant", "content": "so"}]
        if audit.chance(0.5):
            said += earlier
            tale.history = tale.history if session else earlier
        tale.model = audit.pick(("", "default", "mine"))
        body: Said = {"messages": [*said, {"role": "user", "content": tale.question}], "stream": stream}
        body |= {"model": tale.model} if tale.model else {}
        if stream:
            body["stream_options"] = {"include_usage": True}
        headers = {"x_svc_session_id": shown} if shown else {}
        memory = audit.word()
        caller = self.ask(
            tale, "/v1/chat/completions", body, events if stream else None, x_svc_session_key=memory, **headers
        )
        self.check_asked(tale)
        first = next(row["content"] for row in body["messages"] if row["role"] == "user")
        session = session or "api-" + sha256(f"{tale.system}\x00{first}".encode()).hexdigest()[:16]
        if stream or not self.failed(tale, caller):
            told = self.header(caller, "session-id"), self.header(caller, "session-key")
            audit.same(told, (session, memory), "the headers of a completion")
        return tale, caller, events, session, body

    def completion(self) -> Tale:
        """`POST /v1/chat/completions`."""
        audit = self.audit
        tale, caller, _, session, _ = self.completion_of(stream=False)
        if self.failed(tale, caller):
            self.check_rows(tale, session, "")
            return tale
        told = audit.right(caller, 200)
        run_id = "run_" + told.pop("id").removeprefix("chatcmpl-")
        audit.near(told.pop("created"), audit.wall, "when a completion was made", 30.0)
        reason = tale.end
        choice = {"index": 0, "message": {"role": "assistant", "content": tale.content}, "finish_reason": reason}
        is_: Said = {"object": "chat.completion", "choices": [choice], "usage": _openai(tale.tokens)}
        is_["model"] = tale.model or self.name
        if not tale.completed:
            code = "output_truncated" if reason == "length" else "agent_error"
            error = told["svc"].pop("error")
            audit.same(error is None, reason == "length", "whether a completion says why it has failed")
            is_["svc"] = {"completed": False, "partial": True, "failed": reason == "error", "error_code": code}
        audit.same(told, is_, "a completion")
        flags = tuple(self.header(caller, name) for name in ("completed", "partial", "error"))
        due = ("", "", "") if tale.completed else ("false", "true", "agent_error" if reason == "error" else "")
        audit.same(flags, due, "what the headers of a completion say")
        self.check_rows(tale, session, run_id)
        return tale

    def chunks(self) -> Tale:
        """The same, piece by piece."""
        audit = self.audit
        tale, caller, events, session, _ = self.completion_of(stream=True)
        audit.right(caller, 200)
        audit.same(events.raw[-1], "[DONE]", "the end of a stream of chunks")
        chunks = [data for _, data in events.told]
        heads = {(data["id"], data["object"], data["created"], data["model"]) for data in chunks}
        ((identity, kind, _, model),) = heads
        audit.same((kind, model), ("chat.completion.chunk", tale.model or self.name), "the head of a chunk")
        last = chunks.pop()
        audit.same((last["choices"], last["usage"]), ([], _openai(tale.tokens)), "tokens")
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
        audit.same((deltas[0], deltas[-1]), ({"role": "assistant"}, {}), "the first and the last chunk")
        reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
        audit.same(reasons, [None] * (len(chunks) - 1) + [tale.end], "the reasons of chunks")
        audit.same("".join(each.get("content", "") for each in deltas), tale.content, "the words of chunks")
        thoughts = "".join(each.get("reasoning_content", "") for each in deltas)
        audit.same(thoughts, "".join(tale.thoughts), "the thoughts of chunks")
        error = chunks[-1].get("error")
        audit.same(error is not None and error["type"], tale.end == "error" and "agent_error", "a chunk's error")
        self.check_rows(tale, session, "run_" + identity.removeprefix("chatcmpl-"))
        return tale

    def chain(self) -> tuple[Said, list[Tale], str]:
        """Responses: behind an earlier one, in a conversation by name, or by itself."""
        audit, way = self.audit, self.audit.rng.randrange(3)
        if way == 0 and self.responses:
            last, session = audit.pick(self.responses)
            return {"previous_response_id": last["id"]}, self.sessions[session], session
        if way == 1:
            name = audit.pick((*self.names, audit.word()))
            session = self.names.get(name, "")
            wanted = audit.pick((name, {"id": name}))
            return {"conversation": wanted}, self.sessions.get(session, []), session
        return {}, [], ""

    def response_of(self, *, stream: bool) -> tuple[Tale, Caller, Events, str, Said]:
        audit, events = self.audit, Events()
        wanted, before, session = self.chain()
        tale = drawn(audit, heard_of(before))
        body: Said = {"input": audit.pick((tale.question, [tale.question])), "stream": stream, **wanted}
        body |= {"instructions": tale.system} if tale.system else {}
        keeps = audit.chance(0.8)
        body |= audit.pick(({}, {"store": True})) if keeps else {"store": False}
        caller = self.ask(tale, "/v1/responses", body, events if stream else None)
        self.check_asked(tale)
        return tale, caller, events, session, {**body, "keeps": keeps}

    def response(self) -> Tale:
        """`POST /v1/responses`."""
        tale, caller, _, session, body = self.response_of(stream=False)
        if not self.failed(tale, caller):
            self.check_response(tale, caller, self.audit.right(caller, 200), session, body)
        elif session:
            self.sessions[session].append(tale)
        return tale

    def told_response(self) -> Tale:
        """The same, event by event."""
        audit = self.audit
        tale, caller, events, session, body = self.response_of(stream=True)
        audit.right(caller, 200)
        told = [data for _, data in events.told]
        audit.same([data["type"] for data in told], [name for name, _ in events.told], "the types of events")
        audit.same([data["sequence_number"] for data in told], list(range(len(told))), "the numbers of events")
        whole = told[-1]["response"]
        first = {name: value for name, value in whole.items() if name not in ("usage", "error")}
        audit.same(told[0]["response"], {**first, "status": "in_progress", "output": []}, "a response that begins")
        due: list[tuple[str, int]] = []
        for place, item in enumerate(whole["output"]):
            inner = []
            if item["type"] == "message":
                said = "".join(data["delta"] for data in told if data.get("item_id") == item["id"] and "delta" in data)
                audit.same(said, item["content"][0]["text"], "the words of a message")
                inner = ["content_part.added", "output_text.done", "content_part.done"]
            due += [(f"response.{name}", place) for name in ("output_item.added", *inner, "output_item.done")]
        parts = [
            (data["type"], data["output_index"]) for data in told[1:-1] if data["type"] != "response.output_text.delta"
        ]
        audit.same(parts, due, "the events of a response")
        audit.same(told[-1]["type"], f"response.{whole['status']}", "the last event of a response")
        self.check_response(tale, caller, whole, session, body)
        return tale

    def check_response(self, tale: Tale, caller: Caller, whole: Said, session: str, body: Said) -> None:
        audit = self.audit
        digits = whole["id"].removeprefix("resp_")
        audit.same((len(digits), whole["id"][:5]), (28, "resp_"), "the id of a response")
        audit.near(whole["created_at"], audit.wall, "when a response was made", 30.0)
        output: list[Said] = []
        messages = 0
        for number, text in enumerate(tale.texts):
            if text:
                messages += 1
                part = {"type": "output_text", "text": text, "annotations": []}
                message = {"type": "message", "id": f"msg_{messages}_{digits}", "role": "assistant"}
                output.append({**message, "status": "completed", "content": [part]})
            if number < len(tale.uses):
                use = tale.uses[number]
                call = {"type": "function_call", "id": f"fc_{use.id}", "call_id": use.id, "name": use.name}
                output.append({**call, "arguments": use.arguments, "status": "completed"})
                given = {"type": "function_call_output", "id": f"fco_{use.id}", "call_id": use.id}
                given["status"] = "incomplete" if use.failed else "completed"
                output.append({**given, "output": [{"type": "input_text", "text": use.text}]})
        status = {"stop": "completed", "length": "incomplete", "error": "failed"}[tale.end]
        told = {name: whole.get(name) for name in ("object", "model", "status", "output", "usage")}
        is_ = {"object": "response", "model": self.name, "status": status, "output": output, "usage": tale.tokens}
        audit.same((told, "error" in whole), (is_, tale.end == "error"), "a response")
        shown = self.header(caller, "session-id")
        audit.same(shown if session else session, session, "the session of a chain")
        self.check_rows(tale, shown, self.header(caller, "run-id"))
        kept = audit.ask_api("GET", f"/v1/responses/{whole['id']}")
        if body["keeps"]:
            audit.same(audit.right(kept, 200), whole, "a response that is kept")
            self.responses.append((whole, shown))
            if "conversation" in body:
                name = body["conversation"]
                self.names[name if isinstance(name, str) else name["id"]] = shown
        else:
            audit.right(kept, 404, about="a response that was not to be kept")

    def run_of(self, more: Said, events: Events, **headers: str) -> tuple[Tale, Caller, str]:
        audit = self.audit
        wanted = audit.pick(("", f"run-{audit.word()}", *self.sessions))
        history, more = list[Said](), {**more}
        if audit.chance(0.3):
            history = [{"role": "user", "content": audit.word()}, {"role": "assistant", "content": "so"}]
            more["conversation_history"] = history
        elif self.responses and audit.chance(0.3):
            last, session = audit.pick(self.responses)
            history = heard_of(self.sessions[session])
            more["previous_response_id"] = last["id"]
        tale = drawn(audit, history, asks=True)
        body: Said = {"input": tale.question, **more, **({"session_id": wanted} if wanted else {})}
        body |= {audit.pick(("instructions", "system_message")): tale.system} if tale.system else {}
        tale.model = audit.pick(("", "default"))
        body |= {"model": tale.model} if tale.model else {}
        self.heard.clear()
        caller = audit.begin_api("POST", "/v1/runs", body, events, **headers)
        return tale, caller, wanted

    def run(self) -> Tale:
        """`POST /v1/runs`, and its events by another request."""
        audit, events = self.audit, Events()
        tale, caller, wanted = self.run_of({}, Events())
        told = audit.right(audit.answer(caller), 202)
        run_id = told["run_id"]
        audit.same(told, {"run_id": run_id, "status": "started"}, "a run")
        audit.rest(audit.pick((0.0, 0.3)))
        reader = audit.begin_api("GET", f"/v1/runs/{run_id}/events", None, events)
        self.check_run(tale, audit.answer(reader, 120.0), events, run_id, wanted or run_id)
        return tale

    def posted_run(self) -> Tale:
        """The same as the answer to the request itself."""
        audit, events = self.audit, Events()
        more, headers = audit.pick((({"stream": True}, {}), ({}, {"accept": "text/event-stream, application/json"})))
        tale, caller, wanted = self.run_of(more, events, **headers)
        audit.answer(caller, 120.0)
        run_id = self.header(caller, "run-id")
        self.check_run(tale, caller, events, run_id, wanted or run_id)
        return tale

    def check_run(self, tale: Tale, reader: Caller, events: Events, run_id: str, session: str) -> None:
        audit = self.audit
        audit.right(reader, 200)
        self.check_asked(tale)
        names, told = events.names, [data for _, data in events.told]
        parts = [name for name in names if name not in ("message.delta", "reasoning.available")]
        end = "run.failed" if tale.end == "error" else "run.completed"
        audit.same(parts, ["run.started", *tale.names("tool.completed"), end], "the events of a run")
        audit.same(
            {(data["event"], data["run_id"], data["session_id"]) for data in told}
            - {(name, run_id, session) for name in names},
            set(),
            "whose events they are",
        )
        self.check_pieces(tale, events, "message.delta", "reasoning.available", "text", {})
        self.check_tools(tale, events, "tool", "tool.completed")
        whole = {"output": tale.content, "usage": tale.tokens} if tale.end != "error" else {}
        audit.same({name: told[-1].get(name) for name in whole}, whole, "the end of a run")
        view = audit.right(audit.ask_api("GET", f"/v1/runs/{run_id}"), 200)
        audit.near(view.pop("created_at"), audit.wall, "when a run was begun", 60.0)
        audit.near(view.pop("updated_at"), told[-1]["timestamp"], "when a run was over", 0.1)
        status = "failed" if tale.end == "error" else "completed"
        is_: Said = {"object": "svc.run", "run_id": run_id, "status": status, "session_id": session, "last_event": end}
        is_ |= {"model": tale.model or self.name, **whole}
        error = view.pop("error", None)
        audit.same((view, error is not None and error == told[-1].get("error")), (is_, tale.end == "error"), "a run")
        self.check_rows(tale, session, run_id)

    @property
    def name(self) -> str:
        return "svc-agent"

    # --- afterwards ---

    def count(self, tales: list[Tale], before: dict[str, float]) -> None:
        """What the monitor says of these turns."""
        audit = self.audit
        after = numbers_of(audit, audit.ask_api("GET", "/metrics"))
        told = {name: after[name] - before.get(name, 0.0) for name in after}
        failed = sum(tale.end == "error" for tale in tales)
        is_ = {
            'svc_turns_total{outcome="completed"}': len(tales) - failed,
            'svc_turns_total{outcome="failed"}': failed,
            'svc_turns_total{outcome="cancelled"}': 0,
            "svc_model_calls_total": sum(len(tale.rounds) for tale in tales),
            'svc_tokens_total{direction="input"}': sum(tale.usage[0] for tale in tales),
            'svc_tokens_total{direction="output"}': sum(tale.usage[1] for tale in tales),
            "svc_turn_duration_seconds_count": len(tales),
        }
        audit.same({name: told.get(name) for name in is_}, is_, "what a monitor is told of turns")

    def look_back(self) -> None:
        """Responses that are kept are there, also after a restart, and gone once they are deleted."""
        audit = self.audit
        if self.responses and audit.chance(0.3):
            audit.restart("api", kill=audit.chance(0.5))
        for whole, _ in self.responses:
            audit.same(audit.right(audit.ask_api("GET", f"/v1/responses/{whole['id']}"), 200), whole, "a response")
        for whole, _ in self.responses[:1]:
            path = f"/v1/responses/{whole['id']}"
            told = audit.right(audit.ask_api("DELETE", path), 200)
            audit.same(told, {"id": whole["id"], "object": "response", "deleted": True}, "a response that is deleted")
            for method in ("GET", "DELETE"):
                error = audit.right(audit.ask_api(method, path), 404)["error"]
                audit.same((error["code"], error["type"]), (None, "invalid_request_error"), "a response that is gone")
            body = {"input": "x", "previous_response_id": whole["id"]}
            audit.right(audit.ask_api("POST", "/v1/responses", body), 404, about="to go on behind what is deleted")


def _openai(tokens: Said) -> Said:
    return {
        "prompt_tokens": tokens["input_tokens"],
        "completion_tokens": tokens["output_tokens"],
        "total_tokens": tokens["total_tokens"],
    }


def _short(value: Said) -> str:
    """One line for people."""
    shown = {name: "[redacted]" if name in SECRET else member for name, member in value.items()}
    text = json.dumps(shown, separators=(",", ":"))
    return text if len(text) <= PREVIEW else f"{text[:PREVIEW]}..."


def tellings(audit: Audit) -> None:
    """Turns are told in all ways, stored, counted, continued and deleted."""
    _Teller(audit).steps()


TELLINGS = (tellings,)
