import pytest

from svc_proto.service_clients.authority import OWNER, POWERS, authority_headers, named_principal, withheld_powers
from svc_proto.wire.events import Headers


@pytest.mark.parametrize(
    ("name", "withheld", "kept"),
    [
        ("0a1b2c3d Phone", ("chat", "bridge"), "0a1b2c3d Phone"),
        ("é\r\nx-evil: 1", ("manage",), "???x-evil: 1"),
        ("", (), "owner"),
        ("x" * 300, (), "x" * 200),
    ],
)
def test_fields_are_read_as_they_were_written(name: str, withheld: tuple[str, ...], kept: str) -> None:
    headers = Headers(authority_headers(name, withheld))
    assert (named_principal(headers), withheld_powers(headers)) == (kept, frozenset(withheld))


def test_the_owner_holds_everything() -> None:
    assert all(map(OWNER.holds, POWERS))
    assert authority_headers("", ()) == ()
