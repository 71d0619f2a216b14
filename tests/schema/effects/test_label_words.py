import pytest

from svc_proto.schema.effects.effect_kinds import EffectKind
from svc_proto.schema.effects.effect_words import is_harmless, is_refreshing, kind_of_label
from svc_proto.schema.effects.label_words import DEFAULT_VERBS, EFFECT_SYMBOLS, EFFECT_WORDS, HARMLESS


def labels_of(words: str) -> list[str]:
    return [label for line in words.splitlines() for label in line.split("|") if label.strip()]


@pytest.mark.parametrize("kind", EFFECT_WORDS)
def test_each_label_has_an_effect_unless_it_leaves_or_loads_again(kind: EffectKind) -> None:
    missing = [label for label in labels_of(EFFECT_WORDS[kind]) if kind_of_label(label) is None]
    assert all(is_harmless([label]) or is_refreshing([label]) for label in missing), missing
    assert all(kind_of_label(sign) is kind for sign in EFFECT_SYMBOLS.get(kind, "") if sign.strip())


def test_harmless_labels_and_default_verbs() -> None:
    assert [label for label in labels_of(HARMLESS) if kind_of_label(label) is not None] == []
    assert [verb for verb in DEFAULT_VERBS if kind_of_label(verb) is None] == []
