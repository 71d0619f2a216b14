from attrs import fields

from svc_proto.api.openapi import change_types
from svc_proto.machines.agent_changes import AgentChange


def test_a_change_has_the_members_of_its_record() -> None:
    names = {field.name for field in fields(AgentChange)}
    assert set(change_types.ChangeJson.__annotations__) == names
    assert set(change_types.UndoneChangeJson.__annotations__) >= {"undone", "why"}
