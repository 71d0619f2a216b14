"""Limits on the tokens of work on a phone: the tools, screens, a first turn, and ten steps."""

import pytest
from attrs import evolve

from tests.agent.harness import ROUTE, AgentHarness
from tests.agent.step_tokens import match_tokens, prompt_tokens, screen_tokens, shared_part, steps, tool_tokens
from tests.support.servers.model_server import plain


def test_tools() -> None:
    assert tool_tokens(few=False) <= 1_700
    assert tool_tokens(few=True) <= 625


def test_screens_and_matches() -> None:
    assert screen_tokens() <= 3_500
    assert match_tokens() <= 15


def test_first_prompt_of_a_small_model() -> None:
    world = AgentHarness(phone=True, model=[plain("Hello")])
    world.answer("Hello", model=evolve(ROUTE, context=4_096))
    assert prompt_tokens(world.model.seen) <= 1_500


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("few", "looks", "limit", "shared"),
    [(False, False, 30_000, 0.9), (False, True, 60_000, 0.9), (True, False, 20_000, 0.9), (True, True, 40_000, 0.85)],
)
def test_ten_steps(few: bool, looks: bool, limit: int, shared: float) -> None:
    requests = steps(few=few, looks=looks)
    assert len(requests) == (22 if looks else 12)
    assert prompt_tokens(requests) <= limit
    assert shared_part(requests) >= shared
