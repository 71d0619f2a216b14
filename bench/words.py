"""Word error rate and cost of this host's speech recognizers, for synthetic voices and a recorded reader."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from bench.measure import BenchError, Progress, Scale
from bench.report import Column, Row, Table
from runtimes.speech import transcribe_program
from runtimes.speech.local_speech import find_speech_programs

__all__ = ["mistakes", "words_section"]

SENTENCES = """turn on the flashlight
open the camera and take a picture
send a message to anna that i will be late
what is the weather like tomorrow
set an alarm for half past seven in the morning
call my mother on her mobile phone
how many unread messages do i have
play some music by mozart
stop the music please
read the last notification to me
scroll down a little and tap the blue button
open the settings and turn off bluetooth
remind me to buy milk and bread this evening
where did i park the car
navigate to the nearest petrol station
show me the photos from last summer
what time does the train to london leave
translate good morning into french
add eggs to the shopping list
please close all the apps
turn the volume up
is it going to rain this weekend
take a screenshot and send it to my brother
go back to the home screen
search for a good restaurant in this street
how long will it take to walk home
delete the last message
who called me this afternoon
type my address into this field
wait until the page has loaded
switch to the front camera
start a timer for ten minutes
what is on my calendar for today
open the map and find the next pharmacy
tell him that we agree
make the text a little larger
lock the phone after five minutes
did the package arrive yet
turn on the lights in the kitchen
thank you that is all""".splitlines()
VOICES = ("en-us", "en-gb+f3", "en-us+robosoft2")  # voices of espeak-ng
PERSON = Path("assets", "two_cities.wav")  # a recorded reader, in the package moonshine_voice
READ = """It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness,
it was the epoch of belief, it was the epoch of incredulity, it was the season of light, it was the season of darkness,
it was the spring of hope, it was the winter of despair, we had everything before us, we had nothing before us, we were
all going direct to heaven, we were all going direct the other way. In short, the period was so far like the present
period that some of its noisiest authorities insisted on its being received for good or for evil in the superlative
degree of comparison only."""
COLUMNS = (Column("wrong_percent", "words wrong %"), Column("words", "of", 0), Column("cpu_s", "CPU s each", 2))

Recording = tuple[str, bytes]  # the text, and a WAV file


def words_section(scale: Scale, progress: Progress) -> list[Table]:
    """Return one table with a row for each recognizer and voice; without rows if a needed program is not installed."""
    if not find_speech_programs()["listen"] or shutil.which("espeak-ng") is None:
        return [Table("words", "Words understood", COLUMNS, [], ["left out: svc-relay[voice] or espeak-ng is missing"])]
    rows = []
    for voice, recordings in _voices(scale.sentences):
        for name, listener in _listeners().items():
            progress(f"words: {voice}, {name}")
            rows.append(Row(f"{name}: {voice}", _understood(recordings, listener)))
    return [Table("words", f"Words understood, {scale.sentences} sentences to a phone for each voice", COLUMNS, rows)]


def mistakes(said: str, heard: str) -> tuple[int, int]:
    """Return the least number of missing, added or wrong words in `heard`, and the number of words in `said`."""
    wanted, found = _words(said), _words(heard)
    costs = list(range(len(found) + 1))
    for row, word in enumerate(wanted, 1):
        before, costs[0] = costs[0], row
        for place, other in enumerate(found, 1):
            before, costs[place] = costs[place], min(costs[place] + 1, costs[place - 1] + 1, before + (word != other))
    return costs[-1], len(wanted)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def _listeners() -> dict[str, list[str]]:
    found: list[str] = list(find_speech_programs()["listen"])  # type: ignore[call-overload]  # a list of words
    listeners = {"Whisper": found} if "--whisper" in found else {}
    if find_spec("pocketsphinx") is not None:
        listeners["pocketsphinx"] = [sys.executable, "-I", transcribe_program.__file__]
    return listeners


def _voices(sentences: int) -> Iterator[tuple[str, list[Recording]]]:
    for voice in VOICES:
        yield f"espeak-ng, {voice}", [(text, _spoken(text, voice)) for text in SENTENCES[:sentences]]
    package = find_spec("moonshine_voice")
    if package is not None and package.origin is not None:
        yield "a person who reads Dickens", [(READ, Path(package.origin).parent.joinpath(PERSON).read_bytes())]


def _spoken(text: str, voice: str) -> bytes:
    return subprocess.run(
        ["espeak-ng", "-v", voice, "--stdin", "--stdout"], input=text.encode(), capture_output=True, check=True
    ).stdout


def _understood(recordings: list[Recording], listener: list[str]) -> dict[str, float]:
    wrong = total = 0
    before = _cpu()
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        path = Path(folder, "recording.wav")
        for said, recording in recordings:
            path.write_bytes(recording)
            done = subprocess.run([*listener, str(path)], capture_output=True, text=True, check=True)
            answer = json.loads(done.stdout)
            if "text" not in answer:
                raise BenchError(answer["error"])
            some, count = mistakes(said, answer["text"])
            wrong, total = wrong + some, total + count
    return {"wrong_percent": 100 * wrong / total, "words": total, "cpu_s": (_cpu() - before) / len(recordings)}


def _cpu() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
