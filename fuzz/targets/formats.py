"""Fuzz targets of formats: forms, event streams, envelopes and JSON, pairing invites, and the Redis protocol."""

from fuzz.targets.common import check_chunking_invariance, split_input
from svc_proto.basics import strict_json
from svc_proto.basics.brand import HERMES, SVC
from svc_proto.basics.errors import LocalProtocolError, Refused, RemoteProtocolError
from svc_proto.machines import pairing_payload
from svc_proto.schema.envelope import parse_envelope, write_envelope
from svc_proto.wire.multipart import MultipartDecoder, Part, PartBegin, PartData, encode_multipart
from svc_proto.wire.resp import RespReader, encode_command
from svc_proto.wire.sse import EventStreamDecoder, ServerSentEvent, encode_event

BOUNDARY = "----boundary-that-is-in-no-part-71fe90"
SECRET = b"a key of sixteen bytes or more"


def multipart(data: bytes) -> None:
    """Check the multipart decoder: parts do not depend on the chunking, and survive encoding and decoding.

    The second check is left out for parts that `encode_multipart` refuses.
    """
    parts, problem = check_chunking_invariance(lambda pieces: _parts(pieces, "b"), data)
    if problem:
        return
    try:
        body = encode_multipart(parts, BOUNDARY)
    except LocalProtocolError:  # a content type with unprintable characters
        return
    assert _parts([body], BOUNDARY) == (parts, ""), "the parts do not come back"


def sse(data: bytes) -> None:
    """Check that the events of a stream do not depend on how its bytes are split, and survive encoding and parsing.

    An event whose name has a NUL is not encoded.
    """
    events, _ = check_chunking_invariance(_events, data)
    for event in events:
        if "\x00" in event.event:  # the field is parsed, but never written
            continue
        again = encode_event(event.data, event=event.event, id=event.id, retry=event.retry)
        assert _events([again]) == ([event], ""), "an event does not come back"


def envelope(data: bytes) -> None:
    """Check that envelopes and JSON values survive writing and parsing."""
    text = data.decode("utf-8", "replace")
    message = parse_envelope(text)
    if message is not None:
        again = write_envelope(message.channel, message.type, message.id, message.payload)
        assert parse_envelope(again) == message, "a message does not come back"
    try:
        value = strict_json.loads(data)
    except strict_json.JsonError:
        return
    assert strict_json.loads(strict_json.dumps_bytes(value)) == value, "JSON does not come back"


def resp(data: bytes) -> None:
    """Check the reader of the Redis protocol: values do not depend on the chunking, and commands survive encoding."""
    values, problem = _values(split_input(data))
    slow = _values([data[at : at + 1] for at in range(len(data))])
    assert repr(slow) == repr((values, problem)), "chunking changed the values"
    for words in values:
        if isinstance(words, list) and all(isinstance(word, bytes) for word in words):
            assert RespReader().feed(encode_command(*words)) == [words], "a command does not come back"


def _values(pieces: list[bytes]) -> tuple[list[object], bool]:
    reader, values = RespReader(), list[object]()
    try:
        for piece in pieces:
            for at in range(len(piece)):
                values += reader.feed(piece[at : at + 1])
    except RemoteProtocolError:
        return values, True
    whole = RespReader()
    assert repr([value for piece in pieces for value in whole.feed(piece)]) == repr(values), "pieces changed the values"
    return values, False


def qr(data: bytes) -> None:
    """Check the parser of invites: a parsed payload can be signed, verified, written and parsed again.

    A URL of more than `MAX_INVITE` characters is not parsed.
    """
    try:
        payload = pairing_payload.parse_invite(data.decode("utf-8", "replace"))
    except Refused as refused:
        if refused.status != 400:
            raise
        return
    whole = pairing_payload.sign_payload(payload, SECRET)
    assert pairing_payload.verify_payload(whole, SECRET), "a signature is not its own"
    for brand in (SVC, HERMES):
        url = pairing_payload.pairing_url(brand, pairing_payload.encode_payload(whole))
        if len(url) <= pairing_payload.MAX_INVITE:
            assert pairing_payload.parse_invite(url) == whole, "an invite does not come back"


def _parts(pieces: list[bytes], boundary: str) -> tuple[list[Part], str]:
    decoder = MultipartDecoder(f"multipart/form-data; boundary={boundary}")
    parts: list[Part] = []
    begun: PartBegin | None = None
    body = bytearray()
    try:
        for piece in [*pieces, b""]:
            decoder.receive_data(piece)
            if not piece:
                decoder.receive_eof()
            while (event := decoder.next_event()) is not None:
                if isinstance(event, PartBegin):
                    begun = event
                    body.clear()
                elif isinstance(event, PartData):
                    body += event.data
                elif begun is not None:
                    kind = begun.content_type if begun.content_type and begun.content_type.isascii() else None
                    parts.append(
                        Part(name=begun.name, data=bytes(body), filename=begun.filename, content_type=kind or None)
                    )
    except RemoteProtocolError as error:
        return parts, str(error)
    return parts, ""


def _events(pieces: list[bytes]) -> tuple[list[ServerSentEvent], str]:
    decoder, events = EventStreamDecoder(), list[ServerSentEvent]()
    try:
        for piece in pieces:
            events += decoder.receive_data(piece)
    except RemoteProtocolError as error:
        return events, str(error)
    return events, ""
