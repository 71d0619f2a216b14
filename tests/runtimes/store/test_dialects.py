"""Test of the arguments of PostgreSQL connections for a URL."""

import pytest

pytest.importorskip("psycopg", reason="the driver of PostgreSQL is an extra")

from sqlalchemy.engine import make_url

from runtimes.store.dialects import open_engine

LIMITS = "-c statement_timeout=20000 -c lock_timeout=5000"


@pytest.mark.parametrize(
    ("query", "options", "more"),
    [
        ("", LIMITS, {}),
        ("?options=-c%20x=1", "-c x=1", {}),
        ("?pgbouncer=true", None, {"prepare_threshold": None}),
        ("?pgbouncer=true&options=-c%20x=1", "-c x=1", {"prepare_threshold": None}),
        ("?pgbouncer=false", LIMITS, {}),
    ],
)
def test_arguments_of_a_connection(
    query: str, options: str | None, more: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(make_url(f"postgres://svc@db/svc{query}"))
    seen: dict[str, object] = {}

    def connect(*args: object, **given: object) -> object:
        seen.update(given)
        raise ZeroDivisionError

    monkeypatch.setattr(engine.dialect, "connect", connect)
    with pytest.raises(ZeroDivisionError):
        engine.connect()
    assert (seen.get("options"), "pgbouncer" in seen, seen.get("connect_timeout")) == (options, False, 5)
    assert {name: seen[name] for name in more} == more
    assert ("prepare_threshold" in seen) is ("prepare_threshold" in more)
