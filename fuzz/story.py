"""The story of a world in words: what people did, and what each program was told and has ordered.

What a story shows is shortened, and secrets stand in it by what they are.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Mapping

from fuzz.script import Deed, Step
from runtimes.sim.trace import Record
from svc_proto.commands import Abort, Cancel, CloseWrite, Command, Log, Operation, PauseReading, ResumeReading, Send
from svc_proto.facts import Accepted, Closed, Done, Fact, Failed, ReadClosed, Received, Sent

__all__ = ["SENTENCES", "in_words", "place_of", "sentence", "story"]

SHOWN = 150  # characters of a payload
READABLE = 0.6  # of a payload's bytes are text, or it is not shown
NOT_TEXT = re.compile(r"[^\x20-\x7e]+")
TOKEN = re.compile(r'(_token": ?")[^"]+')  # what the world does not know yet
TEXT_FRAME, MASKED = 0x81, 0x80  # RFC 6455 section 5.2
HOSTS = 4  # devices, as the world has them
ATTACKERS = 2

SENTENCES: Mapping[Deed, str] = {
    Deed.REGISTER: "the operator registers a code: grants {other}, lifetime {amount:g} s",
    Deed.PAIR: "{device} pairs with code {other}",
    Deed.RECONNECT: "the device of session {who} comes back with its token",
    Deed.LEAVE: "socket {who} is left{reset}",
    Deed.COMMAND: "an agent with session {who} sends command {other} to a phone",
    Deed.REVOKE: "session {who} revokes session {other}",
    Deed.EXTEND: "session {who} is given {amount:g} s more and grants {other}",
    Deed.LIST: "session {who}, or the operator, lists the sessions",
    Deed.UPLOAD: "session {who} uploads {amount:g} bytes",
    Deed.FETCH: "session {who}, or nobody, fetches medium {other}",
    Deed.INSPECT: "the operator looks into inspector {who}",
    Deed.NOTIFY: "socket {who} posts a notification",
    Deed.REPORT: "phone {who} reports its status",
    Deed.GUESS: "{attacker} guesses credentials",
    Deed.GARBAGE: "{attacker} throws garbage {other}",
    Deed.BROWSE: "somebody who shows nothing good tries door {other}",
    Deed.STRAY: "socket {who} answers a command of another",
    Deed.TERMINAL: "socket {who} types {other} in a terminal",
    Deed.CHAT: "somebody chats in chat {who}, manner {other}, and leaves after {amount:g} s (0: stays)",
    Deed.SLOW_CHAT: "somebody asks for a long answer in chat {who}, and reads nothing for {amount:g} s",
    Deed.RUN: "a run is begun in chat {who}, manner {other}",
    Deed.STOP_RUN: "run {who} is stopped",
    Deed.COMPLETE: "a program, or two ({who}), want a completion, manner {other}; one stays for {amount:g} s",
    Deed.DELETE_CHAT: "chat {who} is deleted",
    Deed.SPEAK: "session {who}, or the API's key, has a text read: {other}, {amount:g} s",
    Deed.TALK: "session {who}, or the API's key, talks with the agent: {other}, {amount:g} s",
    Deed.TUI: "socket {who} asks its gateway for {other}",
    Deed.SAY: "something is said in voice session {who}",
    Deed.COME_BACK: "phone {who} comes back, and {amount:g} s later its last socket ends in manner {other}",
    Deed.CUT_SHORT: "session {who} waits for phone {other}, and ends after {amount:g} s",
    Deed.RENEW: "socket {who} uses its grants, is given {other}, and uses them again after {amount:g} s",
    Deed.SHARE: "the operator gives file {who} of the home to fetch",
    Deed.CHANGE: "the operator changes a file that can be fetched: {other}",
    Deed.IGNORE: "socket {who} hears no close, and talks on; its session ends in manner {other}",
    Deed.IMPATIENT: "who asks for something next leaves{reset} after {amount:g} s",
    Deed.ASK: "session {who} wants what the phone's holder is asked about, word and loss {other}, for {amount:g} s",
    Deed.NOTE: "the agent of chat {who} asks whether it may keep notes, and is told {other} after {amount:g} s",
    Deed.FORK: "chat {who} is forked, manner {other}",
    Deed.REPEAT: "a program asks twice with one key, manner {other}, {amount:g} s apart",
    Deed.SKIM: "the operator looks at a few notifications: {who}",
    Deed.DOWNLOAD: "session {who} reads a large file slowly, and ends after {amount:g} s in manner {other}",
    Deed.MCP: "an agent with session {who} speaks MCP: {other}, {amount:g} s",
    Deed.BURY: "session {who} is revoked while nothing can be written; a restart {amount:g} s later",
    Deed.SUSPECT: "the device of session {who} guesses, shows its token, and guesses again",
    Deed.GUEST: "an agent that the owner lets in, {who}, comes for tokens, or with them: {other}, {amount:g} s",
    Deed.DRIVE: "agent {who} drives a phone by MCP: {other}, {amount:g} s",
    Deed.INQUIRE: "the agent of chat {who} is asked by MCP: {other}, {amount:g} s",
    Deed.TOOL: "the agent of chat {who} uses tools of others: {other}; what asks is answered after {amount:g} s",
    Deed.ERRAND: "somebody is sent on an errand of kind {other}",
    Deed.CUT: "connection {who} is cut",
    Deed.HANG: "connection {who} hangs for {amount:g} s",
    Deed.PART: "{device}, or the phone, is parted from the home for {amount:g} s",
    Deed.SLOW: "line {who} is not read for {amount:g} s",
    Deed.NOISE: "network, disk and store are bad by {amount:g} from now on (0: they are well again)",
    Deed.STOP: "{program} is told to stop, and rests for {amount:g} s",
    Deed.KILL: "{program} is killed for {amount:g} s",
    Deed.DISK_FULL: "the disk is full for {amount:g} s",
    Deed.CLOCK: "the home's wall clock is set by {amount:+g} s",
    Deed.REFUSE: "the store does not take request {other} for session {who}; a restart {amount:g} s later",
    Deed.AGE: "in the end the home's wall clock goes on by {amount:g} s",
    Deed.UPSTREAM: "model and voice provider fail in manner {other} for {amount:g} s",
    Deed.DROP: "{far_end} leaves {amount:g} s after the next question",
    Deed.HICCUP: "the store takes no rows of chats for {amount:g} s",
    Deed.DISK: "the disk has a bad time, of kind {other}, for {amount:g} s",
}
"""What a step says. A number stands for somebody: it is taken modulo who is there."""


def sentence(step: Step) -> str:
    """A step in words."""
    pattern = SENTENCES.get(step.deed)
    if pattern is None:
        return f"{step.deed.value}: who {step.who}, other {step.other}, amount {step.amount:g}"
    return pattern.format(
        who=step.who,
        other=step.other,
        amount=step.amount,
        device=f"device-{step.who % HOSTS}",
        attacker=f"attacker-{step.who % ATTACKERS}",
        far_end=("the model", "the voice provider")[step.who % 2],
        program=("the relay", "the API")[step.who % 2],
        reset=" with a reset" if step.other % 2 else "",
    )


def story(
    records: Iterable[Record], steps: Iterable[tuple[float, str]], secrets: Mapping[str, str], start: float
) -> str:
    """Both in the order of time, one a line; `start` is when the script began, on the clock of the records."""
    lines = [(when, 0, "step", text) for when, text in steps]
    hide = re.compile("|".join(map(re.escape, sorted(secrets, key=len, reverse=True))))
    for record in records:
        text = hide.sub(lambda found: f"[{secrets[found[0]]}]", TOKEN.sub(r"\1...", in_words(record.what)))
        lines.append((record.when, 1, record.process, text if len(text) <= SHOWN else f"{text[:SHOWN]}..."))
    lines.sort(key=lambda line: line[:2])
    return "\n".join(f"{when - start:10.3f} s  {who:<9} {text}" for when, _, who, text in lines)


def in_words(what: Fact | Command | str | None) -> str:  # noqa: C901 - one case for each kind
    """A fact or a command; a word about a process as it is."""
    match what:
        case None:
            text = "time passes"
        case str():
            text = what
        case Accepted(ch=ch, peer=peer, local=local):
            text = f"channel {ch}: {peer.host} connects to port {local.port}"
        case Received(ch=ch, data=data):
            text = f"channel {ch}: received {len(data)} bytes{_payload(data)}"
        case Send(ch=ch, data=data):
            text = f"channel {ch}: send {len(data)} bytes{_payload(data)}"
        case Sent(ch=ch, n=n):
            text = f"channel {ch}: {n} bytes have left"
        case ReadClosed(ch=ch):
            text = f"channel {ch}: the peer says no more"
        case Closed(ch=ch, why=why):
            text = f"channel {ch}: closed{f', {why}' if why else ''}"
        case CloseWrite(ch=ch):
            text = f"channel {ch}: say no more"
        case Abort(ch=ch):
            text = f"channel {ch}: drop it"
        case PauseReading(ch=ch):
            text = f"channel {ch}: read no more"
        case ResumeReading(ch=ch):
            text = f"channel {ch}: read on"
        case Done(op=op, result=result):
            text = f"operation {op} is done: {result!r}"
        case Failed(op=op, error=error):
            text = f"operation {op} failed: {error.kind.name}, {error.detail}"
        case Cancel(op=op):
            text = f"give up operation {op}"
        case Log(level=level, event=event, fields=fields):
            text = f"log {level.name}: {event} {dict(fields) or ''}"
        case Operation(op=op):
            text = f"operation {op}: {what!r}"
        case _:
            text = repr(what)
    return text


def place_of(error: BaseException) -> str:
    """Where in the world's own code something broke: the functions on the way, and the line."""
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
    """The first frame of a client, in clear."""
    start = {126: 4, 127: 10}.get(frame[1] - MASKED, 2)
    mask = frame[start : start + 4]
    return bytes(byte ^ mask[place % 4] for place, byte in enumerate(frame[start + 4 :]))
