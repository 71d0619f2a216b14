import pytest

from svc_proto.agent.tools.owner_question import IN_WORDS, NO, NOT_HERE, YES, owner_question
from svc_proto.basics.errors import ToolError
from tests.agent.harness import AgentHarness
from tests.support.servers.model_server import calls, plain

ASKING = ("ask_user", {"question": "Shall I take the 9:12 train?\u202e"})


@pytest.mark.parametrize(("choice", "answer"), [("once", YES), ("deny", NO), ("At 10:12", f"{IN_WORDS}At 10:12")])
def test_the_user_is_asked_and_the_turn_goes_on(choice: str, answer: str) -> None:
    world = AgentHarness(model=[calls(ASKING), calls(ASKING), plain("Thanks")])
    world.host.choices = [choice] * 2
    outcome = world.answer("Plan my day.")
    asked, other = world.host.asked
    assert asked.command == other.command
    assert (asked.command, asked.choices) == ("Shall I take the 9:12 train?\\u202e", ("once", "deny"))
    assert asked.is_question
    assert [(finished.output, finished.error) for finished in world.host.finished] == [(answer, None)] * 2
    assert outcome.unfinished == ()


def test_a_question_needs_a_turn_and_a_client_that_shows_it() -> None:
    world = AgentHarness(model=[calls(ASKING), plain("Which train?")])
    world.host.can_request_approval = False
    world.answer("Plan my day.")
    (finished,) = world.host.finished
    assert finished.output == f"error: {NOT_HERE[0]}\n{NOT_HERE[1]}"
    (tool,) = owner_question().tools
    with pytest.raises(ToolError):
        list(tool.run({"question": "x"}))
