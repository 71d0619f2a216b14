"""multipart/form-data: parts, cuts, limits, refusals, and encoded forms."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.events import Headers
from svc_proto.wire.multipart import (
    MultipartDecoder,
    MultipartEvent,
    Part,
    PartBegin,
    PartData,
    PartEnd,
    encode_multipart,
)
from tests.wire.chunking import Cuts, cut, cuts

TYPE = "multipart/form-data; boundary=xyz"
PARTS = st.builds(
    Part,
    name=st.integers(0, 40).map("n".__mul__),
    data=st.text("\r\n-xya", max_size=20).map(str.encode),  # nearly the delimiter
    filename=st.none() | st.text('ab;="\\', max_size=9),
    content_type=st.none() | st.just("image/png"),
)


def drain(decoder: MultipartDecoder) -> list[MultipartEvent]:
    events: list[MultipartEvent] = []
    while (event := decoder.next_event()) is not None:
        if isinstance(event, PartData) and events and isinstance(events[-1], PartData):
            events[-1] = PartData(events[-1].data + event.data)
        else:
            events.append(event)
    return events


def decode(data: bytes, sizes: Cuts | None = None, **limits: int) -> list[MultipartEvent]:
    decoder = MultipartDecoder(TYPE, **limits)
    events: list[MultipartEvent] = []
    for piece in cut(data, sizes or [1_000_000]):
        decoder.receive_data(piece)
        for event in drain(decoder):
            if isinstance(event, PartData) and isinstance(events[-1], PartData):
                events[-1] = PartData(events[-1].data + event.data)
            else:
                events.append(event)
    decoder.receive_eof()
    assert decoder.next_event() is None
    assert decoder.finished
    return events


def part(head: bytes, data: bytes) -> bytes:
    return b"--xyz\r\n" + head + b"\r\n\r\n" + data + b"\r\n--xyz--\r\n"


def begin_of(head: bytes) -> PartBegin:
    (begin, *_) = decode(part(head, b""))
    assert isinstance(begin, PartBegin)
    return begin


def test_an_upload() -> None:
    body = (
        b"preamble\r\n--xyz  \r\n"
        b'Content-Disposition: form-data; name="title"\r\n\r\nHello\r\n'
        b"--xyz\r\n"
        b'content-disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n'
        b"\x89PNG\r\n--xy\r\n--xyzzy\r\n"
        b"\r\n--xyz--\r\nepilogue --xyz"
    )
    title = Headers(((b"content-disposition", b'form-data; name="title"'),))
    disposition = (b"content-disposition", b'form-data; name="file"; filename="a.png"')
    file = Headers((disposition, (b"content-type", b"image/png")))
    expected = [
        *(PartBegin("title", None, None, title), PartData(b"Hello"), PartEnd()),
        *(PartBegin("file", "a.png", "image/png", file), PartData(b"\x89PNG\r\n--xy\r\n--xyzzy\r\n"), PartEnd()),
    ]
    for sizes in ([1_000_000], [1], [7], [3, 11]):
        assert decode(body, sizes) == expected


@given(parts=st.lists(PARTS, max_size=3), sizes=cuts())
def test_parts_are_read_at_any_cut(parts: list[Part], sizes: Cuts) -> None:
    """The rest after a cut may complete a head and hold the whole of the next one, which may be shorter or longer."""
    body = encode_multipart(parts, "xyz")
    for pieces in (sizes, *([first, len(body)] for first in range(1, len(body)))):
        found: list[Part] = []
        for event in decode(body, pieces):
            if isinstance(event, PartBegin):
                found.append(Part(name=event.name, data=b"", filename=event.filename, content_type=event.content_type))
            elif isinstance(event, PartData):
                found[-1] = attrs.evolve(found[-1], data=event.data)
        assert found == parts


def test_empty_part_and_no_parts() -> None:
    assert [type(event) for event in decode(part(b'content-disposition: form-data; name="a"', b""))] == [
        PartBegin,
        PartEnd,
    ]
    assert decode(b"--xyz--") == []


@pytest.mark.parametrize(
    ("parameters", "name", "filename"),
    [
        (b'name="a b"', "a b", None),
        (b"name=a;filename=b.txt", "a", "b.txt"),
        (b'name="a"; filename="q%22uote.txt"', "a", 'q"uote.txt'),
        (b'name="a"; filename="q\\"uote\\\\.txt"', "a", 'q"uote\\.txt'),
        (b'name="a"; filename="C:\\dir\\file.txt"', "a", "C:\\dir\\file.txt"),
        (b'name="a"; filename="\xc3\xa9;x=y.txt"', "a", "\N{LATIN SMALL LETTER E WITH ACUTE};x=y.txt"),
        (b'name="a"; filename="real"; filename*=UTF-8\'\'fake', "a", "real"),
        (b"name=\"a\"; filename*=UTF-8''fake", "a", None),
        (b'NAME = "a" ; ; filename = "" ;', "a", ""),
        (b'name="a"; filename="line%0D%0Aend"', "a", "line%0D%0Aend"),
    ],
)
def test_names(parameters: bytes, name: str, filename: str | None) -> None:
    begin = begin_of(b"Content-Disposition: form-data; " + parameters)
    assert (begin.name, begin.filename) == (name, filename)


@pytest.mark.parametrize(
    "head",
    [
        *(b"", b"content-type: text/plain", b'content-disposition: attachment; name="a"'),
        *(b"content-disposition: form-data", b"content-disposition: form-data; filename=x"),
        *(b'content-disposition: form-data; name="a', b'content-disposition: form-data; name="a" b'),
        b'content-disposition: form-data; name="a"; name="b"',
        b'content-disposition: form-data; name="a"\r\ncontent-disposition: form-data; name="b"',
        b'content-disposition: form-data; name="a"\r\n folded: x',
        b'content-disposition: form-data; name="a"\r\nno colon',
        b'content-disposition: form-data; name="a"\r\nx: bare\rcr',
        b'content-disposition: form-data; name="a"\r\nx: bare\nlf',
        b'content-disposition: form-data; name="a"\r\ncontent-transfer-encoding: base64',
    ],
)
def test_bad_heads(head: bytes) -> None:
    for sizes in ([1_000_000], [1]):
        with pytest.raises(RemoteProtocolError) as caught:
            decode(part(head, b"x"), sizes)
        assert caught.value.status == 400


def test_transfer_encodings_that_encode_nothing() -> None:
    assert begin_of(b"content-disposition: form-data; name=a\r\nContent-Transfer-Encoding: Binary").name == "a"


@pytest.mark.parametrize(
    "content_type",
    [
        *("", "application/json", "multipart/mixed; boundary=x", "multipart/form-data"),
        *("multipart/form-data; boundary=", 'multipart/form-data; boundary="x "'),
        *("multipart/form-data; boundary=" + "x" * 71, "multipart/form-data; boundary=x; boundary=y"),
        *("multipart/form-data; boundary=\N{LATIN SMALL LETTER E WITH ACUTE}", 'multipart/form-data; boundary="x'),
        b"multipart/form-data; \xff",
    ],
)
def test_bad_content_types(content_type: str | bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        MultipartDecoder(content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        b'Multipart/Form-Data ; charset=utf-8; Boundary="a b:c"',
        "multipart/form-data;boundary=----WebKitFormBoundaryAbC",
    ],
)
def test_good_content_types(content_type: str | bytes) -> None:
    assert not MultipartDecoder(content_type).finished


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"xyz", b"--xyz", b"--xyz-", b"--xyz\r\n", b"--xyz\r\ncontent-"),
        b"--xyz\r\ncontent-disposition: form-data; name=a\r\n\r\ndata\r\n--xyz",
    ],
)
def test_a_body_without_its_end(body: bytes) -> None:
    for sizes in ([1_000_000], [1]):
        with pytest.raises(RemoteProtocolError, match="closing delimiter"):
            decode(body, sizes)


def test_no_event_after_an_error() -> None:
    decoder = MultipartDecoder(TYPE)
    decoder.receive_data(part(b"nonsense", b"x"))
    with pytest.raises(RemoteProtocolError):
        decoder.next_event()
    decoder.receive_data(part(b"content-disposition: form-data; name=a", b"x"))
    decoder.receive_eof()
    assert decoder.next_event() is None
    assert not decoder.finished


@pytest.mark.parametrize("sizes", [[1], [1_000_000]])
def test_limits(sizes: Cuts) -> None:
    good = b"content-disposition: form-data; name=a"
    with pytest.raises(RemoteProtocolError, match="head of a part"):
        decode(part((good + b"\r\nx: ").ljust(101, b"x"), b""), sizes, max_head=100)
    assert len(decode(part((good + b"\r\nx: ").ljust(100, b"x"), b""), [1_000_000], max_head=100)) == 2
    with pytest.raises(RemoteProtocolError, match="head of a part"):
        decode(b"--xyz\r\n" + b"x" * 101, sizes, max_head=100)
    two = b"--xyz\r\n" + good + b"\r\n\r\n\r\n" + part(good, b"")
    assert len(decode(two, sizes, max_parts=2)) == 4
    with pytest.raises(RemoteProtocolError, match="more than 1 parts"):
        decode(two, sizes, max_parts=1)


def test_padding_is_bounded() -> None:
    with pytest.raises(RemoteProtocolError, match="closing delimiter"):
        decode(b"--xyz" + b" " * 1000 + b"\r\n")


@pytest.mark.parametrize(
    ("part", "boundary"),
    [
        (Part(name="a", data=b"--xyz"), "xyz"),
        (Part(name="a", data=b""), "x\r\n"),
        (Part(name="a", data=b"", content_type="a\r\nb: c"), "xyz"),
    ],
)
def test_parts_that_cannot_be_encoded(part: Part, boundary: str) -> None:
    with pytest.raises(LocalProtocolError):
        encode_multipart((part,), boundary)


def test_names_are_quoted_as_browsers_do() -> None:
    body = encode_multipart((Part(name='a"b\r\n\x00', data=b"1", filename="c\\d", content_type="image/png"),), "xyz")
    assert b'name="a%22b%0D%0A%00"; filename="c\\\\d"\r\ncontent-type: image/png\r\n\r\n1\r\n' in body
