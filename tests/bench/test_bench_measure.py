from collections.abc import Callable

from bench.measure import duel, paired_ratio, percentile, race


def test_race_gives_one_figure_a_round_and_runs_every_cycle() -> None:
    ran: list[tuple[str, int]] = []
    ticks = iter(range(100))
    works = {"a": lambda n: ran.append(("a", n)), "b": lambda n: ran.append(("b", n))}
    samples = race(works, cycles=10, rounds=3, clock=lambda: float(next(ticks)))
    assert samples == {"a": [0.1] * 3, "b": [0.1] * 3}
    warm_up, rest = ran[:2], ran[2:]
    assert warm_up == [("a", 1), ("b", 1)]
    assert [name for name, _ in rest] == ["a", "b", "b", "a", "a", "b"]


def test_ratios_compare_within_a_round() -> None:
    # A machine that is ten times slower in the second round changes no ratio.
    assert paired_ratio([2.0, 20.0, 2.0], [1.0, 10.0, 1.0]) == 2.0


def test_a_duel_is_the_median_of_bursts_back_to_back() -> None:
    spent = [0.0]

    def lasting(seconds: float) -> Callable[[int], None]:
        def run(cycles: int) -> None:
            spent[0] += seconds * cycles

        return run

    assert duel(lasting(3.0), lasting(2.0), rounds=6, burst=4, clock=lambda: spent[0]) == 1.5


def test_percentiles_are_nearest_rank() -> None:
    values = [float(n) for n in range(100)]
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1.0)) == (50.0, 99.0, 99.0)
    assert percentile([7.0], 0.99) == 7.0
