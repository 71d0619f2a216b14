"""What is known of media from outside: what is over surely, what must live, and what may be either."""

from __future__ import annotations

from fuzz.shelf import Medium, Shelf

TTL, CAP = 40.0, 2


def registered(shelf: Shelf, at: float) -> Medium:
    medium = shelf.put(b"data", at)
    medium.token, medium.since.told = f"token-{at}", at + 0.5
    return medium


def test_a_medium_lives_for_its_time_and_no_longer() -> None:
    shelf = Shelf(TTL, CAP)
    medium = registered(shelf, 0.0)
    assert shelf.must_live(medium, 1.0, 39.9)
    assert not shelf.must_live(medium, 1.0, 40.0)
    assert shelf.over_before(medium, 40.4) == ""
    assert shelf.over_before(medium, 40.5) == "40.0 s after it was registered for 40 s"


def test_as_many_newer_ones_as_there_is_room_for_are_its_end_unless_it_was_used() -> None:
    shelf = Shelf(TTL, CAP)
    medium = registered(shelf, 0.0)
    registered(shelf, 1.0)
    assert shelf.must_live(medium, 1.6, 1.7)
    assert shelf.over_before(medium, 1.6) == ""
    registered(shelf, 2.0)
    assert not shelf.must_live(medium, 2.6, 2.7)
    assert shelf.over_before(medium, 2.6) == "2 newer ones are there, of 2 at most"
    use = shelf.use(medium, 1.7)
    assert shelf.over_before(medium, 2.6) == ""  # nobody knows when its answer was made
    shelf.missed(medium, use)
    assert shelf.over_before(medium, 2.6) != ""


def test_a_restart_is_the_end_of_all() -> None:
    shelf = Shelf(TTL, CAP)
    medium = registered(shelf, 0.0)
    shelf.outages.append((3.0, 4.0))
    assert shelf.over_before(medium, 3.5) == ""
    assert shelf.over_before(medium, 4.0) == "after the relay was started again"
    assert not shelf.must_live(medium, 3.5, 5.0)


def test_what_came_after_the_question_was_not_over_when_it_was_asked() -> None:
    shelf = Shelf(TTL, CAP)
    assert shelf.over_before(registered(shelf, 5.0), 5.0) == ""
