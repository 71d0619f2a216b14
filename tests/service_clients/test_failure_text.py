from __future__ import annotations

import pytest

from svc_proto.facts import Failure, FailureKind
from svc_proto.service_clients.failure_text import failure_reason


@pytest.mark.parametrize("kind", FailureKind)
def test_every_failure_has_a_text(kind: FailureKind) -> None:
    words = failure_reason(Failure(kind))
    assert words
    assert "_" not in words


def test_detail_of_the_host_comes_first() -> None:
    assert failure_reason(Failure(FailureKind.UNREACHABLE, "connection refused")) == "connection refused"
