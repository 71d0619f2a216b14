import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.engine.http_client import HttpResult
from svc_proto.voice.provider_keys import ProviderCredentials
from svc_proto.voice.providers.errors import response_error, safe_excerpt_of
from svc_proto.wire.events import Headers

KEY = "sk-abcdefghijklmnop"
ACCESS = ProviderCredentials("OpenAI", "https://api.example/v1", KEY)


def answer(status: int, body: bytes = b"", **headers: str) -> HttpResult:
    fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return HttpResult(status, Headers(fields), body)


MOVED = "answered {}: redirects are not followed, since the key would go along"
BUSY = "takes no more requests for now (429)"
LEAKY = f'{{"error": {{"message": "Incorrect API key provided: {KEY[:9]}*****{KEY[-4:]}."}}}}'.encode()


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, LEAKY, "does not accept the configured API key"),
        (403, LEAKY, "answered 403"),
        (403, b'{"detail": {"status": "x", "message": "Not here"}}', "answered 403: Not here"),
        (422, b'{"detail": [{"msg": "voice_id is unknown"}]}', "answered 422: voice_id is unknown"),
        (422, b'{"detail": []}', "answered 422"),
        (500, b'{"error": ' * 7 + b'"x"' + b"}" * 7, "answered 500"),
        (502, b" <html>Bad gateway</html>", "answered 502"),
        (503, b"upstream connect error\nreset", "answered 503: upstream connect error reset"),
        *((400, body, "answered 400") for body in (b'{"error": "cut', b'["cut')),
        (299, b"", "answered 299"),
        (300, b"", MOVED.format(300)),
        (399, b"", MOVED.format(399)),
    ],
)
def test_refusals_of_the_provider(status: int, body: bytes, words: str) -> None:
    assert str(response_error(ACCESS, answer(status, body))) == f"OpenAI {words}"


@pytest.mark.parametrize("wait", ["", "soon", "-1", "1.5", "9999999", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_invalid_retry_after_is_ignored(wait: str) -> None:
    assert str(response_error(ACCESS, answer(429, retry_after=wait))) == f"OpenAI {BUSY}"
    assert str(response_error(ACCESS, answer(429, retry_after="7"))) == f"OpenAI {BUSY}; try again in 7 seconds"


@pytest.mark.parametrize("shown", [KEY, KEY[:6], f"...{KEY[-6:]}", f"sk-{KEY[4:12]}***"])
def test_no_piece_of_the_key_is_quoted(shown: str) -> None:
    assert safe_excerpt_of(f"bad key {shown}", KEY) == ""
    assert safe_excerpt_of(f"bad key {KEY[:5]}", KEY) == f"bad key {KEY[:5]}"


JSON = st.recursive(
    st.none() | st.text(max_size=9), lambda inner: st.lists(inner) | st.dictionaries(st.just("error"), inner)
)


@given(st.integers(300, 599), st.binary(max_size=100) | JSON.map(lambda value: json.dumps(value).encode()))
def test_error_text_is_one_line(status: int, body: bytes) -> None:
    words = str(response_error(ACCESS, answer(status, body)))
    assert words.startswith("OpenAI ")
    assert words.isprintable()
    assert len(words) < 400
