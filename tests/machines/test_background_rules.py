"""What a session may do in the background: the defaults are those of the wire reference."""

from __future__ import annotations

import pytest

from svc_proto.machines.background_rules import FOREGROUND, BackgroundRules
from svc_proto.voice.settings import Promotion
from svc_proto.voice_config import SLOW_TOOLS, VoiceConfig


def test_the_defaults_agree() -> None:
    rules, promotion, config = BackgroundRules(), Promotion(), VoiceConfig()
    assert (rules.enabled, rules.spoken_handoff) == (promotion.enabled, promotion.spoken_handoff) == (True, True)
    assert rules.promote_after * 1000 == promotion.promote_after_ms == 6000
    assert rules.progress_after * 1000 == promotion.progress_spoken_after_ms == 0
    assert rules.progress_repeat * 1000 == promotion.progress_repeat_ms == 30_000
    assert rules.longest == config.background_max == 300.0
    assert not FOREGROUND.enabled


@pytest.mark.parametrize(
    ("tool", "slow"),
    [
        ("terminal", True),
        ("cron_list", True),
        ("desktop_click", True),
        ("open_browser", True),
        ("execute_code", True),
        ("spawn_agent", True),
        ("web_search", False),
        ("desktop", False),
        ("", False),
    ],
)
def test_tools_that_are_known_to_take_long(tool: str, slow: bool) -> None:
    assert BackgroundRules(slow_tools=SLOW_TOOLS).is_slow(tool) is slow
    assert not BackgroundRules().is_slow(tool)
