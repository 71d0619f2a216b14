"""Changes of the host's settings: accepted values and refused ones."""

from __future__ import annotations

import pytest

from svc_proto.api.host_settings import parse_host_change
from svc_proto.basics.errors import Refused

TOKEN = "token-of-a-monitor-1"
PUBLIC = "https://home.example/relay"


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"public_url": PUBLIC},
        {"public_url": "", "brand": "hermes", "metrics_token": TOKEN},
        {"brand": ""},
        {"pair_scope": "phone", "pair_ttl": "0"},
        {"pair_scope": "", "pair_ttl": ""},
    ],
)
def test_changes(change: dict[str, object]) -> None:
    assert parse_host_change(change) == change


@pytest.mark.parametrize(
    "change",
    [
        {"password": "x"},
        {"public_url": 7},
        {"public_url": "ftp://home.example"},
        {"public_url": "https://user:pw@home.example"},
        {"public_url": "https://home.example\nA=1"},
        {"public_url": "https://home.example/#part"},
        {"public_url": "https://home.example/ x"},
        {"brand": "other"},
        {"pair_scope": "everything"},
        {"pair_ttl": "-1"},
        {"pair_ttl": "30d"},
        {"metrics_token": "short"},
        {"metrics_token": "token 'of' a monitor"},
        {"metrics_token": "x" * 257},
    ],
)
def test_bad_changes(change: dict[str, object]) -> None:
    with pytest.raises(Refused) as caught:
        parse_host_change(change)
    assert caught.value.status == 400
    assert "pw" not in caught.value.message
