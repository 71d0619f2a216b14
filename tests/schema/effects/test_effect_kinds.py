from svc_proto.schema.effects.effect_kinds import VERBS, EffectKind


def test_each_kind_completes_the_question() -> None:
    assert set(VERBS) == set(EffectKind)
