import pytest

from svc_proto.voice.realtime.voice_runs import MAX_CALLS
from tests.voice.realtime.dialogue import ConversationDialogue, dialogues, play, talk_of

GOLDEN = """
the golden turn
    commit -> CommitInput
    transcribed 'how full is the disk' -> input_transcript.final(text=how full is the disk) Respond
    response_started r1 -> response.started(response_id=r1)
    response_started r1 -> nothing
    audio r1 -> EmitAudio(response_id=r1, sample_rate=None, label=None)
    call r1 run k1 'df -h'
        -> playback_drain.requested(call_id=k1, tool_name=svc_run_task, reason=pre_svc_ack, timeout_ms=2500)
    response_done r1 -> ~response.intermediate_done(response_id=r1)
    on_client_drained k1 -> ~playback_drain.completed(call_id=k1, reason=pre_svc_ack)
        -> svc.run.progress(session_id=c1, run_id=None, call_id=k1, status=starting, status_key=run:checking_svc,
        -> message=Checking., should_speak=False, active_tool_name=None, last_tool_name=None, completed_tool_count=0)
    after 0.75 -> StartRun(call_id=k1, text=df -h, profile=None, session_id=c1)
    run_event k1 ApiRunStarted n1 -> svc.run.started(session_id=c1, run_id=n1)
    run_event k1 ToolBegan t1 terminal
        -> svc.tool.started(session_id=c1, run_id=n1, tool_call_id=t1, tool_name=terminal, arguments=None)
    run_event k1 ToolSucceeded t1 terminal
        -> svc.tool.completed(session_id=c1, run_id=n1, tool_call_id=t1, tool_name=terminal, result_preview=None)
    answers k1 -> svc.run.completed(session_id=c1, run_id=n1)
        -> AnswerCall(call_id=k1, ok=True, status=completed, run_id=n1, session_id=c1, profile=None, text=ANSWER)
        -> playback_drain.requested(call_id=k1, tool_name=svc_run_task, reason=tool_result_summary, timeout_ms=2500)
    on_client_drained any -> ~playback_drain.completed(call_id=k1, reason=tool_result_summary) ReadAloud(text=ANSWER)
    response_started r2 -> nothing
    text r2 ANSWER -> nothing
    audio_done r2 -> nothing
    response_done r2 -> response.started(response_id=r2, delivery=forced_summary)
        -> response.delta(delta=ANSWER, source=provider, response_id=r2, delivery=forced_summary)
        -> output_audio.done(response_id=r2, delivery=forced_summary)
        -> response.done(response_id=r2, delivery=forced_summary)
    is over
"""  # the example at the end of wire terminal-voice 6.6
TURNS = """
the provider answers by itself
    add_user_text hello -> input_transcript.final(text=hello, source=client_text) SendUserText(text=hello) Respond
    text r1 Hi. -> response.started(response_id=r1) response.delta(delta=Hi., source=provider, response_id=r1)
    audio_done r1 -> output_audio.done(response_id=r1)
    response_done r1 -> response.done(response_id=r1)
    is over
    text r1 late -> nothing
    audio_done r1 -> nothing
a response needs no transcript
    hearing
    after 10 -> Respond
    transcribed late -> input_transcript.final
nothing was said
    commit nothing -> input_transcript.final(text=) response.done(response_id=None)
    answering
    commit nothing -> nothing
    is answering
a provider that says nothing
    answering
    after 45 -> error(message=The voice provider did not answer.) response.done(response_id=r1)
    is idle
time in which the client took nothing does not count
    postpone 5
    answering
    postpone 45
    after 45 -> nothing
    after 45 -> error response.done
how a response ends
    begins r1 hello
    response_done r1 cancelled -> response.done(response_id=r1, cancelled=True)
    begins r2 again
    response_done r2 incomplete -> response.done(response_id=r2, cancelled=None)
    begins r3 'and again'
    response_done r3 failed -> error(message=The voice provider could not answer.) response.done(response_id=r3)
    is idle
a client that does not say that it has played
    acknowledging
    after 2.5 -> playback_drain.timeout(call_id=k1, reason=pre_svc_ack, timeout_ms=2500)
        -> svc.run.progress(session_id=c1, run_id=None, status=starting, message=Checking., should_speak=False)
    after 0.75 -> StartRun
    on_client_drained k1 -> nothing
    answers k1 -> svc.run.completed AnswerCall playback_drain.requested
    after 2.5 -> playback_drain.timeout
    after 2.5 -> ReadAloud(text=ANSWER)
a call id counts once
    working
    call r1 run k1 -> nothing
    call unknown run k2 -> CancelResponse
a second task in the same response
    answering
    call r1 run k1
    call r1 run k2 -> AnswerCall(call_id=k2, ok=False)
a small function
    answering
    call r1 status k0
        -> AnswerCall(call_id=k0, ok=True, run_id=None, status=idle, session_id=c1, pending_confirmation_id=None)
        -> playback_drain.requested(call_id=k0, tool_name=None, reason=tool_result_summary, timeout_ms=2500)
    call r1 unknown k2 -> AnswerCall(call_id=k2, ok=False)
    on_client_drained - -> ~playback_drain.completed
    response_done r1 -> Respond ~response.intermediate_done
    text r2 Nothing. -> response.started response.delta
the person talks beside a run
    working
    run_event k1 ToolBegan t1 terminal
    commit -> CommitInput
    transcribed 'how far are you' -> input_transcript.final Respond
    response_started r2
    after 5 -> svc.run.progress(session_id=c1, run_id=n1, status=running, status_key=tool:terminal:running,
        -> message=Running command., should_speak=False, floor=provider_speaking, tier=foreground, elapsed_ms=5000,
        -> active_tool_name=terminal, last_tool_name=terminal, completed_tool_count=0)
    call r2 status k2
        -> AnswerCall(call_id=k2, ok=True, run_id=n1, status=running, session_id=c1, pending_confirmation_id=None)
        -> playback_drain.requested(call_id=k2)
    response_done r2 -> ~response.intermediate_done
    on_client_drained k2 -> ~playback_drain.completed Respond
    text r3 'Nearly done.' -> response.started response.delta
    answers k1 -> svc.run.completed AnswerCall
    call r3 status k3 -> AnswerCall(status=completed) playback_drain.requested
    response_done r3
    on_client_drained k3
    response_started r4
    response_done r4 -> response.done playback_drain.requested
    on_client_drained k1 -> ~playback_drain.completed ReadAloud
the status before the run
    acknowledging
    response_done r1
    begins r2 what?
    call r2 status k2 -> AnswerCall(status=starting) playback_drain.requested
a question is answered by hand
    confirm q1 allow -> svc.confirmation.forwarded(confirmation_id=q1, answer=None)
    working
    run_event k1 ApprovalAsked q1
    run_event k1 ApprovalAsked q2
    confirm q2 allow -> svc.confirmation.forwarded(confirmation_id=q2, answer=None)
    confirm q1 allow -> AnswerApproval(call_id=k1, run_id=n1, confirmation_id=q1, choice=once, answer=allow)
    confirm q1 allow -> svc.confirmation.forwarded
    approved k1 q1 allow -> svc.confirmation.forwarded(confirmation_id=q1, answer=allow)
        -> svc.confirmation.requested(session_id=c1, run_id=n1, confirmation_id=q2, message=May I?)
    approved k9 q1 - -> svc.confirmation.forwarded
a question is answered by word
    working
    run_event k1 ApprovalAsked q1
    begins r2 'yes, do it'
    call r2 confirm k2 q1 allow_once
        -> AnswerApproval(call_id=k1, run_id=n1, confirmation_id=q1, choice=once, answer=allow_once)
        -> AnswerCall(call_id=k2, ok=True, confirmation_id=q1, status=forwarded) playback_drain.requested(call_id=k2)
    call r2 confirm k3 q1 allow -> AnswerCall(call_id=k3, ok=False, confirmation_id=q1, status=not_pending)
cancel
    cancel -> CancelResponse ClearInput response.done(response_id=None, cancelled=True)
    working
    cancel -> StopRun(call_id=k1) svc.run.cancelled(session_id=c1, run_id=n1)
        -> AnswerCall(call_id=k1, ok=False, cancelled=True, run_id=n1, session_id=c1) CancelResponse ClearInput
        -> response.done(response_id=None, cancelled=True, run_id=n1)
    run_event k1 AnswerDelta late -> nothing
    run_ended k1 -> nothing
    run_failed k1 late -> nothing
cancel before the run
    acknowledging
    cancel -> AnswerCall CancelResponse ClearInput response.done
cancel while the relay speaks
    rendering
    rendered_audio forced-summary-fallback-1
    cancel -> StopRendering CancelResponse ClearInput
        -> response.done(response_id=forced-summary-fallback-1, cancelled=True)
cancel by word
    working
    begins r2 'stop it'
    call r2 cancel k2 -> StopRun(call_id=k1) svc.run.cancelled(session_id=c1, run_id=n1)
        -> AnswerCall(call_id=k1, ok=False, cancelled=True, run_id=n1, session_id=c1)
        -> AnswerCall(call_id=k2, ok=True, run_id=n1, status=cancelled, session_id=c1)
        -> playback_drain.requested(call_id=k2)
    call r2 cancel k3 -> svc.run.cancelled(session_id=c1, run_id=)
        -> AnswerCall(call_id=k3, ok=True, run_id=None, status=idle, session_id=c1)
cancel of an answer that waits
    working
    begins r2 'stop it'
    answers k1
    call r2 cancel k2 -> svc.run.cancelled(session_id=c1, run_id=n1)
        -> AnswerCall(call_id=k2, ok=True, run_id=n1, status=cancelled, session_id=c1)
        -> playback_drain.requested(call_id=k2)
    after 60 -> playback_drain.timeout Respond error response.done
a run that is called and cancelled at once
    answering
    call r1 run k1
    call r1 cancel k2 -> svc.run.cancelled(session_id=c1, run_id=) AnswerCall(call_id=k1, cancelled=True, run_id=)
        -> response.done(response_id=None, cancelled=True, run_id=)
        -> AnswerCall(call_id=k2, ok=True, run_id=None, status=cancelled, session_id=c1)
    is idle
a run that another client stops
    working
    run_event k1 Interrupted 'so far'
    run_ended k1 -> svc.run.cancelled(session_id=c1, run_id=n1) AnswerCall(call_id=k1, cancelled=True, run_id=n1)
        -> response.done(response_id=None, cancelled=True, run_id=n1)
    is idle
a run that another client stops while the person talks
    working
    commit
    run_event k1 Interrupted
    run_ended k1 -> svc.run.cancelled AnswerCall
    is hearing
another chat session
    working
    run_event k1 ChatSessionBound c2 -> svc.session.bound(session_id=c2, profile=None)
    run_event k1 AnswerDelta The
        -> svc.run.progress(session_id=c2, run_id=n1, status_key=run:drafting, message=Drafting the answer.)
notices are logged
    answering
    problem 'no active response' benign -> ~realtime_agent.provider_notice(message=no active response)
    is answering
an idle session is closed by the provider
    problem 'timed out by inactivity' idle -> ~realtime_agent.provider_idle_close(message=timed out by inactivity)
        -> CloseClient(code=1000, reason=the voice provider has closed an idle session)
    working
    problem 'timed out by inactivity' idle -> ~realtime_agent.provider_idle_close DetachRun response.done CloseClient
an error ends the turn
    problem quota -> error(message=quota)
    working
    problem quota -> error(message=quota) DetachRun(call_id=k1) response.done(response_id=None)
an answer is shown before an error
    judging
    problem quota -> CancelResponse response.started response.delta response.done error
    is idle
the provider is gone
    provider_lost gone -> CloseClient(code=1000, reason=the voice provider has closed the session)
    hearing
    provider_lost gone -> error(message=gone) response.done(response_id=None)
        -> CloseClient(code=1011, reason=the voice provider is gone)
the person speaks up
    answering
    commit -> CancelResponse response.done(response_id=r1, cancelled=True) CommitInput
    text r1 and -> nothing
    response_done r1 cancelled
    add_user_text 'no, wait' -> response.done input_transcript.final SendUserText Respond
    add_user_text or -> CancelResponse response.done input_transcript.final SendUserText Respond
    response_started orphan -> CancelResponse
    response_done orphan cancelled -> nothing
    response_started r2 -> response.started
"""


@pytest.mark.parametrize("word", ["svc", "hermes"])
def test_the_golden_turn(word: str) -> None:
    for title, lines in dialogues(GOLDEN.replace("svc", word)).items():
        play(lines, talk_of(f"{title} [{word}]"))


@pytest.mark.parametrize(("title", "lines"), dialogues(TURNS).items())
def test_a_turn(title: str, lines: list[str]) -> None:
    play(lines, talk_of(title))


def test_remembered_call_ids_are_limited() -> None:
    talk = ConversationDialogue()
    talk.do("answering")
    first = "call r1 unknown k0"
    assert talk.do(first) != []
    for number in range(MAX_CALLS - 1):
        talk.do(f"call unknown status x{number}")
    assert talk.do(first) == []
    talk.do("call unknown status x")
    assert talk.do(first) != []
