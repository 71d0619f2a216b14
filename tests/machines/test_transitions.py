from enum import Enum

import pytest

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.machines.transitions import Table, step


class Light(Enum):
    RED = "red"
    GREEN = "green"


class Push(Enum):
    BUTTON = "button"


TABLE: Table[Light, Push] = {(Light.RED, Push.BUTTON): Light.GREEN}


def test_a_row_is_followed_and_a_missing_one_is_a_named_error() -> None:
    assert step(TABLE, Light.RED, Push.BUTTON) is Light.GREEN
    with pytest.raises(LocalProtocolError, match=r"Push\.BUTTON cannot happen in Light\.GREEN"):
        step(TABLE, Light.GREEN, Push.BUTTON)
