"""Messages of authenticated clients that are not strict JSON (wire bridge 1.4).

A phone's answers and notifications grant nothing, so they are read leniently; an app may have cut a text in the middle
of an emoji. A response that cannot be read fails its command at once, with the reason, if its request id is found. On
all other channels such a message is ignored.
"""

from __future__ import annotations

import re

from svc_proto.basics.strict_json import JsonError
from svc_proto.engine.core import Engine
from svc_proto.engine.lenient_reader import LenientReader
from svc_proto.schema.envelope import Envelope, to_envelope
from svc_proto.schema.json_object import JsonObject, as_object

__all__ = ["read_deviating_message"]

CHANNELS = ("bridge", "notifications")
UNREADABLE = 502  # status of a response that cannot be read
_RESPONSE = re.compile(r'"type"\s*:\s*"bridge\.response"')
_REQUEST_ID = re.compile(r'"request_id"\s*:\s*"([^"\\]{1,100})"')


def read_deviating_message(engine: Engine, text: str) -> Envelope | None:
    """Return the message in a text that the strict reader refuses, or an error response instead; None to ignore it."""
    try:
        value = as_object(LenientReader(engine, "phone").read(text))
    except JsonError as error:
        return _unreadable_response(text, str(error))
    envelope = None if value is None else to_envelope(value, len(text))
    return envelope if envelope is not None and envelope.channel in CHANNELS else None


def _unreadable_response(text: str, problem: str) -> Envelope | None:
    """Return an error response in place of an unreadable one; None if the text is no response with a request id."""
    found = _REQUEST_ID.search(text)
    if found is None or _RESPONSE.search(text) is None:
        return None
    result = {"ok": False, "error": f"the phone's answer cannot be read: {problem}"}
    payload = JsonObject(request_id=found[1], status=UNREADABLE, result=result)
    return Envelope("bridge", "bridge.response", "", payload, len(text))
