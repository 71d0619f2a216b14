"""Narration of a simulation: its steps, and the facts and commands of each program, in words.

Payloads are shortened, and secrets are replaced by their description.
"""

import re
import traceback
from collections.abc import Iterable, Mapping

from fuzz.steps import CHOICE, INDEX, Step, slots
from runtimes.sim.trace import TraceRecord
from svc_proto.commands import Abort, Cancel, CloseWrite, Command, Log, Operation, PauseReading, ResumeReading, Send
from svc_proto.facts import Accepted, Closed, Done, Fact, Failed, ReadClosed, Received, Sent

SHOWN = 150  # characters of a payload
READABLE = 0.6  # share of text bytes below which a payload is not shown
NOT_TEXT = re.compile(r"[^\x20-\x7e]+")
TOKEN = re.compile(r'(_token": ?")[^"]+')  # secrets that the simulation has not recorded yet
TEXT_FRAME, MASKED = 0x81, 0x80  # RFC 6455 section 5.2
WORDS: Mapping[type[Fact | Command], str] = {
    Accepted: "channel {0.ch}: {0.peer.host} connects to port {0.local.port}",
    Sent: "channel {0.ch}: {0.n} bytes were sent",
    ReadClosed: "channel {0.ch}: the peer has closed its sending side",
    Closed: "channel {0.ch}: closed, {0.why}",
    CloseWrite: "channel {0.ch}: close the sending side",
    Abort: "channel {0.ch}: abort",
    PauseReading: "channel {0.ch}: pause reading",
    ResumeReading: "channel {0.ch}: resume reading",
    Done: "operation {0.op} is done: {0.result!r}",
    Failed: "operation {0.op} failed: {0.error.kind.name}, {0.error.detail}",
    Cancel: "cancel operation {0.op}",
}
HOSTS = 4  # devices, as in `deployment`
ATTACKERS = 2


def describe_step(step: Step) -> str:
    """Return a step's description in words."""
    index, choice = int(step.value(INDEX)), int(step.value(CHOICE))
    text = (
        (type(step).__doc__ or "")
        .removesuffix(".")
        .format(
            **{name: getattr(step, name) for name in slots(type(step))},
            the_attacker=f"attacker-{index % ATTACKERS}",
            the_device=f"device-{index % HOSTS}",
            the_program=("the relay", "the API")[index % 2],
            reset=" with a reset" if choice % 2 else "",
        )
    )
    return text[:1].lower() + text[1:]


def narrate(
    records: Iterable[TraceRecord], steps: Iterable[tuple[float, str]], secrets: Mapping[str, str], start: float
) -> str:
    """Return steps and records in order of time, one a line; `start` is the script's start in the records' time."""
    lines = [(when, 0, "step", text) for when, text in steps]
    hide = re.compile("|".join(map(re.escape, sorted(secrets, key=len, reverse=True))))
    for record in records:
        text = hide.sub(lambda found: f"[{secrets[found[0]]}]", TOKEN.sub(r"\1...", describe_record(record.what)))
        lines.append((record.when, 1, record.process, text if len(text) <= SHOWN else f"{text[:SHOWN]}..."))
    lines.sort(key=lambda line: line[:2])
    return "\n".join(f"{when - start:10.3f} s  {who:<9} {text}" for when, _, who, text in lines)


def describe_record(record: Fact | Command | str | None) -> str:
    """Return the description of a fact, a command, or a process event."""
    match record:
        case None:
            return "time passes"
        case str():
            return record
        case Received(ch=ch, data=data) | Send(ch=ch, data=data):
            verb = "received" if isinstance(record, Received) else "send"
            return f"channel {ch}: {verb} {len(data)} bytes{_payload(data)}"
        case Log(level=level, event=event, fields=fields):
            return f"log {level.name}: {event} {dict(fields) or ''}"
        case _ if type(record) in WORDS:
            return WORDS[type(record)].format(record)
        case Operation(op=op):
            return f"operation {op}: {record!r}"
    return repr(record)


def place_of(error: BaseException) -> str:
    """Return where in the simulation's code an error occurred: the calling functions, and the line.

    Empty if it occurred elsewhere.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/fuzz/" in frame.filename]
    if not frames:
        return ""
    last = next((frame for frame in reversed(frames) if frame.name != "violated"), frames[-1])
    names = [frame.name for frame in frames if frame.name not in ("play", "violated", "<lambda>")]
    return f"{' > '.join(names)} ({last.filename.rpartition('/fuzz/')[2]}, line {last.lineno})"


def _payload(data: bytes) -> str:
    if len(data) > 1 and data[0] == TEXT_FRAME and data[1] >= MASKED:
        data = _unmasked(data)
    text = NOT_TEXT.sub(" ", data.decode("latin-1"))
    return f": {text.strip()}" if len(text) > READABLE * len(data) else ", no text"


def _unmasked(frame: bytes) -> bytes:
    start = {126: 4, 127: 10}.get(frame[1] - MASKED, 2)
    mask = frame[start : start + 4]
    return bytes(byte ^ mask[place % 4] for place, byte in enumerate(frame[start + 4 :]))
