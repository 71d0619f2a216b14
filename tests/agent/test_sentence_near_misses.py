"""Sentences that resemble a request, in five languages: the built-in agent completes no tool call for them."""

import pytest

from clients.phone.emulator import EmulatedPhone
from clients.phone.emulator.record_apps import ALL_APPS
from runtimes.sentences import HassilParser
from svc_proto.agent.interface import TurnOutcome
from tests.agent.harness import AgentHarness
from tests.support.tables import read_table

PARSER = HassilParser()


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    "row", read_table("tests/agent/sentence_near_misses.tsv"), ids=lambda row: f"{row['language']} {row['sentence']}"
)
def test_no_act_on_words_that_the_phone_does_not_have(row: dict[str, str]) -> None:
    world = AgentHarness(phone=True, backend=EmulatedPhone(seed_apps=ALL_APPS), sentences=PARSER)
    world.host.choices = ["once"] * 3
    assert world.command(row["sentence"]) == TurnOutcome()
    done = [event.call.name for event in world.host.finished if event.error is None]
    assert done == [], world.host.text
