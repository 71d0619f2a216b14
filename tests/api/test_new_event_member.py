"""A member that one added line gives an event, and the parts of the project that then carry it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BEFORE = '    content: str = ""\n'  # of `AssistantCompleted` alone
SCRIPT = f"""
import sys, types
from pathlib import Path

import svc_proto.schema

path = Path("svc_proto/schema/chat_events.py")
source = path.read_text()
before = {BEFORE!r}
assert source.count(before) == 1
events = svc_proto.schema.chat_events = types.ModuleType("svc_proto.schema.chat_events")
sys.modules[events.__name__] = events
exec(compile(source.replace(before, before + '    tone: str = "plain"\\n'), path, "exec"), vars(events))

from svc_proto.schema.json_object import JsonObject
from tests.api.openapi import test_run_types as streams

# The server: what it says is as its document has it, to the member.
book = streams.TurnHarness()
call = book.chat(book.session(), {{"message": "Hi"}})
streams.play(call, book, "", asks=False)
book.hand.finish()
told = {{event.event: JsonObject.parse_or_empty(event.data) for event in call.stream()}}
assert told["assistant.completed"]["tone"] == "plain"
assert "assistant.completed" in streams.told(call, "POST /api/sessions/{{id}}/chat/stream", head=streams.HEAD)
schemas = streams.DOCUMENTED.document["components"]["schemas"]
assert schemas["AssistantCompleted"]["properties"]["tone"] == {{"type": "string"}}

# Who reads it: the chat command and the voice session.
from svc_proto.cli.chat import chat_events as chat
from svc_proto.voice.agent.api_run import events as voice

for reader in (chat, voice):
    assert reader.parse_event("assistant.completed", JsonObject(tone="warm")) == events.AssistantCompleted(tone="warm")
print("carried")
"""


def test_new_event_member_is_one_line() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("carried\n", "")
