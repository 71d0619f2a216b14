"""What openapi-spec-validator says of the three documents."""

from __future__ import annotations

import json

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.api.world import ApiBook
from tests.loops.boards import Board
from tests.loops.virtual import VirtualWorld
from tests.relay.world import RelayBook


def board() -> bytes:
    world = VirtualWorld()
    body = Board(world).ask("GET", "/openapi.json").body
    world.close()
    return body


DOCUMENTS = {
    "relay": lambda: RelayBook().request("GET", "/openapi.json").body,
    "api": lambda: ApiBook().request("GET", "/openapi.json").body,
    "dashboard": board,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_it_is_openapi(name: str) -> None:
    assert list(OpenAPIV31SpecValidator(json.loads(DOCUMENTS[name]())).iter_errors()) == []
