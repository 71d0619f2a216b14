"""Check of approvals over a restart: `always` is stored, and applies to the approved call only (wire api 6.5)."""

from fuzz.simulation.checks.check_context import CheckContext
from fuzz.simulation.checks.support.stream_capture import EventCapture
from fuzz.simulation.servers.model_script import ModelRound, question_with_script


def approval_over_a_restart(context: CheckContext) -> None:
    """Approve a note permanently, restart the API, and check that only another note needs an approval."""
    allowed, other = context.new_word(), context.new_word()
    _ask(context, [allowed], {allowed: "always"})
    _ask(context, [allowed], {})
    context.restart("api", kill=context.chance(0.5))
    _ask(context, [allowed, other], {other: "deny"})


def _ask(context: CheckContext, notes: list[str], answers: dict[str, str]) -> None:
    """Let the agent add these notes; exactly those in `answers` must need an approval. Remove the added notes."""
    calls = [["memory", {"action": "add", "content": note}] for note in notes]
    unknown = f"no_{context.new_word()}"  # the result of an unknown tool makes later notes need an approval
    question = question_with_script(
        context.new_word(), ModelRound(calls=[[unknown, {}]]), ModelRound(calls=calls), ModelRound(text="Done.")
    )
    events = EventCapture()
    caller = context.start_api_request("POST", "/v1/runs", {"input": question, "stream": True}, events)
    context.wait_until(
        lambda: caller.is_closed or events.names.count("approval.request") == len(answers) > 0, 30.0, "no answer"
    )
    requests = [data for name, data in events.told if name == "approval.request"]
    context.expect_equal([data["args"]["content"] for data in requests], [*answers], "calls that ask for approval")
    for data in requests:
        body = {"choice": answers[data["args"]["content"]], "call_id": data["call_id"]}
        context.expect_status(context.request_api("POST", f"/v1/runs/{data['run_id']}/approval", body), 200)
    context.wait_response(caller, 30.0)
    context.expect_equal(events.names[-1], "run.completed", "end of a run that asked for approval")
    added = [note for note in notes if answers.get(note) != "deny"]
    entries = context.expect_status(context.request_api("GET", "/api/memory?target=memory"), 200)["entries"]
    context.expect_equal([note for note in entries if note in notes], added, "notes that were added")
    for note in added:
        context.expect_status(context.request_api("DELETE", "/api/memory", {"target": "memory", "old_text": note}), 200)


CHECKS = (approval_over_a_restart,)
