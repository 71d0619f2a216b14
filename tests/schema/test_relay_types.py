from svc_proto.schema.relay_types import PhoneStatusJson
from tests.relay.harness import RelayHarness


def test_status_of_a_phone_has_the_documented_members() -> None:
    book = RelayHarness()
    book.pair()
    (status,) = book.request("GET", "/bridge/devices").json["devices"]
    assert sorted(status) == sorted(PhoneStatusJson.__annotations__)
