import pytest

from svc_proto.voice.principal import Principal


def session(device: str | None, token: str = "a") -> Principal:
    return Principal(kind="session", device_id=device, bearer_hash=token)


def api(token: str) -> Principal:
    return Principal(kind="api", bearer_hash=token, bearer="secret")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (session("phone", "a"), session("phone", "b"), True),  # a new token of the same device
        (session("phone", "a"), session("tablet", "a"), False),
        (session(None, "a"), session(None, "a"), True),
        (session(None, "a"), session(None, "b"), False),
        (session(None, "a"), session("phone", "a"), False),
        (api("a"), api("a"), True),
        (api("a"), api("b"), False),
        (api("a"), session(None, "a"), False),  # different kinds never match
    ],
)
def test_matching_principals(one: Principal, other: Principal, same: bool) -> None:
    assert one.matches(other) is same
    assert other.matches(one) is same
