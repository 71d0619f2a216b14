import pytest

from svc_proto.facts import Failure, FailureKind
from svc_proto.service_clients.failure_text import failure_reason, model_server_name


@pytest.mark.parametrize("kind", FailureKind)
def test_every_failure_has_a_text(kind: FailureKind) -> None:
    words = failure_reason(Failure(kind))
    assert words
    assert "_" not in words


def test_detail_of_the_host_comes_first() -> None:
    assert failure_reason(Failure(FailureKind.UNREACHABLE, "connection refused")) == "connection refused"


@pytest.mark.parametrize(
    ("base", "source", "name"),
    [
        ("http://h:1/v1", "", "the model's server at http://h:1/v1"),
        ("http://h:1/v1?key=k#x", "SVC_MODEL_BASE_URL", "the model's server at http://h:1/v1 (SVC_MODEL_BASE_URL)"),
        ("http://user:pw@[::1]:1/v1", "", "the model's server at http://[::1]:1/v1"),
    ],
)
def test_the_name_of_a_model_server_holds_no_credential(base: str, source: str, name: str) -> None:
    assert model_server_name(base, source) == name
