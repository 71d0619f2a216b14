from __future__ import annotations

from svc_proto.voice.realtime.filler import Filler
from svc_proto.voice.realtime.orders import Emit, Note, Render


def beat(message: str, *, speak: object) -> Emit:
    return Emit("svc.run.progress", {"message": message, "should_speak": speak})


def test_what_is_spoken_of_what_is_told() -> None:
    """The first that is to be spoken, and nothing else."""
    filler = Filler("svc", lambda: "1")
    assert filler.speak([Note("x"), Emit("y"), beat("Not this.", speak=False)]) == []
    assert (filler.speaks, filler.stop()) == (None, [])
    told = [beat("Not this.", speak=False), beat("Running command.", speak=True), beat("Nor this.", speak=True)]
    assert filler.speak(told) == [Render("progress-1", "Running command.")]
    assert filler.speaks == "progress-1"
