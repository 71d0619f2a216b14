"""Test that simulations with and without fast paths have equal facts, commands and counts."""

import pytest
from attrs import evolve

from fuzz.reference_parsers import (
    ReferenceClientConnection,
    ReferenceFrameReader,
    ReferenceServerConnection,
    without_fast_paths,
)
from fuzz.simulation.scenario_runner import ScenarioReport, run_seed
from svc_proto.engine import client_channel, server_channel
from svc_proto.wire import websocket


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in (0, *range(2, 8)))])
def test_worlds_are_the_same_without_the_fast_paths(seed: int) -> None:
    before = vars(server_channel)["FastPathServerConnection"], vars(websocket)["FrameReader"]
    fast_paths = run_seed(seed)
    with without_fast_paths():
        assert vars(server_channel)["FastPathServerConnection"] is ReferenceServerConnection
        assert vars(client_channel)["FastPathClientConnection"] is ReferenceClientConnection
        assert vars(websocket)["FrameReader"] is ReferenceFrameReader
        references = run_seed(seed)
    assert isinstance(fast_paths, ScenarioReport)
    assert isinstance(references, ScenarioReport)
    # A core may be woken for a deadline that has moved meanwhile; such a wake-up changes nothing.
    assert evolve(fast_paths, events=0) == evolve(references, events=0)
    assert (vars(server_channel)["FastPathServerConnection"], vars(websocket)["FrameReader"]) == before
