import pytest

from svc_proto.service_clients.model_address import endpoint_url, has_plain_layout, root_url


@pytest.mark.parametrize(
    ("base", "completions", "models", "plain"),
    [
        ("http://h:1/v1", "http://h:1/v1/chat/completions", "http://h:1/v1/models", True),
        ("http://h:1/v1/", "http://h:1/v1/chat/completions", "http://h:1/v1/models", True),
        ("http://h", "http://h/chat/completions", "http://h/models", True),
        (
            "http://h/d/m?api-version=1",
            "http://h/d/m/chat/completions?api-version=1",
            "http://h/d/m/models?api-version=1",
            False,
        ),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions", "http://h/v1/models", False),
        ("http://h/v1/chat/completions/?a=b", "http://h/v1/chat/completions?a=b", "http://h/v1/models?a=b", False),
    ],
)
def test_addresses_of_an_endpoint(base: str, completions: str, models: str, plain: bool) -> None:
    assert (endpoint_url(base), endpoint_url(base, "models"), has_plain_layout(base)) == (completions, models, plain)


@pytest.mark.parametrize(
    ("base", "props"),
    [("http://h:1/v1/", "http://h:1/props"), ("http://h/api/v1", "http://h/api/props"), ("http://h", "http://h/props")],
)
def test_pages_outside_of_the_version(base: str, props: str) -> None:
    assert root_url(base, "props") == props
