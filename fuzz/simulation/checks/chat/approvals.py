"""Approvals of tool calls over a restart: `always` is remembered, and only for what was allowed (wire api 6.5)."""

from __future__ import annotations

from fuzz.simulation.checks.check_context import Audit
from fuzz.simulation.checks.support.stream_capture import Events
from fuzz.simulation.servers.model_script import Round, asking


def approval_over_a_restart(audit: Audit) -> None:
    """Allow one note for good, restart the API, and ask for the note and for another one in a new chat session."""
    allowed, other = audit.word(), audit.word()
    _ask(audit, [allowed], {allowed: "always"})
    _ask(audit, [allowed], {})
    audit.restart("api", kill=audit.chance(0.5))
    _ask(audit, [allowed, other], {other: "deny"})


def _ask(audit: Audit, notes: list[str], answers: dict[str, str]) -> None:
    """Have the agent add these notes; exactly those in `answers` ask for approval. Remove what was added."""
    calls = [["memory", {"action": "add", "content": note}] for note in notes]
    unknown = f"no_{audit.word()}"  # its result makes later notes need an approval
    question = asking(audit.word(), Round(calls=[[unknown, {}]]), Round(calls=calls), Round(text="Done."))
    events = Events()
    caller = audit.begin_api("POST", "/v1/runs", {"input": question, "stream": True}, events)
    audit.wait(lambda: caller.over or events.names.count("approval.request") == len(answers) > 0, 30.0, "no answer")
    requests = [data for name, data in events.told if name == "approval.request"]
    audit.same([data["args"]["content"] for data in requests], [*answers], "calls that ask for approval")
    for data in requests:
        body = {"choice": answers[data["args"]["content"]], "call_id": data["call_id"]}
        audit.right(audit.ask_api("POST", f"/v1/runs/{data['run_id']}/approval", body), 200)
    audit.answer(caller, 30.0)
    audit.same(events.names[-1], "run.completed", "end of a run that asked for approval")
    added = [note for note in notes if answers.get(note) != "deny"]
    entries = audit.right(audit.ask_api("GET", "/api/memory?target=memory"), 200)["entries"]
    audit.same([note for note in entries if note in notes], added, "notes that were added")
    for note in added:
        audit.right(audit.ask_api("DELETE", "/api/memory", {"target": "memory", "old_text": note}), 200)


CHECKS = (approval_over_a_restart,)
