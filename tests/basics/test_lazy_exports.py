"""Names of a package whose modules are loaded when the names are first used."""

import pytest

from svc_proto.basics.lazy_exports import lazy_exports
from svc_proto.basics.moment import Moment

TABLE = {"svc_proto.basics.moment": "Moment", "svc_proto.basics.errors": "Refused ProtocolError"}


def test_lazy_names_are_loaded() -> None:
    names, find, listed = lazy_exports("somewhere", TABLE)
    assert names == ["Moment", "Refused", "ProtocolError"]
    assert listed() == ["Moment", "ProtocolError", "Refused"]
    assert find("Moment") is Moment


def test_unknown_names_raise_attribute_error() -> None:
    _, find, _ = lazy_exports("somewhere", TABLE)
    with pytest.raises(AttributeError, match=r"^module 'somewhere' has no attribute 'Timers'$"):
        find("Timers")
