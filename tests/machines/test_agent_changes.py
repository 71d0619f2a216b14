from svc_proto.machines.agent_changes import FILE, MAX_CHANGES, AgentChange, changes_by, parse_changes, write_changes


def test_the_file_of_changes() -> None:
    change = AgentChange(at=1.5, principal="0a1b2c3d Tablet", kind="memory", target="user", after="x")
    text = write_changes([change] * (MAX_CHANGES + 1))
    assert parse_changes(text) == (change,) * MAX_CHANGES
    assert parse_changes('{"changes": [{"kind": "other"}, 5]}') == parse_changes("no JSON") == ()
    assert [len(changes_by([change], name)) for name in ("0a1b2c3d", "Tablet", "0a1b2c3d Tablet", "0a", "x")] == [
        *(1, 1, 1),
        *(0, 0),
    ]
    assert FILE.endswith(".json")
