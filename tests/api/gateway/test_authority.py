import pytest

from svc_proto.service_clients.authority import BRIDGE, MANAGE, authority_headers
from tests.api.gateway_client import GatewayClient, open_gateway
from tests.api.scripted_agent import TurnHarness

TABLET = authority_headers("Tablet", [MANAGE, BRIDGE])


def limited() -> tuple[TurnHarness, GatewayClient, str]:
    """Open a gateway chat with the main key, whose device lacks the powers `manage` and `bridge`."""
    book = TurnHarness()
    phone = open_gateway(book, fields=TABLET)
    return book, phone, phone.new_session()


def test_a_turn_has_the_authority_of_its_client() -> None:
    book, phone, session = limited()
    phone.call("prompt.submit", session_id=session, text="Hi")
    phone.call("prompt.submit", session_id=session, text="And then?")
    for _ in range(2):
        authority = book.hand.turn.authority
        assert (authority.name, authority.holds(BRIDGE), authority.holds(MANAGE)) == ("Tablet", False, False)
        book.hand.finish()
    open_gateway(book).call("prompt.submit", session_id=session, text="Hi")
    assert book.hand.turn.authority.holds(BRIDGE)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("config.set", {"key": "model", "value": "svc-agent --global"}),
        ("profiles.configure", {"name": "default", "soul": "x"}),
        ("profiles.set_asset", {"name": "default", "asset": "avatar", "data": "data:image/png;base64,"}),
    ],
)
def test_settings_of_the_server_need_a_right(method: str, params: dict[str, object]) -> None:
    book, phone, session = limited()
    files = book.files
    assert "manage" in phone.refusal(method, **params)[1]
    assert book.files == files
    if method == "config.set":
        before = phone.call("model.options", session_id=session)
        assert "manage" in phone.refusal(method, session_id=session, **params)[1]
        assert phone.call("model.options", session_id=session) == before


def test_changed_settings_are_recorded() -> None:
    book = TurnHarness()
    phone = open_gateway(book, fields=authority_headers("Tablet", ()))
    phone.call("profiles.configure", name="default", soul="Be kind.")
    book.after(1.0)
    (row,) = book.request("GET", "/api/changes").json["changes"]
    assert (row["kind"], row["after"], row["principal"]) == ("setting", "Be kind.", "Tablet")


def test_an_approval_for_more_than_one_call_needs_a_right() -> None:
    book, phone, session = limited()
    phone.call("prompt.submit", session_id=session, text="Hi")
    book.hand.request_approval(choices=("once", "always", "deny"))
    assert "manage" in phone.refusal("approval.respond", session_id=session, choice="always")[1]
    assert phone.call("approval.respond", session_id=session, choice="once") == {"resolved": 1}
