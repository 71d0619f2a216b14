"""Limits on texts, which count characters or bytes, with texts of several scripts."""

import json
from collections.abc import Callable
from functools import partial

import pytest
from attrs import frozen

from svc_proto.agent.approval_memory import MAX_SHOWN, describe_call
from svc_proto.agent.toolbox import MAX_PREVIEW, preview_of
from svc_proto.agent.tools.phone_result import MAX_ERROR, body_of
from svc_proto.agent.tools.tool import Tool
from svc_proto.api.chat.titles import MAX_ID, MAX_TITLE, check_session_id, clean_title
from svc_proto.api.errors import MAX_ID_CHARS as MOST_OF_AN_ID
from svc_proto.api.errors import session_not_found
from svc_proto.api.routes.sessions import MAX_NAME
from svc_proto.basics.errors import Refused, ToolError
from svc_proto.basics.excerpt import MAX_QUOTED, safe_excerpt
from svc_proto.basics.sanitize import MAX_LINE_CHARS as MOST_SHOWN
from svc_proto.basics.sanitize import sanitize_line
from svc_proto.basics.validate import single_line
from svc_proto.engine.flow import Flow
from svc_proto.machines.bridge_commands import MAX_SUMMARY, BridgeCommands
from svc_proto.machines.inbox import MAX_NOTIFICATION, NotificationBuffer
from svc_proto.machines.paired_session import MAX_DEVICE_TEXT, parse_device
from svc_proto.phone.backend import CommandReply, PhoneCommand
from svc_proto.phone.safety.activity_log import MAX_RESULT, ActivityLog
from svc_proto.phone.transcript import CUT, PhoneTranscript
from svc_proto.phone.transcript import MAX_LINE_CHARS as LONGEST_TEXT
from svc_proto.relay.media import media_service
from svc_proto.schema import oauth
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.phone_control import PhoneResponse
from svc_proto.voice.settings import LENGTHS, parse_text_choice
from svc_proto.wire.websocket_frame_writer import encode_close_payload
from tests.support.playbook import START

SCRIPTS = {"ASCII": "a", "CJK": "語", "emoji": "😀", "combining": "e\u0301"}
CHALLENGE = {"response_type": "code", "code_challenge": "E" * 43, "code_challenge_method": "S256"}


@frozen
class Limit:
    """A limit on texts: `apply` returns the kept part of a text, or raises."""

    most: int
    apply: Callable[[str], str | None]
    ending: str = ""  # of a cut text
    counts_ending: bool = False  # towards `most`
    in_bytes: bool = False

    def longest(self, script: str) -> str:
        """Return the longest text of a script's characters that is kept whole."""
        if self.in_bytes:
            return (script * self.most).encode()[: self.most].decode(errors="ignore")
        return (script * self.most)[: self.most]


def error_of_a_bridge_command(text: str) -> str | None:
    commands = BridgeCommands()
    commands.begin("r1", socket=2, method="POST", path="/tap", params={}, body={}, now=START)
    commands.answer("r1", 2, {"status": 500, "error": text}, START)
    (record,) = commands.records()
    return JsonObject.of(record).string("error")


def result_of_an_activity(text: str) -> str | None:
    log = ActivityLog()
    log.finish(log.begin(PhoneCommand("POST", "/tap", {}), START), CommandReply(200, {"summary": text}))
    return log.entries()[0].result_text


def line_of_a_transcript(text: str) -> str:
    transcript = PhoneTranscript()
    transcript.add_user_text(text)
    return str(transcript.lines()[0]["text"])


def failure_of_a_phone(text: str) -> str:
    with pytest.raises(ToolError) as caught:
        body_of(PhoneResponse(418, {"error": text}))
    return str(caught.value).removeprefix("418: ").removesuffix(".")


CUTS = {
    "device name": Limit(MAX_DEVICE_TEXT, lambda text: parse_device({"device_name": text}).name),
    "device model": Limit(MAX_DEVICE_TEXT, lambda text: parse_device({"device_model": text}).model),
    "name of an OAuth client": Limit(
        oauth.MAX_NAME,
        lambda text: oauth.parse_client(JsonObject(client_name=text, redirect_uris=["https://a.example/"])).name,
    ),
    "error of a bridge command": Limit(MAX_SUMMARY, error_of_a_bridge_command),
    "result of an activity": Limit(MAX_RESULT, result_of_an_activity),
    "line of a transcript": Limit(LONGEST_TEXT, line_of_a_transcript, CUT),
    "failure of a phone": Limit(MAX_ERROR, failure_of_a_phone),
    "name of a media file": Limit(media_service.MAX_NAME, media_service.display_name),
    "text of a peer": Limit(MOST_SHOWN, sanitize_line),
    "quotation of a server": Limit(MAX_QUOTED, safe_excerpt, "…"),
    "preview of a result": Limit(MAX_PREVIEW, preview_of, "…", counts_ending=True),
    "id of a missing session": Limit(
        MOST_OF_AN_ID, lambda text: session_not_found(text).message.removeprefix("No such session: ")
    ),
    "reason of a close frame": Limit(123, lambda text: encode_close_payload(1000, text)[2:].decode(), in_bytes=True),
}


def approved_call(text: str) -> str:
    tool = Tool(name="t", description="", parameters={}, run=lambda arguments: ask_nothing())
    shown = json.loads(describe_call(tool, {"x": text}).removeprefix("t "))
    return str(shown["x"])


def ask_nothing() -> Flow[str]:
    yield from ()
    return ""


def notification(text: str) -> str | None:
    notifications = NotificationBuffer()
    return text if notifications.post("1", {"t": text}) else None


REFUSALS = {
    "title": Limit(MAX_TITLE, clean_title),
    "session id": Limit(MAX_ID, check_session_id),
    "model name": Limit(MAX_NAME, partial(single_line, field="model", most=MAX_NAME)),
    "voice": Limit(LENGTHS["voice"], lambda text: parse_text_choice({"voice": text}, "voice")),
    "OAuth state": Limit(
        oauth.MAX_STATE,
        lambda text: (
            oauth.parse_authorization_request({**CHALLENGE, "state": text}, oauth.OAuthClient("n", ()), "r").state
        ),
    ),
    "notification": Limit(MAX_NOTIFICATION - len('{"t":""}'), notification),
    "call to be approved": Limit(MAX_SHOWN - len('t {"x":""}'), approved_call),
}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("name", CUTS)
def test_a_text_is_cut_after_its_last_character(name: str, script: str) -> None:
    row = CUTS[name]
    whole = row.longest(SCRIPTS[script])
    assert row.apply(whole) == whole
    longer = whole + SCRIPTS[script] * 2
    kept = whole[: len(whole) - len(row.ending)] if row.counts_ending else whole
    assert row.apply(longer) == kept + row.ending


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("name", REFUSALS)
def test_a_text_is_refused_from_the_next_character_on(name: str, script: str) -> None:
    row = REFUSALS[name]
    whole = row.longest(SCRIPTS[script])
    assert row.apply(whole) == whole
    try:
        kept = row.apply(whole + SCRIPTS[script][0])
    except (Refused, ToolError):
        return
    assert kept is None
