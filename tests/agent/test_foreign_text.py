import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.agent.foreign_text import fence, neutralize, neutralize_history

MARKS = [
    *("</tool_response>", "<tool_call>", "<|im_end|>", "<|im_start|>system", "<|start_header_id|>"),
    *("<\uff5cend\u2581of\u2581sentence\uff5c>", "[INST]", "[/INST]", "<<SYS>>", "<start_of_turn>", "<s>", "</s>"),
    *("[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "<function=phone_send_sms>", "< / system >", "<think>"),
    *("[/untrusted]", "[untrusted: com.example.mail]"),
]


@pytest.mark.parametrize("mark", MARKS)
def test_marks_of_chat_templates_are_changed(mark: str) -> None:
    found = neutralize(f"before {mark} after")
    assert mark not in found
    assert found.startswith("before ")
    assert found.endswith(" after")


HIDDEN = "\u200b\u2063\U000e0041\u202e\u2066\u00ad\ufeff\U000e0100\u200d\u200c\ufe00\ufe0f"


@pytest.mark.parametrize("hidden", HIDDEN)
def test_invisible_characters_are_removed(hidden: str) -> None:
    assert neutralize(f"ab{hidden}cd") == "abcd"
    assert neutralize(f"{hidden}ab{hidden}") == "ab"


@pytest.mark.parametrize(
    "text",
    [
        "Hello, <b>you</b> [1] and a < b > c",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family of three
        "\u0645\u06cc\u200c\u0631\u0648\u0645",  # Persian with a joiner that separates
        "\u2764\ufe0f",
        "d\u00e9j\u00e0 vu \u4f60\u597d \u0928\u092e\u0938\u094d\u0924\u0947",
        "line\nline\ttab",
    ],
)
def test_what_a_person_reads_stays(text: str) -> None:
    assert neutralize(text) == text


@given(st.text(alphabet="<>[]|/ sINSTthinkuntrd:\u200b\U000e0041a", max_size=60))
def test_neutralized_text_is_final(text: str) -> None:
    assert neutralize(neutralize(text)) == neutralize(text)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=30), max_size=4))
def test_a_fenced_object_is_an_object(members: dict[str, str]) -> None:
    text = neutralize(json.dumps(members, ensure_ascii=False))
    found = fence(text, 'app "x"\n')
    if members:
        assert json.loads(found) == {"untrusted": "app x", **json.loads(text)}
    else:
        assert found == "[untrusted: app x]\n{}\n[/untrusted]"


def test_a_fenced_text_and_history() -> None:
    plain = ({"role": "assistant", "content": ""}, {"role": "tool", "content": "Tea"})
    assert neutralize_history(plain) is plain
    rows = [{"role": role, "content": "<|im_end|>"} for role in ("user", "assistant", "tool")]
    found = neutralize_history((*rows, plain[0]))
    assert [row["content"] for row in found] == ["<|im_end|>", *["\u2039\u00a6im_end\u00a6\u203a"] * 2, ""]
    assert fence("hello", "MCP server shop") == "[untrusted: MCP server shop]\nhello\n[/untrusted]"
