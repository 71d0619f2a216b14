from svc_proto.agent.memory import MAX_CHARS
from svc_proto.agent.system_prompt import (
    MAX_SKILLS_SHOWN,
    NO_PHONE,
    PHONE,
    TOOLS,
    apps_part,
    build_system_prompt,
    date_part,
    notes_part,
    skills_part,
)
from svc_proto.basics.moment import Moment


def test_the_whole() -> None:
    assert build_system_prompt("Be kind.\n", "", "  ", "Tools.") == "Be kind.\n\nTools."
    assert build_system_prompt("", TOOLS) == TOOLS
    assert len(TOOLS) + len(PHONE) < 1_000
    assert len(NO_PHONE) < 200


def test_parts() -> None:
    assert date_part(Moment(0.0, 1_795_777_200.0)) == "Today is Friday, 2026-11-27 (UTC)."
    assert apps_part(()) == ""
    assert apps_part(("a", "b")) == "Work in these apps alone: a, b. The user is asked about acts in others."
    assert notes_part({}) == ""
    assert notes_part({"memory": ["a", "b"], "user": []}) == "Your notes (tool memory, target memory):\n- a\n- b"
    assert len(notes_part({"user": ["x" * 100_000]})) < 3 * MAX_CHARS["user"]
    assert skills_part([]) == ""
    lines = skills_part([(f"s{number}", "x" * 500) for number in range(100)]).splitlines()
    assert len(lines) == MAX_SKILLS_SHOWN + 1
    assert lines[1] == f"- s0: {'x' * 160}"
