"""Whose key, and under which name."""

from __future__ import annotations

import pytest

from svc_proto.voice.keys import Keys
from svc_proto.voice.providers.access import admit
from svc_proto.voice_config import VENDORS, Vendor
from tests.voice.providers.studio import problem


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: f"{vendor.name} {vendor.url}")
def test_a_key_is_looked_for_under_all_its_names(vendor: Vendor) -> None:
    for place in range(len(vendor.keys)):
        access = admit(vendor, Keys({name: f"of-{name}" for name in vendor.keys[place:]}))
        assert (access.vendor, access.url, access.key) == (vendor.name, vendor.url, f"of-{vendor.keys[place]}")
        assert access.bearer == ((b"authorization", f"Bearer {access.key}".encode()),)
        assert access.key not in repr(access)
    assert admit(vendor, Keys({vendor.asked: "key", vendor.url_variable: "http://x/v1/"})).url == "http://x/v1"
    variable = f"{vendor.name.upper()}_API_KEY"
    missing = problem(lambda: admit(vendor, Keys({})))
    assert (missing.variable, str(missing)) == (variable, f"{variable} not set")
    odd = problem(lambda: admit(vendor, Keys({variable: "two words"})))
    assert str(odd) == f"the key of {vendor.name} has characters that no header can carry"
