"""Samples that the rules for error texts, log events and metrics must flag. All tests show that the core's pass."""

import pytest

from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.basics.metrics import MetricFamily, gauge
from svc_proto.basics.validate import invalid
from tests.support.text_rules import mistake_of, mistake_of_event, mistake_of_family


@pytest.mark.parametrize(
    ("error", "mistake"),
    [
        (Refused(404, "no such file", "not_found"), "no word that programs know: 'no such file'"),
        (Refused(404, "not_found", "gone"), "no sentence for people: 'gone'"),
        (Refused(400, "invalid_field", "data must be gone"), "this says too little: 'data must be gone'"),
        (RemoteProtocolError("no"), "no sentence for people: 'no'"),
    ],
    ids=str,
)
def test_mistakes(error: Exception, mistake: str) -> None:
    assert mistake_of(error) == mistake


def test_the_rules_apply_to_the_core_only() -> None:
    assert Refused(404, "not found", "gone").status == 404
    with pytest.raises(AssertionError, match="this says too little: 'a must be b'"):
        invalid("a", "b")


def test_rules_for_log_events() -> None:
    assert mistake_of_event("store failed") == mistake_of_event("bug") == ""
    assert mistake_of_event("failed") == "this says too little: 'failed'"


@pytest.mark.parametrize(
    ("family", "mistake"),
    [
        (gauge("deltas", "Deltas that were sent.", 1), "no word for programs: 'deltas'"),
        (gauge("svc_deltas", "deltas", 1), "no sentence for people: 'deltas'"),
        (gauge("svc_deltas", "deltas that were sent.", 1), "no sentence for people: 'deltas that were sent.'"),
        (gauge("svc_deltas", "Deltas that were sent", 1), "no sentence for people: 'Deltas that were sent'"),
    ],
    ids=str,
)
def test_rules_for_metrics(family: MetricFamily, mistake: str) -> None:
    assert mistake_of_family(family) == mistake
