"""An utterance as a file: written, heard, deleted, whatever comes of it. Disks that fail are in `test_rendered`."""

from __future__ import annotations

from typing import Any

import pytest

from svc_proto.basics.pcm import wav_head
from svc_proto.commands import Command, CreateBlob, DeleteBlob, FinishBlob, WriteBlob
from svc_proto.engine.flow import Flow
from svc_proto.facts import Done
from svc_proto.voice.agent.recording import transcribe
from svc_proto.voice.contract import ProviderError, Recording, Transcript
from tests.voice.rig import Rig


class Ears:
    def __init__(self, hears: str | None) -> None:
        self.hears = hears
        self.recording: Recording | None = None

    def transcriber(self, provider_id: str) -> Ears:
        assert provider_id == "local"
        return self

    def transcribe(self, recording: Recording, *, model: str = "", language: str = "") -> Flow[Transcript]:
        yield from ()
        self.recording = recording
        if self.hears is None:
            raise ProviderError("nothing understood")
        return Transcript(text=self.hears, provider="local")


@pytest.mark.parametrize("hears", [" what time is it ", None])
def test_it_is_heard_and_deleted(rig: Rig, hears: str | None) -> None:
    voice: Any = rig.voice
    voice.providers = ears = Ears(hears)
    outcome: list[object] = []
    engine = rig.engine

    def start() -> None:
        flow = transcribe(voice, "local", b"\1\0" * 100, 16_000)
        engine.spawn(flow, on_done=outcome.append, on_error=outcome.append)

    engine.timers.timer(start).set(rig.now.mono)
    orders: list[Command] = list(engine.handle(None, rig.now))
    written = b""
    while not outcome:
        order = orders.pop()
        match order:
            case CreateBlob(op=op, suffix=suffix):
                assert suffix == ".wav"
                orders += engine.handle(Done(op, 7), rig.now)
            case WriteBlob(op=op, handle=handle, data=data):
                assert handle == 7
                written += data
                orders += engine.handle(Done(op, len(data)), rig.now)
            case FinishBlob(op=op):
                orders += engine.handle(Done(op, "/spool/1.wav"), rig.now)
            case _:
                raise AssertionError(order)
    assert written == wav_head(200, 16_000) + b"\1\0" * 100
    assert orders == [DeleteBlob("/spool/1.wav")]
    assert ears.recording == Recording(path="/spool/1.wav", size=244, content_type="audio/wav", suffix=".wav")
    assert str(outcome[0]) == (hears or "nothing understood").strip()
