import pytest

from svc_proto.schema.effects.effect_kinds import EffectKind
from svc_proto.schema.effects.effect_words import is_confirming, is_harmless, kind_of_label, kind_of_sentence


@pytest.mark.parametrize(
    ("labels", "whole", "expected"),
    [
        (["Pay the rent of my flat", "Book", "Pay " + "x" * 44], False, EffectKind.PURCHASE),
        (["Pay the rent"], True, None),
        (["Pay", "\u6ce8\u6587\u3092\u78ba\u5b9a\u3059\u308b"], True, EffectKind.PURCHASE),
        (["Open book", "Order history", "Update", "Liste aktualisieren", "\u66f4\u65b0\u5217\u8868"], False, None),
        (["\u5220\u9664\u8fd9\u4e00\u6761\u5f88\u957f\u7684\u6d88\u606f\u5185\u5bb9\u554a"], False, None),
        (["\u5220\u9664\u8fd9\u4e00\u6761\u5f88\u957f\u7684\u6d88\u606f\u5185\u5bb9"], False, EffectKind.DELETION),
        (["Pay the rent of my old flat", "Pay " + "x" * 45, ""], False, None),
        (["Reader aktualisieren", "Обновить Reader", "Update now", "Reader \u66f4\u65b0"], False, EffectKind.INSTALL),
    ],
)
def test_labels(labels: list[str], whole: bool, expected: EffectKind | None) -> None:
    for label in labels:
        assert kind_of_label(label, whole=whole) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Do you want to factory reset this phone?", EffectKind.DELETION),
        ("Your order", None),
        ("Order now?", EffectKind.PURCHASE),
        ("Bitte rufen Sie an →", EffectKind.CALL),
        ("\u8981\u5220\u9664\u5417", EffectKind.DELETION),
        ("Congratulations!", EffectKind.CONFIRMATION),
        ("A story about boats", None),
    ],
)
def test_sentences(text: str, expected: EffectKind | None) -> None:
    assert kind_of_sentence(text) is expected


def test_labels_that_agree_or_leave() -> None:
    assert is_confirming(["Weiter"])
    assert is_confirming(["\u2713"])
    assert not is_confirming(["Save"])
    assert is_harmless(["Abbrechen"])
    assert not is_harmless(["Cancel", "Send"])
    assert not is_harmless([])
