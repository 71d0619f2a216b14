"""The constants of the core equal the stored snapshot, so that a changed value is noticed."""

import json

import pytest

from tests.snapshots.constants import SNAPSHOT, collect, render


@pytest.mark.unmeasured
def test_constants_are_those_of_the_snapshot() -> None:
    found, expected = collect(), json.loads(SNAPSHOT.read_text())
    changed = {
        f"{module}.{name}": (expected.get(module, {}).get(name), found.get(module, {}).get(name))
        for module in {*found, *expected}
        for name in {*found.get(module, {}), *expected.get(module, {})}
        if json.dumps(expected.get(module, {}).get(name)) != json.dumps(found.get(module, {}).get(name))
    }
    assert not changed, "run python -m tests.snapshots.constants and review the diff"
    assert render(found) == SNAPSHOT.read_text()
