"""Check of approvals over a restart: `always` is stored, and applies to the approved call only (wire api 6.5)."""

from __future__ import annotations

from fuzz.simulation.checks.check_context import CheckContext
from fuzz.simulation.checks.support.stream_capture import EventCapture
from fuzz.simulation.servers.model_script import ModelRound, question_with_script


def approval_over_a_restart(audit: CheckContext) -> None:
    """Allow one note permanently, restart the API, and let the agent add this note and another one in a new chat."""
    allowed, other = audit.new_word(), audit.new_word()
    _ask(audit, [allowed], {allowed: "always"})
    _ask(audit, [allowed], {})
    audit.restart("api", kill=audit.chance(0.5))
    _ask(audit, [allowed, other], {other: "deny"})


def _ask(audit: CheckContext, notes: list[str], answers: dict[str, str]) -> None:
    """Let the agent add these notes; exactly those in `answers` must need an approval. Remove the added notes."""
    calls = [["memory", {"action": "add", "content": note}] for note in notes]
    unknown = f"no_{audit.new_word()}"  # the result of an unknown tool makes later notes need an approval
    question = question_with_script(
        audit.new_word(), ModelRound(calls=[[unknown, {}]]), ModelRound(calls=calls), ModelRound(text="Done.")
    )
    events = EventCapture()
    caller = audit.start_api_request("POST", "/v1/runs", {"input": question, "stream": True}, events)
    audit.wait_until(
        lambda: caller.is_closed or events.names.count("approval.request") == len(answers) > 0, 30.0, "no answer"
    )
    requests = [data for name, data in events.told if name == "approval.request"]
    audit.expect_equal([data["args"]["content"] for data in requests], [*answers], "calls that ask for approval")
    for data in requests:
        body = {"choice": answers[data["args"]["content"]], "call_id": data["call_id"]}
        audit.expect_status(audit.request_api("POST", f"/v1/runs/{data['run_id']}/approval", body), 200)
    audit.wait_response(caller, 30.0)
    audit.expect_equal(events.names[-1], "run.completed", "end of a run that asked for approval")
    added = [note for note in notes if answers.get(note) != "deny"]
    entries = audit.expect_status(audit.request_api("GET", "/api/memory?target=memory"), 200)["entries"]
    audit.expect_equal([note for note in entries if note in notes], added, "notes that were added")
    for note in added:
        audit.expect_status(audit.request_api("DELETE", "/api/memory", {"target": "memory", "old_text": note}), 200)


CHECKS = (approval_over_a_restart,)
