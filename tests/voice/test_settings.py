import pytest

from svc_proto.basics.errors import Refused
from svc_proto.voice.settings import (
    OUTPUT,
    PROMOTION,
    REALTIME,
    OutputSettings,
    RealtimeSettings,
    apply_choice,
    rules_of,
    usable_values,
)
from tests.voice.table_rows import read_tables

TABLES = read_tables("settings")
FILE_ONLY = rules_of(RealtimeSettings, file_only=True)
ALL = {**REALTIME, **OUTPUT, **PROMOTION, **FILE_ONLY}


TEXTS = {"provider": 80, "model": 160, "voice": 160, "language": 24}


@pytest.mark.parametrize(("names", "taken", "refused"), TABLES["rules"])
def test_accepted_values_of_each_setting(names: str, taken: dict[object, object], refused: list[object]) -> None:
    for name in names.split():
        assert {given: ALL[name](given, name) for given in taken} == taken
        assert usable_values(ALL, {name: next(iter(taken))}).keys() == {name}
        for given in refused:
            with pytest.raises(Refused, match=f"{name} must be"):
                ALL[name](given, name)
            assert usable_values(ALL, {name: given}) == {}


def test_each_is_tried() -> None:
    assert sorted(ALL) == sorted({*TEXTS, *" ".join(row[0] for row in TABLES["rules"]).split()})
    assert [*OUTPUT][:5] == [*REALTIME]
    assert [len(OUTPUT), len(PROMOTION), len(FILE_ONLY)] == [11, 8, 1]


@pytest.mark.parametrize(("name", "longest"), TEXTS.items())
def test_how_long_a_text_may_be(name: str, longest: int) -> None:
    assert OUTPUT[name](" x ", name) == "x"
    assert OUTPUT[name]("x" * longest, name) == "x" * longest
    for wrong in ("x" * (longest + 1), " ", "", "a\n"):
        with pytest.raises(Refused, match=f"1 to {longest} characters"):
            OUTPUT[name](wrong, name)


def test_usable_values_of_a_file() -> None:
    found = {"enabled": "no", "voice": "", "sample_rate": "16000", "codec": "ogg", "language": None, "other": 1}
    assert usable_values(OUTPUT, found) == {"enabled": False, "sample_rate": 16_000}


@pytest.mark.parametrize(("body", "expected"), TABLES["choices"])
def test_speech_output(body: dict[str, object], expected: list[object]) -> None:
    found = apply_choice(OutputSettings(), body)
    assert [found.provider, found.model, found.voice, found.sample_rate, found.language] == expected


@pytest.mark.parametrize(("body", "voice"), TABLES["voices of this host"])
def test_a_language_selects_the_voice_of_this_host(body: dict[str, object], voice: str) -> None:
    """Check that a language selects a voice of the provider `local`, unless one is named or the present one has it."""
    settings = OutputSettings(provider="local", model="espeak-ng", voice="en-gb")
    assert apply_choice(settings, body).voice == voice


def test_realtime() -> None:
    found = apply_choice(RealtimeSettings(), {"provider": "openai", "language": "de"})
    assert (found.provider, found.model, found.voice) == ("openai_realtime", "gpt-realtime-2.1", "alloy")


def test_unsupported_rate_is_replaced() -> None:
    settings = OutputSettings(sample_rate=22_050)
    assert apply_choice(settings, {"provider": "stub"}).sample_rate == 16_000
    assert apply_choice(settings, {"provider": "stub", "sample_rate": 48_000}).sample_rate == 48_000
    assert apply_choice(settings, {"provider": "elevenlabs"}).sample_rate == 22_050


@pytest.mark.parametrize("name", ["provider", "model", "voice", "language", "sample_rate"])
def test_invalid_choices_are_refused(name: str) -> None:
    longest = TEXTS.get(name, 5)
    wrong: tuple[object, ...] = ("x" * (longest + 1), "a\x07", [], 96_001 if name == "sample_rate" else 5)
    for value in wrong:
        with pytest.raises(Refused, match=f"{name} must be") as caught:
            apply_choice(OutputSettings(), {name: value})
        assert caught.value.status == 400
    if name in ("model", "voice", "language"):
        assert getattr(apply_choice(OutputSettings(), {name: "x" * longest}), name) == "x" * longest


def test_unknown_provider_is_refused() -> None:
    with pytest.raises(Refused, match="unknown voice provider: absent"):
        apply_choice(OutputSettings(), {"provider": "absent"})
