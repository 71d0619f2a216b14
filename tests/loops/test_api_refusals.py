"""Texts that are hard to store: each comes back from the store as it was sent."""

from __future__ import annotations

from tests.loops.world import World

KEY = "sk-refusals-5b08"


def test_texts_that_are_hard_to_store(world: World) -> None:
    """Half a surrogate pair is no text; NUL is in none; everything else comes back as it was sent."""
    api = world.api(key=KEY, relay_url="http://127.0.0.1:9")
    session = api.session()
    client = api.client()
    path = f"/api/sessions/{session}/chat"
    halves = client.ask("POST", path, headers=api.headers, body=b'{"message": "a \\ud83d b"}')
    assert halves.status in (200, 400)
    for text in (
        "\u202eabc\u2066",
        "e\u0301 \U0001f469\u200d\U0001f4bb",
        "a\x01b\x7f",
        "\\u0000 \\ \" '",
        "x" * 200_000 + "END",
    ):
        whole = f"/echo {text}"
        answer = client.ask("POST", path, {"message": whole}, headers=api.headers, timeout=60.0)
        assert answer.status == 200, answer
        rows = api.messages(session)
        assert rows[-2]["content"] == whole
        assert rows[-1]["content"] == answer.json["message"]["content"] == whole[6:].strip()
    client.wire.close()
