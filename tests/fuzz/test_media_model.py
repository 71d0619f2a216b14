"""Tests of the media model: expired files, files that must live, and uncertain cases."""

from __future__ import annotations

from math import inf

from fuzz.simulation.models.media_model import MediaFileModel, MediaModel


def registered(media_model: MediaModel, sent: float, told: float) -> MediaFileModel:
    medium = media_model.add(b"", sent)
    medium.token, medium.since.told = f"token-{sent}", told
    return medium


def test_time_to_live_counts_from_the_registration() -> None:
    media_model = MediaModel(ttl=10.0, cap=5)
    medium = registered(media_model, 0.0, 1.0)
    assert media_model.must_live(medium, 8.0, 9.9)
    assert not media_model.must_live(medium, 9.0, 10.0)
    media_model.use(medium, 5.0).told = 5.5
    assert not media_model.end_reason(medium, 10.9)
    assert media_model.end_reason(medium, 11.0)


def test_least_recently_used_file_is_evicted() -> None:
    media_model = MediaModel(ttl=100.0, cap=2)
    first = registered(media_model, 0.0, 1.0)
    for when in (2.0, 4.0):
        registered(media_model, when, when + 1.0)
    assert media_model.end_reason(first, 6.0)
    assert not media_model.end_reason(first, 4.5)
    assert not media_model.must_live(first, 6.0, 7.0)
    media_model.use(first, 3.1).told = 3.5  # used before the last file was registered
    assert not media_model.end_reason(first, 6.0)
    assert media_model.must_live(first, 6.0, 7.0)


def test_lost_response_leaves_both_results_possible() -> None:
    media_model = MediaModel(ttl=100.0, cap=1)
    first = registered(media_model, 0.0, 1.0)
    media_model.add(b"", 2.0)
    assert not media_model.end_reason(first, 6.0)
    assert not media_model.must_live(first, 6.0, 7.0)


def test_an_outage_ends_all() -> None:
    media_model = MediaModel(ttl=100.0, cap=5, outages=[(2.0, inf)])
    medium = registered(media_model, 0.0, 1.0)
    assert not media_model.must_live(medium, 3.0, 4.0)
    assert not media_model.end_reason(medium, 3.0)
    media_model.outages[-1] = (2.0, 2.5)
    assert media_model.end_reason(medium, 3.0)


def test_file_registered_after_a_request_had_not_ended() -> None:
    media_model = MediaModel(ttl=10.0, cap=5)
    assert not media_model.end_reason(registered(media_model, 5.0, 6.0), 5.0)
