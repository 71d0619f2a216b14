from svc_proto.agent import system_prompt as prompt
from svc_proto.agent.memory import MAX_CHARS
from svc_proto.basics.moment import Moment


def test_the_whole() -> None:
    assert prompt.build_system_prompt("Be kind.\n", "", "  ", "Tools.") == "Be kind.\n\nTools."
    assert prompt.build_system_prompt("", prompt.TOOLS) == prompt.TOOLS
    assert len(prompt.TOOLS) + len(prompt.PHONE) < 1_000
    assert len(prompt.NO_PHONE) < 200


def test_parts() -> None:
    assert prompt.date_part(Moment(0.0, 1_795_777_200.0)) == "Today is Friday, 2026-11-27 (UTC)."
    assert prompt.apps_part(()) == ""
    assert prompt.apps_part(("a", "b")) == "Work in these apps alone: a, b. The user is asked about acts in others."
    assert prompt.notes_part({}) == ""
    assert prompt.notes_part({"memory": ["a", "b"], "user": []}) == "Your notes (tool memory, target memory):\n- a\n- b"
    assert len(prompt.notes_part({"user": ["x" * 100_000]})) < 3 * MAX_CHARS["user"]
    assert prompt.skills_part([]) == ""
    lines = prompt.skills_part([(f"s{number}", "x" * 500) for number in range(100)]).splitlines()
    assert len(lines) == prompt.MAX_SKILLS_SHOWN + 1
    assert lines[1] == f"- s0: {'x' * 160}"
