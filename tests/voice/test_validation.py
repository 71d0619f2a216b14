from __future__ import annotations

import pytest

from svc_proto.voice.contract import ProviderInfo
from svc_proto.voice.options import STATIC, Offer
from svc_proto.voice.registry import Registry
from svc_proto.voice.validation import Choice, check_choice


def checks(provider: str, **changes: object) -> dict[str, str]:
    info = Registry().find(provider)
    assert info is not None
    return found(info, **changes)


def found(info: ProviderInfo, **changes: object) -> dict[str, str]:
    first = {
        "model": next(iter(info.models), ""),
        "voice": next(iter(info.voices), ""),
        "sample_rate": next(iter(info.sample_rates), 1),
        "language": "en",
    }
    choice = Choice(**{**first, **changes})  # type: ignore[arg-type]  # a table's row
    return {check["id"]: check["status"] for check in check_choice(Offer(info, None, STATIC), choice)}


def test_the_first_of_everything_is_fine() -> None:
    for info in Registry().all():
        assert set(found(info).values()) == {"ok"}, info.id


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model": "x"}, ("model_known", "warning")),
        ({"model": ""}, ("model_present", "error")),
        ({"voice": ""}, ("voice_present", "error")),
        ({"voice": "zed"}, ("voice_compatible", "error")),
        ({"model": "x", "voice": "zed"}, ("voice_known", "warning")),
        ({"sample_rate": 8000}, ("sample_rate_known", "error")),
        ({"language": "de"}, ("language_known", "warning")),
    ],
)
def test_each_check(changes: dict[str, object], expected: tuple[str, str]) -> None:
    assert expected in checks("xai_tts", **changes).items()


def test_what_nobody_lists_is_not_checked() -> None:
    bare = ProviderInfo(id="bare", name="", description="")
    assert found(bare) == {"model_known": "warning", "voice_present": "error"}
    assert "language_known" not in checks("xai_tts", language=None)
    assert "language_known" not in checks("xai_tts", language="")
    assert "language_known" not in checks("xai_realtime")
