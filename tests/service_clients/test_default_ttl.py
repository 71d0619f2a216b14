import pytest

from svc_proto.machines.candidate_selection import Candidate
from svc_proto.service_clients.default_ttl import default_ttl


@pytest.mark.parametrize(
    ("role", "url", "seconds"),
    [
        ("lan", "ws://192.168.1.5:8767", 604_800),
        ("", "ws://127.0.0.1:8767", 604_800),
        ("public", "ws://box.example:8767", 604_800),
        ("lan", "wss://192.168.1.5:8767", None),
        ("public", "wss://box.example", None),
        ("mesh", "ws://100.64.0.5:8767", None),
        ("Tailscale", "ws://100.64.0.5:8767", None),
        ("", "ws://100.64.0.5:8767", None),
        ("", "ws://100.127.255.254:8767", None),
        ("", "ws://[fd7a:115c:a1e0::5]:8767", None),
        ("lan", "ws://box.tail1234.ts.net:8767", None),
        ("lan", "ws://Box.TS.net.:8767", None),
        ("", "ws://100.128.0.1:8767", 604_800),
        ("", "ws://100.63.255.255:8767", 604_800),
        ("", "ws://[fd7a:115c:a1e1::5]:8767", 604_800),
        ("", "ws://ts.net.example:8767", 604_800),
        ("", "ws://nots.net:8767", 604_800),
    ],
)
def test_default_is_a_week_over_plain_ws(role: str, url: str, seconds: int | None) -> None:
    assert default_ttl(Candidate(role, 0, url)) == seconds
