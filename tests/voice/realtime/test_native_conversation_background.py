import pytest

from tests.voice.realtime.dialogue import ConversationDialogue, dialogues, play, talk_of

BACKGROUND = """
a run that takes long [background]
    working
    after 5.875 -> svc.run.progress
    after 0.125 -> ~svc_run.promoted(run_id=n1, tier=promoted)
        -> svc.run.promoted(session_id=c1, run_id=n1, tier=promoted, promote_after_ms=6000, queued_count=0)
        -> AnswerCall(call_id=k1, ok=True, status=running_in_background) Respond
    text h1 'I go on with that.' -> response.started response.delta
    response_done h1 -> response.done
    is idle
    after 4 -> svc.run.progress(tier=promoted, elapsed_ms=10000)
    answers k1 -> svc.run.completed(session_id=c1, run_id=n1)
        -> svc.run.background_completed(session_id=c1, run_id=n1, queued_count=0, ok=True, tool_count=0)
    after 0 -> playback_drain.requested(call_id=None, tool_name=None, reason=forced_summary, timeout_ms=2500)
    on_client_drained - -> ~playback_drain.completed(call_id=None, reason=forced_summary) ReadAloud(text=ANSWER)
    text b1 ANSWER -> nothing
    response_done b1 -> response.started(response_id=b1, delivery=forced_summary)
        -> response.delta(delta=ANSWER, source=provider, response_id=b1, delivery=forced_summary)
        -> response.done(response_id=b1, delivery=forced_summary)
    is over
nothing is promoted when that is off
    answering
    call r1 run k1 df background -> svc.run.progress
    after 5.75 -> StartRun svc.run.progress
    after 600
    is working
a slow tool is not waited for [background]
    working
    run_event k1 ToolBegan t1 web_search
    after 1
    run_event k1 ToolBegan t2 open_terminal
    after 1
    run_event k1 ToolBegan t3 spawn_agent -> svc.tool.started
    after 0.49 -> nothing
    after 0.01 -> ~svc_run.promoted svc.run.promoted AnswerCall Respond
a run that no user waits for [background]
    answering
    audio r1
    call r1 run k1 df background -> StartRun(call_id=k1, text=df, profile=None, session_id=c1)
        -> ~svc_run.promoted(run_id=, tier=durable)
        -> svc.run.promoted(session_id=c1, run_id=, tier=durable, promote_after_ms=6000, provider_acknowledged=True)
        -> AnswerCall(call_id=k1, ok=True, status=running_in_background) playback_drain.requested(call_id=k1)
    is consulted
    response_done r1
    on_client_drained k1 -> ~playback_drain.completed Respond
    answers k1 -> svc.run.completed svc.run.background_completed ~realtime_agent.result_deferred
no turn is cut short by a promotion [background]
    working
    after 5
    begins r2 'how far?'
    after 3 -> nothing
    response_done r2 -> response.done
    after 0 -> ~svc_run.promoted svc.run.promoted AnswerCall Respond
an answer waits until the microphone is quiet [background]
    unheard
    on_user_speech
    after 1.375 -> nothing
    after 0.125 -> playback_drain.requested
an answer does not wait for ever [background]
    unheard
    keeps talking -> nothing
    on_user_speech
    after 0.875 -> nothing
    after 0.125 -> playback_drain.requested
an answer waits for the end of a turn [background]
    quiet
    begins r3 'what is the time'
    answers k1 -> svc.run.completed(session_id=c1, run_id=n1) svc.run.background_completed(ok=True)
        -> ~realtime_agent.result_deferred(run_id=n1)
    after 20 -> nothing
    response_done r3
    after 0 -> playback_drain.requested
an answer that is only shown [nothing spoken in the background]
    quiet
    on_user_speech
    answers k1
    after 0 -> response.started(response_id=background-visual-1, source=svc, delivery=visual_only)
        -> response.delta(delta=ANSWER, response_id=background-visual-1, source=svc, delivery=visual_only)
        -> response.done(response_id=background-visual-1, source=svc, delivery=visual_only, final_text=ANSWER)
    is idle
a run that fails [background]
    quiet
    run_failed k1 No. svc_broker_auth_failed
        -> svc.run.background_completed(session_id=c1, run_id=n1, queued_count=0, ok=False, error=No.)
        -> error(message=No., call_id=k1, error_code=svc_broker_auth_failed)
    is over
    run_failed k1 No. -> nothing
a run that takes too long [background]
    quiet
    after 293
    after 1 -> DetachRun(call_id=k1) svc.run.background_completed(session_id=c1, run_id=n1, queued_count=0, ok=False)
        -> error(message=The task takes longer than a voice session waits for it. Its answer will be in the chat.)
    answers k1 -> nothing
    is over
a run that another client stops [background]
    quiet
    run_event k1 Interrupted 'so far'
    run_ended k1 -> svc.run.cancelled(session_id=c1, run_id=n1)
    is over
a quick task beside a run [background]
    quiet
    ask k2 ls
    after 0.75 -> StartRun(call_id=k2, text=ls, profile=None, session_id=None)
    run_event k2 ChatSessionBound side -> nothing
    run_event k2 ApiRunStarted n2 -> svc.run.started(session_id=c1, run_id=n2)
    answers k2 -> svc.run.completed AnswerCall playback_drain.requested
    on_client_drained k2
    text b2 ANSWER
    response_done b2 -> response.started response.delta response.done
    ask k3 ls
    after 0.75 -> StartRun(call_id=k3, text=ls, profile=None, session_id=side)
a task beside a run belongs to the chat of the run [background]
    aside
    run_event k1 ChatSessionBound c2
    run_event k2 ApiRunStarted n2 -> svc.run.started(session_id=c2, run_id=n2)
a slow task beside a run waits in line [background]
    aside
    run_event k2 ChatSessionBound side
    run_event k2 ApiRunStarted n2
    after 6 -> svc.run.progress(session_id=c1, run_id=n1, status=running, message=Still working., should_speak=False)
        -> svc.run.progress(session_id=c1, run_id=n2, status=running, message=Still working., should_speak=False)
        -> StopRun(call_id=k2)
        -> svc.run.queued(session_id=c1, run_id=, queued_count=1, queue_position=1, transcript_preview=ls)
        -> AnswerCall(call_id=k2, ok=True, status=queued, position=1) Respond
    run_event k2 ApiRunStarted late -> nothing
    call r-k2 run k1 again -> nothing
    response_started h2
    call h2 status k9 -> AnswerCall(run_id=n1, queued_count=1) playback_drain.requested
    response_done h2
    on_client_drained k9
    response_started h3
    answers k1 -> svc.run.completed svc.run.background_completed ~realtime_agent.result_deferred
    after 3 -> nothing
    response_done h3
    after 0 -> StartRun(call_id=k2:queued, text=ls, profile=None, session_id=c1)
        -> ~svc_run.promoted(run_id=, tier=promoted)
        -> svc.run.promoted(session_id=c1, run_id=, tier=promoted, promote_after_ms=6000, provider_acknowledged=False)
        -> playback_drain.requested(reason=forced_summary)
    heard b1
    answers k2:queued -> svc.run.completed svc.run.background_completed
    ask k4 du
    after 0.75 -> StartRun
    is working
a task that has waited can ask [silent]
    quiet
    ask k2 ls background
    run_event k1 ChatSessionBound c2
    answers k1
    after 0 -> StartRun(call_id=k2:queued, session_id=c2) ~svc_run.promoted svc.run.promoted playback_drain.requested
    run_event k2:queued ToolWaits t1 terminal
        -> svc.tool.started(session_id=c2, run_id=, tool_call_id=t1, tool_name=terminal, arguments=None)
        -> FetchApproval(call_id=k2:queued, run_id=, tool_call_id=t1, message=Allow terminal?)
    run_event k2:queued ApprovalAsked t1 -> svc.confirmation.requested
a task that has waited does not begin while the person speaks [silent]
    quiet
    ask k2 ls background
    on_user_speech
    answers k1
    after 1.375 -> nothing
    after 0.125 -> StartRun ~svc_run.promoted svc.run.promoted playback_drain.requested
a task that has begun to answer is not begun again [background]
    aside
    run_event k2 AnswerDelta It
    after 10 -> svc.run.progress svc.run.progress svc.run.progress svc.run.progress
    is working
    answers k1
    after 0 -> ~svc_run.promoted svc.run.promoted AnswerCall Respond
a task beside a run that is not in the chat [background]
    aside
    run_event k2 ChatSessionBound side
    run_event k2 ToolBegan t1 web
    after 10
    answers k1
    after 0 -> ~svc_run.promoted svc.run.promoted AnswerCall Respond
    speaks h2
    ask k3 du
    after 0.75 -> StartRun(call_id=k3, session_id=c1)
    answers k2
    answers k3
    heard b1
    after 0
    heard b2
    after 0
    heard b3
    after 0
    is over
    ask k4 first background
    on_client_drained k4
    speaks h4
    ask k5 second
    after 0.75 -> StartRun(call_id=k5, session_id=None)
a chat session of its own that is told late is not taken for another task [background]
    aside
    run_event k2 ToolBegan t1 web
    after 10
    answers k1
    after 0
    run_event k2 ChatSessionBound side -> nothing
    speaks h2
    answers k2
    heard b1
    after 0
    heard b2
    ask k4 first background
    on_client_drained k4
    speaks h4
    ask k5 second
    after 0.75 -> StartRun(call_id=k5, session_id=None)
a task that is asked for again while it goes on [background]
    quiet
    ask k2 df -> input_transcript.final SendUserText Respond response.started AnswerCall(call_id=k2, ok=False)
        -> playback_drain.requested(call_id=k2) ~response.intermediate_done
the queue has an end [silent]
    quiet
    ask q0 'ls 0' background -> input_transcript.final SendUserText Respond response.started svc.run.queued AnswerCall
        -> response.done ~response.intermediate_done
    is idle
    ask q1 'ls 1' background -> input_transcript.final SendUserText Respond response.started svc.run.queued AnswerCall
        -> response.done ~response.intermediate_done
    ask q2 'ls 2' background -> input_transcript.final(queue_position=None) SendUserText Respond response.started
        -> svc.run.queued AnswerCall response.done ~response.intermediate_done
    ask q9 ls background -> input_transcript.final SendUserText Respond
        -> response.started AnswerCall(call_id=q9, ok=False, error=busy) playback_drain.requested(call_id=q9)
        -> ~response.intermediate_done
    on_client_drained q9
    speaks h9
    answers k1
    after 0 -> StartRun ~svc_run.promoted svc.run.promoted playback_drain.requested
    heard b1
    answers q0:queued
    after 0 -> StartRun(call_id=q1:queued, text=ls 1, profile=None, session_id=c1)
        -> ~svc_run.promoted(run_id=, tier=durable)
        -> svc.run.promoted(session_id=c1, run_id=, tier=durable, promote_after_ms=6000, provider_acknowledged=False)
        -> playback_drain.requested(reason=forced_summary)
answers without a listener hold up the queue [silent]
    quiet
    on_client_left
    ask q0 'ls 0' background
    ask q1 'ls 1' background
    ask q2 'ls 2' background
    answers k1
    after 0 -> StartRun ~svc_run.promoted svc.run.promoted
    answers q0:queued
    after 0 -> StartRun ~svc_run.promoted svc.run.promoted
    answers q1:queued
    after 0 -> StartRun ~svc_run.promoted svc.run.promoted
    answers q2:queued
    ask q7 ls background
    after 60 -> nothing
    on_client_back
    after 0 -> playback_drain.requested
    heard b1
    after 0 -> StartRun ~svc_run.promoted svc.run.promoted playback_drain.requested
an answer is shown when the provider leaves before it [background]
    quiet
    on_user_speech
    answers k1
    provider_lost gone -> response.started(response_id=delivery-fallback-1) response.delta
        -> response.done(final_text=ANSWER) CloseClient(code=1000, reason=the voice provider has closed the session)
an answer is shown when the provider leaves in another turn [background]
    quiet
    begins r3 'what is the time'
    answers k1
    provider_lost gone -> response.started response.delta response.done error response.done CloseClient
nothing is shown without a client [background]
    quiet
    on_client_left
    answers k1
    provider_lost gone -> CloseClient
a cancel stops what is in the background [background]
    quiet
    ask k2 ls background
    cancel -> StopRun(call_id=k1) svc.run.cancelled(session_id=c1, run_id=n1) CancelResponse ClearInput
        -> response.done(response_id=None, cancelled=True, run_id=n1)
    is over
a cancel of the background by word [background]
    quiet
    begins r9 'stop that'
    call r9 cancel k9 -> StopRun(call_id=k1) svc.run.cancelled(session_id=c1, run_id=n1)
        -> AnswerCall(call_id=k9, ok=True, run_id=n1, status=cancelled, session_id=c1)
        -> playback_drain.requested(call_id=k9)
a question from the background [background]
    quiet
    run_event k1 ApprovalAsked q1
    begins r9 yes
    call r9 confirm k9 q1 allow -> AnswerApproval(call_id=k1, run_id=n1, confirmation_id=q1, choice=once, answer=allow)
        -> AnswerCall(call_id=k9, ok=True, confirmation_id=q1, status=forwarded) playback_drain.requested(call_id=k9)
    approved k1 q1 allow -> svc.confirmation.forwarded
to hear an answer again [background]
    respeak -> svc.result.respeak_unavailable
    quiet
    respeak -> svc.result.respeak_unavailable
    answers k1
    after 0
    respeak -> svc.result.respeak_unavailable
    heard b1
    respeak -> Render(response_id=respeak-1, text=ANSWER)
    rendered_audio respeak-1 -> response.started(response_id=respeak-1, source=svc, delivery=respeak)
        -> response.delta(delta=ANSWER, response_id=respeak-1, source=svc, delivery=respeak)
        -> EmitAudio(response_id=respeak-1, sample_rate=None, label=None, source=svc, delivery=respeak)
    rendered respeak-1 -> output_audio.done(response_id=respeak-1, source=svc, delivery=respeak)
        -> response.done(response_id=respeak-1, source=svc, delivery=respeak, final_text=ANSWER, audio_path=)
    is over
"""


@pytest.mark.parametrize(("title", "lines"), dialogues(BACKGROUND).items())
def test_a_run_in_the_background(title: str, lines: list[str]) -> None:
    play(lines, talk_of(title))


def test_session_is_kept_for_a_detached_client() -> None:
    talk = ConversationDialogue()
    talk.do("away")
    left = talk.now
    assert talk.broker.kept_until(30.0, 360.0) == left + 360.0
    talk.do("working")
    assert talk.broker.kept_until(30.0, 10.0) == left + 30.0
