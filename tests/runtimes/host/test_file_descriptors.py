"""Test of the soft limit of descriptors, which is raised to the hard one, but to `MAX_DESCRIPTORS` at most."""

import resource

import pytest

from runtimes.host.file_descriptors import MAX_DESCRIPTORS, raise_descriptor_limit

ENDLESS = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("limits", "forbidden", "set_to", "found"),
    [
        ((1024, 4096), False, (4096, 4096), 4096),
        ((1024, 1_000_000), False, (MAX_DESCRIPTORS, 1_000_000), MAX_DESCRIPTORS),
        ((1024, ENDLESS), False, (MAX_DESCRIPTORS, ENDLESS), MAX_DESCRIPTORS),
        ((ENDLESS, ENDLESS), False, None, MAX_DESCRIPTORS),
        ((100_000, 200_000), False, None, 100_000),
        ((4096, 4096), False, None, 4096),
        ((1024, 4096), True, None, 1024),
    ],
)
def test_as_many_as_may_be(
    limits: tuple[int, int],
    forbidden: bool,
    set_to: tuple[int, int] | None,
    found: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    orders: list[tuple[int, int]] = []

    def order(what: int, wanted: tuple[int, int]) -> None:
        if forbidden:
            raise ValueError("not allowed to raise maximum limit")
        orders.append(wanted)

    monkeypatch.setattr(resource, "getrlimit", lambda what: limits)
    monkeypatch.setattr(resource, "setrlimit", order)
    assert raise_descriptor_limit() == found
    assert orders == ([] if set_to is None else [set_to])
