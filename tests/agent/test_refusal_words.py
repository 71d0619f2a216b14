import re

import pytest

from svc_proto.agent import refusal_words as words


@pytest.mark.parametrize(
    ("pattern", "texts", "others"),
    [
        (words.CONTEXT, ("das Kontextfenster", "la longueur de contexte", "too many input tokens"), ("context",)),
        (words.IMAGES, ("vision is off", "content must be a string", "模型不支持图片"), ("content missing",)),
        (words.ROLE_ORDER, ("first message must be of the user", "two users in a row"), ("role",)),
        (words.SYSTEM_ROLE, ("Only user and assistant roles are supported", "invalid role: developer"), ("systems",)),
        (words.REASONING, ("reasoning_content", "thought_signature"), ("reasoning_effort",)),
        (words.STREAM, ("does not support streaming", "stream must be false"), ("stream",)),
        (words.TOOLS, ("ферма без инструментов", "ツールは使えません", "sin herramientas"), ("toolkit", "fun")),
        (words.NEW_OUTPUT_NAME, ("use 'max_completion_tokens' instead",), ("max_completion_tokens is unknown",)),
    ],
)
def test_pattern(pattern: re.Pattern[str], texts: tuple[str, ...], others: tuple[str, ...]) -> None:
    assert [text for text in texts if pattern.search(text) is None] == []
    assert [text for text in others if pattern.search(text) is not None] == []
