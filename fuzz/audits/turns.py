"""Runs, completions and responses: places, ends, questions, what is kept for how long, and for whom."""

from __future__ import annotations

from typing import Any

from attrs import define, field

from fuzz.audit import Audit
from fuzz.audits.heard import Events, Listener
from tests.support.sim_http import RequestClient as Caller

__all__ = ["TURNS"]

CAP = 4  # runs at once, as the world's API is told
SILENCE = 300.0  # s after which a model that says nothing is given up
KEPT = 3_600.0  # s that the record of a run is kept, wire api 6.2
UNREAD = 300.0  # s that events wait for a reader
ASKED = 60.0  # s that a question is open
SETTLING = 2.0  # s
KEYS_LAST = 300.0  # s
EDGE = 0.5
ASKED_FOR = "call_1_0"  # the call that a model makes who wants to note one word
OVER = ("completed", "failed", "cancelled")


@define(eq=False)
class _Run:
    """A run, and what it has to be."""

    id: str
    text: str
    session: str
    began: float
    status: str = "running"
    events: Events | None = None
    reader: Caller | None = None
    ended: float | None = None
    output: str = ""
    names: list[str] = field(factory=list)


class _Runs:
    """All runs that may have a place."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.runs: list[_Run] = []

    def steps(self) -> None:
        audit = self.audit
        kinds = (*[self.quick] * 2, *[self.silent] * 3, *[self.stop] * 2, self.watch, self.refused)
        for _ in range(audit.rng.randint(7, 12)):
            audit.pick((*kinds, self.ask))()
            audit.pick((self.look, self.look_at_the_dead))()
        for run in self.live():
            self.end(run)
        if audit.chance(0.3):
            self.forget()

    def live(self) -> list[_Run]:
        """Those that are not over; a silent model is given up by then."""
        now = self.audit.now
        for run in self.runs:
            if run.ended is None and now > run.began + SILENCE - 5.0:
                self.audit.rest_until(run.began + SILENCE + 10.0)
                run.status, run.ended = "failed", self.audit.now
        return [run for run in self.runs if run.ended is None]

    def begin(self, manner: str, more: str = "") -> _Run | None:
        """Begin one; None: there was no place for it, and that is right."""
        audit, room = self.audit, len(self.live()) < CAP
        text = f"{manner}: {audit.word()}{more}"
        wanted = f"run-{audit.word()}" if audit.chance(0.3) else None
        body: dict[str, object] = {"input": text, **({} if wanted is None else {"session_id": wanted})}
        caller = audit.ask_api("POST", "/v1/runs", body)
        if not room:
            audit.right(caller, 429, "rate_limit_exceeded", f"a run beside {CAP}")
            audit.same(caller.answer.headers.get(b"retry-after"), b"1", "when there may be a place")
            return None
        told = audit.right(caller, 202)
        audit.same((told["status"], told["run_id"][:4], len(told["run_id"])), ("started", "run_", 36), "a run")
        run = _Run(told["run_id"], text, wanted or told["run_id"], audit.now)
        self.runs.append(run)
        return run

    def quick(self) -> None:
        """One whose model answers."""
        audit, run = self.audit, self.begin("plain")
        if run is None:
            return
        if audit.chance(0.6):
            self.read(run)
        for _ in range(120):
            if self.show(run)["status"] in OVER:
                break
            audit.rest(0.5)
        run.status, run.ended, run.output = "completed", audit.now, f"You said {run.text}"
        self.check(run)
        if run.events is not None:
            self.check_events(run, ["run.completed"])

    def silent(self) -> None:
        """One whose model falls silent."""
        audit, run = self.audit, self.begin("hang")
        if run is not None and audit.chance(0.3):
            self.read(run)
        audit.rest(2.0)

    def ask(self) -> None:
        """One that waits for a yes, or a no, or nobody says anything."""
        audit, run = self.audit, self.begin("notes", more=f"#{self.audit.word()}")
        if run is None:
            return
        path = f"/v1/runs/{run.id}"
        self.read(run)
        self.until(run, "waiting_for_approval")
        since = audit.now
        run.status = "waiting_for_approval"
        view = self.show(run)
        (asked,) = view["approvals"]
        audit.same((asked["tool"], asked["call_id"]), ("memory", ASKED_FOR), "what is asked")
        audit.right(audit.ask_api("POST", f"{path}/approval", {"choice": "perhaps"}), 400)
        audit.right(audit.ask_api("POST", f"{path}/approval", {"choice": "once", "call_id": "other"}), 409)
        if audit.now < since + SETTLING - 0.5:
            audit.right(
                audit.ask_api("POST", f"{path}/approval", {"choice": "once"}), 409, about="an early yes without a name"
            )
        choice = audit.pick(("once", "deny", "session", "approve", "", "stop"))
        audit.rest(audit.pick((0.0, SETTLING + EDGE)))
        if choice == "stop":
            audit.right(audit.ask_api("POST", f"{path}/stop", {}), 200)
            self.until(run, "cancelled")
            run.status, run.ended = "cancelled", audit.now
            self.check(run)
            return
        if choice:
            body = {"choice": choice, "call_id": ASKED_FOR}
            told = audit.right(audit.ask_api("POST", f"{path}/approval", body), 200)
            kept = "once" if choice == "approve" else choice
            is_ = {"object": "svc.run.approval_response", "run_id": run.id, "choice": kept, "resolved": 1}
            audit.same(told, is_, "an answer to a question")
            audit.right(audit.ask_api("POST", f"{path}/approval", body), 409, about="a second answer")
        else:
            audit.rest_until(since + ASKED - 2.0)
            audit.same(self.show(run)["status"], "waiting_for_approval", "a question just before its end")
            audit.rest_until(since + ASKED + 2.0)
        self.until(run, "completed")
        run.status, run.ended, run.output = "completed", audit.now, f"You said {run.text}"
        self.check(run)
        if choice in ("once", "deny", "session"):
            assert run.events is not None
            told = [data for _, data in run.events.told if data.get("event") == "approval.responded"]
            audit.same([data["choice"] for data in told], [choice], "what was answered")

    def until(self, run: _Run, status: str) -> None:
        for _ in range(80):
            told = self.show(run)["status"]
            if told == status:
                return
            if told in OVER:
                self.audit.wrong(f"{run.text!r} is {told}, and was to be {status}")
            self.audit.rest(0.5)
        self.audit.wrong(f"{run.text!r} is not {status}")

    def stop(self) -> None:
        if self.live():
            self.end(self.audit.pick(self.live()))

    def end(self, run: _Run) -> None:
        """It is stopped, which is soon so, and cannot be done again."""
        audit, path = self.audit, f"/v1/runs/{run.id}"
        told = audit.right(audit.ask_api("POST", f"{path}/stop"), 200)
        audit.same(told, {"run_id": run.id, "status": "stopping"}, "a stop")
        audit.rest(2.0)
        run.status, run.ended = "cancelled", audit.now
        self.check(run)
        audit.right(audit.ask_api("POST", f"{path}/stop"), 404, about="to stop what is over")
        audit.right(audit.ask_api("POST", f"{path}/approval", {"choice": "once"}), 409, about="to allow something then")
        if run.events is not None:
            self.check_events(run, ["run.cancelled"])

    def read(self, run: _Run) -> None:
        run.events = Events()
        run.reader = self.audit.begin_api("GET", f"/v1/runs/{run.id}/events", None, run.events)
        self.audit.wait(lambda: run.reader is None or run.reader.head is not None, why="no events are told")

    def watch(self) -> None:
        """The first who asks is told all, another nothing."""
        audit = self.audit
        unread = [run for run in self.runs if run.events is None]
        if not unread:
            return
        run = audit.pick(unread)
        waited = None if run.ended is None else audit.now - run.ended
        if waited is not None and waited > UNREAD - 20.0:
            return
        self.read(run)
        second = audit.ask_api("GET", f"/v1/runs/{run.id}/events")
        audit.right(second, 404, "run_not_found", "a second reader")
        if run.ended is not None:
            self.check_events(run, [f"run.{run.status}"])

    def check_events(self, run: _Run, last: list[str]) -> None:
        audit, events, reader = self.audit, run.events, run.reader
        assert events is not None
        assert reader is not None
        audit.answer(reader, 30.0)
        names = [str(data["event"]) for _, data in events.told]
        audit.same(names[-1:], last, f"the end of {run.text!r}")
        ends = [name for name in names if name in ("run.completed", "run.failed", "run.cancelled")]
        audit.same(ends, last, f"how often {run.text!r} ends")
        if {data["run_id"] for _, data in events.told} != {run.id}:
            audit.wrong(f"events of another run: {events.told!r:.300}")
        if run.status == "completed" and not run.text.startswith("notes"):
            told = "".join(data["delta"] for _, data in events.told if data["event"] == "message.delta")
            audit.same(
                (told.strip(), events.told[-1][1]["output"].strip()), (run.output, run.output), "what a run says"
            )
        if not reader.answer.body.endswith(b": stream closed\n\n"):
            audit.wrong(f"the events of a run end with {reader.answer.body[-60:]!r}")

    def refused(self) -> None:
        audit = self.audit
        rows: tuple[tuple[str, str, object, int, str | None], ...] = (
            ("GET", "/v1/runs/run_none", None, 404, "run_not_found"),
            ("POST", "/v1/runs/run_none/stop", {}, 404, "run_not_found"),
            ("POST", "/v1/runs/run_none/approval", {"choice": "once"}, 404, "run_not_found"),
        )
        if len(self.live()) < CAP:
            rows += (
                ("POST", "/v1/runs", {}, 400, None),
                ("POST", "/v1/runs", {"input": "x", "session_id": "../x"}, 400, "invalid_session_id"),
                ("POST", "/v1/runs", {"input": "x", "conversation_history": [{"role": 5}]}, 400, None),
                ("POST", "/v1/chat/completions", {"messages": []}, 400, None),
                ("POST", "/v1/responses", {"input": "x", "previous_response_id": "resp_none"}, 404, None),
                ("POST", "/v1/responses", {"input": "x", "previous_response_id": "a", "conversation": "b"}, 400, None),
            )
        else:
            rows += (
                (
                    "POST",
                    "/v1/chat/completions",
                    {"messages": [{"role": "user", "content": "x"}]},
                    429,
                    "rate_limit_exceeded",
                ),
                ("POST", "/v1/responses", {"input": "x"}, 429, "rate_limit_exceeded"),
                ("POST", "/v1/runs", {}, 429, "rate_limit_exceeded"),
            )
        for method, path, body, status, code in audit.rng.sample(rows, 3):
            audit.right(audit.ask_api(method, path, body), status, code, f"{body}")

    def forget(self) -> None:
        """An hour after its end a run is not known any more, and not sooner."""
        audit = self.audit
        ended = [run for run in self.runs if run.ended is not None]
        if not ended:
            return
        run = min(ended, key=lambda run: run.ended or 0.0)
        assert run.ended is not None
        if audit.now < run.ended + KEPT - 200.0:
            audit.rest_until(run.ended + KEPT - 200.0)
            self.check(run)
        audit.rest_until(run.ended + KEPT + 10.0)
        audit.right(audit.ask_api("GET", f"/v1/runs/{run.id}"), 404, "run_not_found", "a run of an hour ago")
        self.runs.clear()

    # --- what is looked at ---

    def show(self, run: _Run) -> dict[str, Any]:
        view: dict[str, Any] = self.audit.right(self.audit.ask_api("GET", f"/v1/runs/{run.id}"), 200)
        return view

    def look(self) -> None:
        if self.runs:
            self.live()
            run = self.audit.pick(self.runs)
            if run.ended is None or self.audit.now < run.ended + KEPT - 60.0:
                self.check(run)

    def look_at_the_dead(self) -> None:
        """What was left unread for five minutes is read by nobody."""
        audit = self.audit
        for run in [run for run in self.runs if run.events is None and run.ended is not None][:1]:
            assert run.ended is not None
            if audit.chance(0.3) and not self.live():
                audit.rest_until(run.ended + UNREAD + 10.0)
                caller = audit.ask_api("GET", f"/v1/runs/{run.id}/events")
                audit.right(caller, 404, "run_not_found", "events that nobody came for")
                run.events = Events()

    def check(self, run: _Run) -> None:
        audit, view = self.audit, self.show(run)
        told = (view["object"], view["run_id"], view["session_id"], view["status"])
        audit.same(told, ("svc.run", run.id, run.session, run.status), f"the run {run.text!r}")
        audit.near(view["created_at"], audit.wall - audit.now + run.began, "when a run was begun", 1.0)
        audit.same("output" in view, run.status == "completed", f"whether {run.status} has an output")
        audit.same("error" in view, run.status == "failed", f"whether {run.status} has an error")
        if run.status == "completed" and not run.text.startswith("notes"):
            audit.same(view["output"].strip(), run.output, "what a run has said")
        if run.status in OVER:
            audit.same(view["last_event"], f"run.{run.status}", "the last of a run")
        if run.status != "waiting_for_approval" and "approvals" in view:
            audit.wrong(f"a run that is {run.status} asks {view['approvals']}")


def runs(audit: Audit) -> None:
    """Runs are begun, watched, asked, stopped and forgotten."""
    _Runs(audit).steps()
    audit.rest(UNREAD + 10.0)  # until nobody is waited for any more


def queues(audit: Audit) -> None:
    """Turns of one chat come one after another, those of others when there is a place; each is heard whole."""
    chats = [audit.new_chat() for _ in range(CAP + 1)]
    waits: list[tuple[str, Caller, Events, str]] = []
    heard = Listener(audit)

    def turn(chat: str, manner: str) -> None:
        text, events = f"{manner}: {audit.word()}", Events()
        caller = audit.begin_api("POST", f"/api/sessions/{chat}/chat/stream", {"message": text}, events)
        waits.append((text, caller, events, chat))
        audit.rest(0.5)

    for chat in chats[:CAP]:
        turn(chat, "hang")
    crowd = [audit.pick(chats) for _ in range(audit.rng.randint(2, 4))]
    for chat in crowd:
        turn(chat, "plain")
    audit.rest(3.0)
    audit.same(heard.questions, [text for text, *_ in waits[:CAP]], f"what is asked while {CAP} turns have not ended")
    audit.right(audit.ask_api("POST", "/v1/runs", {"input": "x"}), 429, "rate_limit_exceeded", "a run beside them")
    firsts = waits[:CAP]
    audit.rng.shuffle(firsts)
    for text, caller, events, _ in firsts:
        run_id = events.told[0][1]["run_id"]
        audit.stop_run(run_id)
        audit.answer(caller, 30.0)
        audit.same(events.names[-3:], ["assistant.completed", "run.completed", "done"], f"the end of {text!r}")
        done = events.told[-3][1]
        flags = (done["completed"], done["partial"], done["interrupted"])
        audit.same(flags, (False, True, True), "how a turn ends that is stopped")
    for text, caller, events, chat in waits[CAP:]:
        audit.answer(caller, 60.0)
        audit.same(events.names[-1:], ["done"], f"the end of {text!r}")
        rows = audit.rows_of(chat)
        said = [row["content"] for row in rows if row["role"] == "user"]
        due = [each for each, _, _, where in waits if where == chat]
        audit.same(said, due[: max(len(said), due.index(text) + 1)], "what was said in a chat")
        answers = [row["content"].strip() for row in rows if row["role"] == "assistant"]
        if f"You said {text}" not in answers:
            audit.wrong(f"{text!r} was answered {answers}")
    by_chat = [[text for text, _, _, where in waits if where == chat] for chat in chats]
    for texts in by_chat:
        audit.same([text for text in heard.questions if text in texts], texts, "the order in which a model was asked")
    heard.stop()


def keys(audit: Audit) -> None:
    """One key is one question for five minutes; another question takes its place."""
    key, path = audit.word(), audit.pick(("/v1/chat/completions", "/v1/responses"))
    stands: tuple[str, float, str] | None = None  # for which question, since when, and the answer's id
    texts = [f"plain: {audit.word()}" for _ in range(2)]
    for _ in range(audit.rng.randint(4, 7)):
        text = audit.pick(texts)
        body: dict[str, object] = (
            {"messages": [{"role": "user", "content": text}]} if "chat" in path else {"input": text}
        )
        body |= {"model": "sim"}
        heard = Listener(audit, text)
        before = audit.now
        answer = audit.right(audit.ask_api("POST", path, body, idempotency_key=key), 200)
        heard.stop()
        again = stands is not None and stands[0] == text and before < stands[1] + KEYS_LAST
        audit.same(bool(heard.asked), not again, f"whether a model is asked {text!r} with a key for {stands}")
        if again and stands is not None:
            audit.same(answer["id"], stands[2], "the answer that a key stands for")
        else:
            if stands is not None and stands[2] == answer["id"]:
                audit.wrong(f"{text!r} is answered as {stands[0]!r} was")
            stands = text, before, answer["id"]
        if audit.chance(0.4):
            audit.rest_until(stands[1] + KEYS_LAST + audit.pick((-2.0, 2.0)))


def completions(audit: Audit) -> None:
    """A completion in one, or piece by piece, behind what was said before."""
    for _ in range(audit.rng.randint(2, 4)):
        text, streams = f"plain: {audit.word()}", audit.chance(0.5)
        said = [{"role": "system", "content": f"Be {audit.word()}."}] if audit.chance(0.5) else []
        said += [{"role": "user", "content": "before"}, {"role": "assistant", "content": "yes"}] * audit.pick((0, 1, 2))
        body: dict[str, Any] = {"messages": [*said, {"role": "user", "content": text}], "stream": streams}
        model = audit.pick((None, "default", "some-model"))
        body |= {} if model is None else {"model": model}
        counts = streams and audit.chance(0.5)  # decision 60: tokens are told who asks for them
        body |= {"stream_options": {"include_usage": True}} if counts else {}
        heard, events = Listener(audit, text), Events()
        caller = audit.answer(audit.begin_api("POST", "/v1/chat/completions", body, events if streams else None), 300.0)
        audit.right(caller, 200)
        heard.stop()
        due = [(row["role"], row["content"]) for row in body["messages"] if row["role"] != "system"]
        audit.same(heard.said(), due, "what a model is given")
        if any(row["role"] == "system" and row["content"] not in heard.orders() for row in said):
            audit.wrong(f"a model is not told {said[0]}")
        if not streams:
            answer = caller.answer.json
            choice = answer["choices"][0]
            told = (answer["object"], choice["index"], choice["finish_reason"], choice["message"]["content"].strip())
            audit.same(told, ("chat.completion", 0, "stop", f"You said {text}"), "a completion")
            continue
        chunks = [data for _, data in events.told]
        audit.same({chunk["object"] for chunk in chunks}, {"chat.completion.chunk"}, "chunks")
        audit.same(len({chunk["id"] for chunk in chunks}), 1, "how many ids chunks have")
        audit.same(chunks[0]["choices"][0]["delta"].get("role"), "assistant", "the first chunk")
        if counts:
            last = chunks.pop()
            audit.same((last["choices"], [chunk["usage"] for chunk in chunks]), ([], [None] * len(chunks)), "tokens")
            audit.same({*last["usage"]}, {"prompt_tokens", "completion_tokens", "total_tokens"}, "tokens")
        elif any("usage" in chunk for chunk in chunks):
            audit.wrong("tokens are told, and nobody asked for them")
        reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
        audit.same(reasons, [None] * (len(chunks) - 1) + ["stop"], "when it ends")
        whole = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
        audit.same((whole.strip(), events.raw[-1]), (f"You said {text}", "[DONE]"), "a completion in pieces")


TURNS = (runs, runs, runs, queues, keys, completions)
