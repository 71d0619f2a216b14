from svc_proto.voice.realtime.actions import Emit
from svc_proto.voice.realtime.conversation_base import ConversationBase
from svc_proto.voice.realtime.voice_runs import VoiceRuns


def test_answer_without_pending_confirmation_is_reported() -> None:
    talk = ConversationBase(VoiceRuns(word="svc", speakable=str), lambda: 1.0)
    talk.confirm("q1", "yes")
    talk.approved("k1", "q1", "yes")
    told = [{"confirmation_id": "q1", "answer": answer} for answer in (None, "yes")]
    assert list(talk.out) == [Emit("svc.confirmation.forwarded", fields) for fields in told]
