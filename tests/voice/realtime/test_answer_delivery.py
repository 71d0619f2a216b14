import pytest

from tests.voice.realtime.dialogue import dialogues, play, talk_of

ANSWERS = """
an answer in JSON is summed up
    working
    run_event k1 AnswerComplete '{"used": 62}'
    run_ended k1
    on_client_drained k1
        -> ~playback_drain.completed(call_id=k1, reason=tool_result_summary) Summarize(text={"used": 62})
an answer that is to be summed up [speak_when_idle]
    waiting
    on_client_drained k1 -> ~playback_drain.completed(call_id=k1, reason=tool_result_summary) Summarize(text=ANSWER)
an answer of which the person is told first [notify_then_speak]
    waiting
    on_client_drained k1 -> ~playback_drain.completed(call_id=k1, reason=tool_result_summary) Summarize(text=ANSWER)
an answer that is streamed
    judging
    audio r2 -> nothing
    text r2 'I looked, and ANSWER Anything else?' -> response.started EmitAudio response.delta
    after 29
    audio r2 -> EmitAudio
    after 29 -> nothing
    after 1 -> ~realtime_agent.delivery_unconfirmed CancelResponse
        -> output_audio.done(response_id=r2, delivery=forced_summary)
        -> response.done(response_id=r2, delivery=forced_summary)
an answer whose sound is complete
    judging
    text r2 'I looked, and ANSWER Anything else?'
    audio_done r2 -> output_audio.done(response_id=r2, delivery=forced_summary)
    response_done r2 -> response.done(response_id=r2, delivery=forced_summary)
an answer without a word
    judging
    audio r2 -> nothing
    audio_done r2 -> nothing
    response_done r2 -> response.started response.delta(delta=ANSWER) EmitAudio output_audio.done response.done
an answer that is only shown [nothing spoken]
    waiting
    on_client_drained k1 -> ~playback_drain.completed response.started response.delta response.done
    is idle
the relay speaks for a provider that does not
    judging
    text r2 'What was the question?' -> nothing
    response_done r2 -> ~response.forced_summary_off_script(call_id=k1)
        -> Render(response_id=forced-summary-fallback-1, text=ANSWER)
    rendered_audio another -> nothing
    rendered_audio forced-summary-fallback-1 -> response.started response.delta EmitAudio
    rendered_audio forced-summary-fallback-1 -> EmitAudio
    rendered another -> nothing
    rendered forced-summary-fallback-1 -> output_audio.done response.done
    is idle
it cannot be spoken
    rendering
    rendered another 'no key' -> nothing
    rendered forced-summary-fallback-1 'no key' -> ~response.forced_summary_failed(message=no key)
        -> response.started(response_id=delivery-fallback-2) response.delta response.done(final_text=ANSWER)
    is idle
nor does the relay
    rendering
    after 30 -> ~realtime_agent.delivery_unconfirmed StopRendering response.started response.delta response.done
a flood of sound in place of the answer
    judging
    audio r2 4194306 -> ~response.forced_summary_off_script CancelResponse Render
    audio r2 -> nothing
a function in place of the answer
    judging
    response_started r2
    call r2 run k2 again -> AnswerCall(call_id=k2, ok=False)
    response_done r2 -> ~response.forced_summary_off_script Render
the person speaks up before the answer
    judging
    commit -> ~realtime_agent.delivery_preempted CancelResponse response.started response.delta response.done
        -> CommitInput
    is hearing
the person speaks up before the relay does
    rendering
    commit -> ~realtime_agent.delivery_preempted StopRendering response.started(response_id=delivery-fallback-2)
        -> response.delta response.done(final_text=ANSWER) CommitInput
    is hearing
"""
PROGRESS = """
progress is sound and no response [progress]
    working
    after 5 -> svc.run.progress(session_id=c1, run_id=n1, status=running, message=Still working., should_speak=True)
        -> Render(response_id=progress-1, text=Still working.)
    rendered_audio progress-1
        -> EmitAudio(response_id=progress-1, sample_rate=None, label=None, source=svc, delivery=progress)
    after 5 -> svc.run.progress(should_speak=False, floor=svc_filler)
    rendered progress-1 -> output_audio.done(response_id=progress-1, source=svc, delivery=progress)
    rendered_audio progress-1 -> nothing
    rendered progress-1 -> nothing
    after 5 -> svc.run.progress Render
progress that cannot be had spoken [progress]
    working
    after 5
    rendered progress-1 'no key' -> ~realtime_agent.progress_failed(message=no key)
        -> output_audio.done(response_id=progress-1, source=svc, delivery=progress)
    rendered progress-1 'no key' -> nothing
progress gives way to an error [progress]
    working
    after 5
    run_failed k1 no -> AnswerCall error(message=no, error_code=None) StopRendering output_audio.done response.done
progress in the background [background progress]
    working
    after 10 -> svc.run.progress ~svc_run.promoted svc.run.promoted AnswerCall svc.run.progress Render
    add_user_text hello -> StopRendering output_audio.done input_transcript.final SendUserText Respond
progress in the background gives way to an answer [background progress]
    working
    after 10
    answers k1
    after 0 -> StopRendering output_audio.done playback_drain.requested
no progress is spoken to a user just after a question [background progress]
    working
    after 10
    rendered progress-1
    after 28
    commit
    after 5 -> svc.run.progress
progress is not spoken over an answer [early progress]
    quiet
    ask k2 ls background
    on_client_left
    answers k1
    after 4
    on_client_back
    after 1 -> playback_drain.requested(reason=forced_summary)
        -> svc.run.progress(session_id=c1, run_id=, status=running, message=Still working., should_speak=False)
    on_client_drained -
    after 5 -> svc.run.progress(floor=provider_speaking, should_speak=False)
    response_done b1 -> ~response.forced_summary_off_script(call_id=k1)
        -> Render(response_id=forced-summary-fallback-2, text=ANSWER)
    after 5 -> svc.run.progress(floor=svc_filler, should_speak=False)
    rendered forced-summary-fallback-2
    after 5 -> svc.run.progress(floor=idle, should_speak=True) Render
"""


@pytest.mark.parametrize(("title", "lines"), dialogues(ANSWERS + PROGRESS).items())
def test_answer_delivery(title: str, lines: list[str]) -> None:
    play(lines, talk_of(title))
