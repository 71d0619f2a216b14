"""How errors have to speak: samples that have to be flagged, and samples that have to pass."""

from __future__ import annotations

import pytest

from svc_proto.basics.errors import Refused, RemoteProtocolError, ToolError
from svc_proto.basics.validate import invalid
from tests.sentences import mistake_of


@pytest.mark.parametrize(
    "error",
    [
        Refused(404, "not_found", "no such file"),
        Refused(403, "", "this page may not"),
        Refused(400, "invalid_field", "data must be base64"),
        RemoteProtocolError("a frame without a mask"),
        ToolError("the file is gone"),
    ],
    ids=str,
)
def test_sentences(error: Exception) -> None:
    assert mistake_of(error) == ""


@pytest.mark.parametrize(
    ("error", "mistake"),
    [
        (Refused(404, "no such file", "not_found"), "no word for programs: 'no such file'"),
        (Refused(404, "not_found", "gone"), "no sentence for people: 'gone'"),
        (Refused(400, "invalid_field", "data must be gone"), "this says too little: 'data must be gone'"),
        (RemoteProtocolError("no"), "no sentence for people: 'no'"),
    ],
    ids=str,
)
def test_mistakes(error: Exception, mistake: str) -> None:
    assert mistake_of(error) == mistake


def test_the_core_is_held_to_it_and_nobody_else() -> None:
    assert Refused(404, "not found", "gone").status == 404
    with pytest.raises(AssertionError, match="this says too little: 'a must be b'"):
        invalid("a", "b")
