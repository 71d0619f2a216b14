import pytest

from bench.rounds import BYTES, Rounds, Stretch, byte_rows, notes_on


def rounds(*works: Stretch, cpu: float = 0.5, waited: float = 0.0) -> Rounds:
    done = Rounds()
    for work in works:
        done.add(work, cpu=cpu, waited=waited)
    return done


def test_bytes_become_rates_and_ratios_within_a_round() -> None:
    first = rounds(Stretch(2e6, 1.0, 0.1), Stretch(2e6, 2.0, 0.1), Stretch(2e6, 4.0, 0.1))
    second = rounds(Stretch(1e6, 1.0, 0.1), Stretch(1e6, 2.0, 0.1), Stretch(1e6, 4.0, 0.1), waited=0.35)
    one, two = byte_rows({"one": first, "two": second})
    assert {column.key for column in BYTES} == one.values.keys()
    assert one.values["mb_per_second"] == 1.0
    assert one.values["best_mb_per_second"] == 2.0
    assert one.values["cpu_ms_per_mb"] == pytest.approx(1.5e3 / 6)
    assert (one.values["ratio"], two.values["ratio"]) == (1.0, 0.5)
    assert (one.values["waited_percent"], two.values["waited_percent"]) == pytest.approx((0.0, 15.0))


def test_notes_list_disturbed_and_limited_rounds() -> None:
    runs = {"calm": rounds(Stretch(1, 1.0, 0.1)), "shoved": rounds(Stretch(1, 1.0, 0.95), waited=0.07)}
    ratio, limited, disturbed = notes_on(runs, "bytes")
    assert ratio.startswith("ratio: bytes per second against 'calm'")
    assert limited.endswith("so it limits: shoved")
    assert disturbed.startswith("DISTURBED: ")
    assert disturbed.endswith(": shoved")
    assert len(notes_on(runs, "bytes", undisturbed=0.1)) == 2
