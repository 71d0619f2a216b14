import base64
import json
from urllib.parse import quote

import pytest

from svc_proto.basics.brand import HERMES, SVC
from svc_proto.basics.errors import Refused
from svc_proto.machines import pairing_payload
from svc_proto.machines.pairing_codes import PairingMeta

KEY = bytes(range(32))
VECTOR: dict[str, object] = {
    "host": "192.0.2.10", "key": "", "port": 8642,
    "relay": {"code": "Q7M2ZK", "ttl_seconds": 0, "url": "ws://192.0.2.10:8767"}, "svc": 2, "tls": False,
}  # fmt: skip


def build(relay: pairing_payload.RelayBlock | None = None, **more: object) -> dict[str, object]:
    endpoints = more.get("endpoints")
    dashboard_url = more.get("dashboard_url")
    return pairing_payload.build_payload(
        host="192.0.2.10",
        port=8642,
        key="",
        tls=False,
        relay=relay,
        endpoints=endpoints if isinstance(endpoints, list) else None,
        dashboard_url=dashboard_url if isinstance(dashboard_url, str) else None,
    )


def test_signatures_are_those_of_the_wire_document() -> None:
    assert pairing_payload.payload_signature(VECTOR, KEY) == "LSGEsXzp3b8hM8c7dXAxllx6+uq7amvJovZ2GPk2QAI="
    original = {"hermes": 2, **{name: value for name, value in VECTOR.items() if name != "svc"}}
    assert pairing_payload.payload_signature(original, KEY) == "OHM+WArv8wLMz03e1ARUJt1b/mc6OuVgZMHmrby5q+A="
    payload = build(relay=pairing_payload.RelayBlock(url="ws://192.0.2.10:8767", code="Q7M2ZK", ttl_seconds=0.0))
    assert payload == {**VECTOR, "hermes": VECTOR["svc"]}
    assert pairing_payload.verify_payload({**VECTOR, "sig": "LSGEsXzp3b8hM8c7dXAxllx6+uq7amvJovZ2GPk2QAI="}, KEY)
    payload = pairing_payload.sign_payload({"sig": "old", **build()}, KEY)
    assert list(payload)[-1] == "sig"
    assert pairing_payload.verify_payload(payload, KEY)
    assert not pairing_payload.verify_payload(payload, b"another secret of 32 bytes......")
    assert not pairing_payload.verify_payload({**payload, "port": 1}, KEY)
    assert not pairing_payload.verify_payload({**payload, "sig": None}, KEY)
    assert not pairing_payload.verify_payload({**payload, "sig": "ß"}, KEY)
    assert not pairing_payload.verify_payload(build(), KEY)


def test_members_in_the_order_of_the_table() -> None:
    meta = PairingMeta(
        ttl_seconds=604800.0, grants={"bridge": 3600.0, "chat": 0.5, "terminal": None}, transport_hint="ws"
    )
    block = pairing_payload.relay_block("ws://192.0.2.10:8767", "Q7M2ZK", meta)
    payload = build(relay=block, endpoints=[{"role": "лан"}], dashboard_url="http://192.0.2.10:9119")
    text = pairing_payload.encode_payload({"sig": "x", **payload})
    assert text == (
        '{"svc":3,"hermes":3,"host":"192.0.2.10","port":8642,"key":"","tls":false,'
        '"relay":{"url":"ws://192.0.2.10:8767","code":"Q7M2ZK","ttl_seconds":604800,'
        '"grants":{"bridge":3600,"chat":1},"transport_hint":"ws"},'
        '"endpoints":[{"role":"\\u043b\\u0430\\u043d"}],"dashboard_url":"http://192.0.2.10:9119","sig":"x"}'
    )


@pytest.mark.parametrize(
    ("block", "endpoints", "version"),
    [
        (None, None, 1),
        (pairing_payload.RelayBlock(url="ws://h", code="Q7M2ZK"), None, 1),
        (pairing_payload.RelayBlock(url="ws://h", code="Q7M2ZK", transport_hint="unknown"), [], 1),
        (pairing_payload.RelayBlock(url="ws://h", code="Q7M2ZK", transport_hint="wss"), None, 2),
        (pairing_payload.RelayBlock(url="ws://h", code="Q7M2ZK", grants={}), None, 2),
        (pairing_payload.RelayBlock(url="ws://h", code="Q7M2ZK", ttl_seconds=5.0), None, 2),
        (None, [{"role": "lan"}], 3),
    ],
)
def test_the_version(block: pairing_payload.RelayBlock | None, endpoints: list[object] | None, version: int) -> None:
    payload = build(relay=block, endpoints=endpoints, dashboard_url="http://h")
    assert payload["svc"] == version
    assert ("relay" in payload, "endpoints" in payload) == (block is not None, bool(endpoints))


def test_urls_have_the_url_safe_alphabet() -> None:
    text = pairing_payload.encode_payload(build())
    url = pairing_payload.pairing_url(SVC, text)
    assert url.startswith("svc-relay://pair?payload=eyJ")
    assert "=" not in url.removeprefix("svc-relay://pair?payload=")
    assert pairing_payload.pairing_url(HERMES, text).startswith("hermes-relay://pair?payload=")
    assert STANDARD != URL_SAFE
    assert URL_SAFE != BARE


PAYLOAD: dict[str, object] = {"svc": 1, "host": "a&b ü ~~~ ???", "key": "kk{}", "port": 8642}
JSON_TEXT = json.dumps(PAYLOAD, separators=(",", ":"), ensure_ascii=False)
STANDARD = base64.b64encode(JSON_TEXT.encode()).decode()
URL_SAFE = base64.urlsafe_b64encode(JSON_TEXT.encode()).decode()
BARE = URL_SAFE.rstrip("=")


@pytest.mark.parametrize(
    "invite",
    [
        *(JSON_TEXT, f"\n {JSON_TEXT} \n", STANDARD, URL_SAFE, BARE, f"  {BARE}\n"),
        *(f"svc-relay://pair?payload={BARE}", f"hermes-relay://pair?payload={BARE}"),
        *(f"SVC-Relay://pair?payload={URL_SAFE}", f"svc-relay://pair?payload={STANDARD}"),
        *(f"svc-relay://pair?payload={quote(STANDARD, safe='')}", f"svc-relay://pair?p={BARE}"),
        *(f"svc-relay://pair/?p={BARE}", f"svc-relay://pair?v=1&payload={BARE}&x=2"),
        *(f"svc-relay://pair?v=1&P={BARE}#top", f"svc-relay://pair/{BARE}", f"hermes-relay://pair/{BARE}?x=1"),
        *(f"Scan this: <svc-relay://pair?payload={BARE}>, then wait.", f"(svc-relay://pair/{BARE})."),
        *(f"svc-relay://pair?payload={JSON_TEXT}", f"svc-relay://pair/{JSON_TEXT} \n"),
        f"svc-relay://pair?payload={quote(JSON_TEXT, safe='')}?x=1",
        quote(JSON_TEXT, safe=""),
        JSON_TEXT.ljust(pairing_payload.MAX_INVITE),
    ],
)
def test_every_form_of_an_invite(invite: str) -> None:
    assert pairing_payload.parse_invite(invite) == PAYLOAD


def wrapped(text: str, width: int, separator: str) -> str:
    return separator.join(text[place : place + width] for place in range(0, len(text), width))


URL = f"svc-relay://pair?payload={BARE}"


@pytest.mark.parametrize("width", [20, 40, len(URL) - 3])
@pytest.mark.parametrize(
    "separator",
    [
        *("\n", "\r\n", "\n  ", "\n\t", " ", "\n\xa0", "=\n", "=\r\n", "\n> ", "\n\n", " |\n| ", " \u2502\n\u2502 "),
        *("\\\n", "\u2028"),
    ],
)
def test_a_wrapped_invite(width: int, separator: str) -> None:
    for text in (URL, URL.replace("=", "=3D"), f"Please use {URL}", f"{URL} today, before noon", f"<{URL}> now", BARE):
        assert pairing_payload.parse_invite(wrapped(text, width, separator)) == PAYLOAD


def test_invites_in_many_lines_and_with_invisible_characters() -> None:
    compact = JSON_TEXT.replace(" ", "")
    for separator in ("\n", "\n  ", "\r\n> "):
        assert pairing_payload.parse_invite(wrapped(compact, 30, separator)) == json.loads(compact)
    for sign in "\u200b\u200d\u2060\ufeff\xad\u200e\x00\x7f":
        assert pairing_payload.parse_invite(f"{sign}{URL[:10]}{sign}{URL[10:40]}{sign}{URL[40:]}{sign}") == PAYLOAD
    payload = {"svc": 1, "host": "h" * 300}
    url = pairing_payload.pairing_url(SVC, json.dumps(payload))
    assert pairing_payload.parse_invite(wrapped(url, 1, "\n")) == payload
    with pytest.raises(Refused):
        pairing_payload.parse_invite(wrapped(url[:-20], 1, "\n"))


@pytest.mark.parametrize(
    "invite",
    [
        *("", "   ", "hello there", "http://192.0.2.10:8642", "svc-relay://pair", "svc-relay://pair?x=1"),
        *("svc-relay://pair?payload=", "svc-relay://pair?payload=<", "svc-relay://pair/", "svc-relay://pair/###"),
        *("svc-relay://pairs?payload=" + BARE, "svc-relay://pair?payload=abcde", "svc-relay://pair?payload=_____w"),
        *("svc-relay://pair?payload=aGVsbG8", "svc-relay://pair?payload={", base64.b64encode(b"[1]").decode(), "{]"),
        JSON_TEXT.ljust(pairing_payload.MAX_INVITE + 1),
    ],
)
def test_invalid_invites(invite: str) -> None:
    with pytest.raises(Refused) as caught:
        pairing_payload.parse_invite(invite)
    assert (caught.value.status, caught.value.code) == (400, "invalid_invite")
