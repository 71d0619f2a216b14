import json
import wave
from functools import partial
from io import BytesIO

import pytest

from svc_proto.commands import AppendFile
from svc_proto.voice import event_log
from svc_proto.voice.event_log import MAX_WAITING, WRITE_AT, EventLog, GrowingFile, WavRecorder, log_name
from tests.voice.harness import VoiceHarness


def grow(rig: VoiceHarness, file: GrowingFile, data: bytes) -> None:
    rig.within(lambda: file.write(data))


def test_names() -> None:
    name = log_name("voice-output", 1_767_268_800.9, "p3T-ab_c4567890123")
    assert name == "voice-output-20260101-120000-p3Tabc456789"
    assert log_name("realtime", 0.0, "__") == "realtime-19700101-000000-"


def test_simultaneous_events_are_written_together(rig: VoiceHarness) -> None:
    file = GrowingFile(rig.engine, "/runs/a")
    for _ in range(100):
        grow(rig, file, b"x")
    assert rig.writes == 0
    rig.after(2.0)
    assert (rig.writes, rig.disk.get("/runs/a")) == (1, b"x" * 100)
    grow(rig, file, b"y" * WRITE_AT)
    assert rig.writes == 2
    grow(rig, file, b"z")
    rig.within(file.close)
    rig.within(file.close)
    assert rig.disk.get("/runs/a").endswith(b"yz")
    grow(rig, file, b"late")
    rig.after(10.0)
    assert rig.writes == 3
    assert rig.engine.next_deadline() is None


def test_data_that_comes_during_a_write_follows_it(rig: VoiceHarness) -> None:
    copy = WavRecorder(rig.engine, "/runs/a.wav")

    def write() -> None:
        for data in (b"a" * WRITE_AT, b"bb"):
            copy.add(data, 16_000)
        copy.close()

    rig.within(write)
    with wave.open(BytesIO(rig.disk.get("/runs/a.wav"))) as file:
        assert file.readframes(WRITE_AT) == b"a" * WRITE_AT + b"bb"


def test_one_write_at_a_time_on_a_disk_that_is_fast_enough(rig: VoiceHarness) -> None:
    rig.hold = (AppendFile,)
    file = GrowingFile(rig.engine, "/runs/a")
    grow(rig, file, b"a" * WRITE_AT)
    grow(rig, file, b"b" * WRITE_AT)
    rig.hold = ()
    rig.after(59.0)
    assert rig.writes == 1
    rig.within(file.close)
    rig.after(2.0)  # the first write was cancelled, and the file with it
    assert file.given_up
    assert not rig.disk.exists("/runs/a")
    rig.hold = (AppendFile,)
    file = GrowingFile(rig.engine, "/runs/a")
    for _ in range(MAX_WAITING // WRITE_AT + 1):
        grow(rig, file, bytes(WRITE_AT))
    assert [file.given_up] == [False]
    grow(rig, file, b"1")
    assert file.given_up
    assert rig.logs[-1].fields == {"problem": "the disk is too slow"}


def test_lines(rig: VoiceHarness) -> None:
    log = EventLog(rig.engine, "/runs/a.jsonl")
    event = {"type": "b", "voice": "x", "a": "ü語\ud83d"}
    rig.within(lambda: log.record(event))
    rig.within(lambda: log.add(event_log.in_order({"type": "b", "a": "ü"})))
    rig.within(log.close)
    first, second = rig.disk.get("/runs/a.jsonl").decode().splitlines()
    wall = int(rig.now.wall * 1000)
    assert first == f'{{"a":"ü語\\ud83d","type":"b","unix_ms":{wall},"voice":"x"}}'
    assert second == f'{{"a":"ü","type":"b","unix_ms":{wall}}}'


@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_log_size_is_limited(rig: VoiceHarness, monkeypatch: pytest.MonkeyPatch, beyond: int) -> None:
    event = {"type": "event"}
    limit = 2 * len(f'{{"type":"event","unix_ms":{int(rig.now.wall * 1000)}}}\n') + beyond
    monkeypatch.setattr(event_log, "MAX_LOG", limit)
    monkeypatch.setattr(EventLog, "_left", limit)
    log = EventLog(rig.engine, "/runs/a.jsonl")
    for _ in range(4):
        rig.within(partial(log.record, event))
    rig.within(log.close)
    lines = [json.loads(line) for line in rig.disk.get("/runs/a.jsonl").splitlines()]
    assert [line["type"] for line in lines] == ["event"] * (2 if beyond > 0 else 1) + ["log.full"]
    assert lines[-1]["limit_bytes"] == limit


def test_a_copy_can_be_played_at_any_time(rig: VoiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "MAX_COPY", 1000)
    copy = WavRecorder(rig.engine, "/runs/a.wav")
    pieces = ((100, 16_000, 50), (100, 16_000, 100), (200, 32_000, 150), (702, 16_000, 150), (700, 16_000, 500))
    for size, rate, frames in pieces:
        rig.within(partial(copy.add, bytes(size), rate))
        rig.after(2.0)
        with wave.open(BytesIO(rig.disk.get("/runs/a.wav"))) as file:
            assert (file.getframerate(), file.getnframes()) == (16_000, frames)
    rig.within(copy.close)
