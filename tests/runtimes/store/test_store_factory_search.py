from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtimes.store.migrations import MIGRATIONS, create_fts5
from runtimes.store.search import PortableSearch
from runtimes.store.search_index import new_chat_search
from runtimes.store.search_sqlite import Fts5Search
from runtimes.store.sql_executor import SqlExecutor
from runtimes.store.sql_store import SqlStore, open_sql_engine
from runtimes.store.store_service import Store
from svc_proto.api.chat.records import SearchHit
from svc_proto.api.chat.store_requests import DeleteChat, ForkChat
from tests.runtimes.store.chat_stores import (
    add,
    chat,
    create,
    execute,
    found,
    get,
    message,
    messages_of,
    new_store,
    search,
)


def test_a_hit_has_its_session_and_snippet(store: Store) -> None:
    create(store, chat(title="Trip"), chat("d"))
    rows = [message(f"m{number}", content, at=float(number)) for number, content in enumerate(["a", "b", "c"])]
    add(store, *rows, message("m3", ({"type": "text", "text": "The Needle\nin it"},)))
    add(store, message("alone", "needle"), to="d")
    by_id = {hit.message.id: hit for hit in search(store, "needle")}
    assert by_id["m3"] == SearchHit(
        message=message("m3", ({"type": "text", "text": "The Needle\nin it"},)),
        session=get(store),
        snippet="The >>>Needle<<< in it",
        context=(rows[2],),
    )
    assert by_id["alone"].context == ()
    (hit,) = search(store, "b")
    assert hit.context == (rows[0], rows[2])


QUERIES = {  # by the messages that they find
    "plain word": ["deploy"],
    "plain": ["DEPLOY it", "it deploy"],
    "accents": ["cafe", "CAFÉ", "strasse"],
    "cjk": ["京都", "東京都に", "python入門"],
    "hangul": ["한국어"],
    "cyrillic": ["привет", "ПРИВЕТ, мир!"],
    "emoji": ["\N{PARTY POPPER}", "\N{PARTY POPPER} party"],
    "signs": ["100%", "snake_case", "'quoted'", "x /y"],
    "": ["deploy nothing", "都京", "입니다", "\N{PARTY POPPER} deploy", "50% off", "", " \n\t"],
}


@pytest.mark.parametrize("ids", QUERIES)
def test_queries_and_their_hits(store: Store, ids: str) -> None:
    create(store, chat())
    add(
        store,
        message("plain", "Please deploy it now"),
        message("word", "after the Deployment"),
        message("accents", "Ein Cafe\u0301 in der Straße"),
        message("cjk", "東京都に行く。Python入門"),
        message("hangul", "한국어를 배워요"),
        message("cyrillic", "Привет, мир!"),
        message("emoji", "A party! \N{PARTY POPPER}"),
        message("signs", "snake_case is 100% 'quoted' in x /y/z"),
        message("image", ({"type": "image_url", "image_url": {"url": "data:deploy"}},)),
    )
    for query in QUERIES[ids]:
        assert found(store, query) == ids.split(), query


def test_the_index_follows_changes(store: Store) -> None:
    create(store, chat())
    add(store, message("m1", "ältere Wörter"), message("m2", "plain"))
    add(store, message("m1", "neuere plain"))
    assert found(store, "altere") == []
    assert found(store, "plain") == ["m1", "m2"]
    execute(store, ForkChat(source="c", session=chat("f"), now=2.0))
    assert found(store, "plain") == ["f:1", "f:2", "m1", "m2"]
    execute(store, DeleteChat(id="c"))
    assert found(store, "plain") == ["f:1", "f:2"]
    create(store, chat())
    add(store, message("m3", "quite plain"))
    assert found(store, "plain") == ["f:1", "f:2", "m3"]


def test_pages_of_hits(store: Store) -> None:
    create(store, chat())
    add(store, *[message(f"m{number}", "same words", at=float(number)) for number in range(7)])
    whole = [hit.message.id for hit in search(store, "same")]
    assert whole == [f"m{number}" for number in reversed(range(7))]  # equally good: newest first
    assert [hit.message.id for hit in search(store, "same", 3, 2)] == whole[2:5]
    assert search(store, "same", 3, 7) == search(store, "same", 0) == search(store, "same", -1) == ()
    assert search(store, "same", 3, 10**30) == ()
    assert len(search(store, "same", 10**30, -1)) == 7


def test_an_index_ranks() -> None:
    store = new_store("memory", Path())
    create(store, chat())
    add(store, message("best", "needle needle"), message("rest", "a needle and much else " + "hay " * 50))
    assert [hit.message.id for hit in search(store, "needle")] == ["best", "rest"]
    store.close()


NASTY = (
    '"', '""', "'", "*", "a*", "^a", "a:b", "text:a", "a AND b", "NOT a", "a OR", "NEAR(a b)", "(", "a) OR (b", "{a}",
    "-a", "+a", "a + b", "%", "_", "\\", "a\\", "[a]", "?", ":a", "%s", ";--", "\0", "\ud800", "a\0b",
    "\N{PARTY POPPER}", "\U0003ffff", "\U00030000 a", "日" * 1000, "a " * 1000, "\ufdfa" * 1000, "_" * 1000,
    "\u0301", "a" * 100_000, '"a" "b', "rank", "chat_search", "\U0001d54f", "\u200b", "\u202e",
)  # fmt: skip


def test_no_query_is_an_error(store: Store) -> None:
    create(store, chat())
    add(store, message("m1", "a b"), message("m2", "日本"))
    for query in NASTY:
        assert {hit.message.id for hit in search(store, query)} <= {"m1", "m2"}, query


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=st.text(max_size=40), query=st.text(max_size=20))
def test_no_text_is_an_error(store: Store, content: str, query: str) -> None:
    execute(store, DeleteChat(id="c"))
    create(store, chat())
    add(store, message("m", content))
    assert messages_of(store) == (message("m", content),)
    for asked in (query, content):
        for hit in search(store, asked):
            assert hit.message == message("m", content)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(words=st.lists(st.text("abcüéßЁж日本한ไ1_-", min_size=1, max_size=5), min_size=1, max_size=5), pick=st.data())
def test_every_word_of_a_message_is_found(store: Store, words: list[str], pick: st.DataObject) -> None:
    execute(store, DeleteChat(id="c"))
    create(store, chat())
    add(store, message("m", " ".join(words)))
    assert found(store, pick.draw(st.sampled_from(words))) == ["m"]
    assert found(store, " ".join(words).upper()) == ["m"]


def test_search_kind_of_each_schema_version(tmp_path: Path) -> None:
    for count, kind in ((2, PortableSearch), (len(MIGRATIONS), Fts5Search)):
        path = tmp_path / f"{count}.db"
        SqlStore(path, MIGRATIONS[:count]).close()
        engine = open_sql_engine(path)
        with engine.begin() as connection:
            assert type(new_chat_search(connection)) is kind
        engine.dispose()


def test_a_sqlite_without_fts5(tmp_path: Path) -> None:
    class Lacking(SqlExecutor):
        def execute(self, statement: object, **values: object) -> int:
            return super().execute(str(statement).replace("USING fts5(words)", "USING nosuchmodule(words)"), **values)

    def lacking(hand: SqlExecutor) -> None:
        create_fts5(Lacking("sqlite", hand._cursor))

    store = SqlStore(tmp_path / "s.db", (*MIGRATIONS[:2], lacking, *MIGRATIONS[3:]))
    create(store, chat())
    add(store, message("m", "a needle"))
    assert found(store, "needle") == ["m"]
    assert found(store, "eedle") == ["m"]  # by comparing texts
    store.close()
