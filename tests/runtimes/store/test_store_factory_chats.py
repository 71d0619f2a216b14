import math
from typing import Any

import attrs
import pytest

from runtimes.failures import HostError
from runtimes.store.store_service import Store
from svc_proto.api.chat.records import Usage
from svc_proto.api.chat.store_requests import (
    AddMessages,
    BeginTurn,
    CreateChat,
    DeleteChat,
    ForkChat,
    GetChat,
    ListChats,
    ListMessages,
    ListTitles,
    TruncateMessages,
    UpdateChat,
)
from svc_proto.commands import StoreRequest
from svc_proto.facts import FailureKind
from tests.runtimes.store.chat_stores import EMBEDDED, add, chat, create, execute, get, ids, message, messages_of

CALL = {"id": "t1", "type": "function", "function": {"name": "screen", "arguments": '{"deep": [1, 2.5, null]}'}}
PARTS = (
    {"type": "text", "text": "Look:\nat this"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": None}},
    {"type": "text", "text": "and that"},
)


# --- sessions ------------------------------------------------------------------------------------------------------


def test_sessions_round_trip(store: Store) -> None:
    texts = {"source": "phone", "model": "m", "system_prompt": "be\nkind", "parent_id": "p", "preview": "hi"}
    flags = dict.fromkeys(("is_child", "pinned", "archived"), True)
    counted = {"message_count": 1, "tool_call_count": 2, "input_tokens": 3, "output_tokens": 2**40}
    more: dict[str, Any] = {"title": "Trip \N{SNOWMAN} 'plan'; --", **texts, **flags, **counted}
    full = chat(at=1927857906.1000001, ended_at=1927857907.25, end_reason="done", **more)
    create(store, full, chat("plain"))
    assert get(store) == full
    assert get(store, "plain") == chat("plain")
    assert execute(store, GetChat(id="other")) is None


def test_an_id_is_taken_once(store: Store) -> None:
    create(store, chat(title="first"))
    assert execute(store, CreateChat(session=chat(title="second"))) is False
    assert get(store).title == "first"


def test_lists_are_ordered_and_filtered(store: Store) -> None:
    create(
        store,
        chat("old", at=1.0),
        chat("busy", at=1.0, last_active=9.0),
        chat("new", at=5.0),
        chat("a", at=3.0),
        chat("b", at=3.0),
        chat("later", at=4.0, last_active=5.0),
        chat("phone", at=6.0, source="phone"),
        chat("child", at=7.0, is_child=True),
        chat("gone", at=8.0, archived=True),
    )

    def listed(limit: int = 50, **more: object) -> tuple[list[str], int]:
        page = execute(store, ListChats(limit=limit, **more))  # type: ignore[arg-type]  # of the tests
        return [session.id for session in page.sessions], page.total

    usual = ["busy", "phone", "new", "later", "b", "a", "old"]
    assert listed() == (usual, 7)
    assert listed(3) == (usual[:3], 7)
    assert listed(3, offset=5) == (usual[5:], 7)
    assert listed(3, offset=70) == ([], 7)
    assert listed(0) == listed(-1) == ([], 7)
    assert listed(10**30, offset=-5) == (usual, 7)
    assert listed(offset=10**30) == ([], 7)
    assert listed(source="phone") == (["phone"], 1)
    assert listed(source="absent") == ([], 0)
    assert listed(only_archived=True) == (["gone"], 1)
    assert listed(include_children=True) == (["busy", "child", *usual[1:]], 8)
    assert listed(include_archived=True) == (["busy", "gone", *usual[1:]], 8)
    assert listed(include_archived=True, include_children=True) == (["busy", "gone", "child", *usual[1:]], 9)


def test_an_update_sets_permitted_members(store: Store) -> None:
    create(store, chat())
    changes: dict[str, Any] = {"title": "new", "model": "m", "pinned": True, "archived": True}
    expected = chat(**{**changes, "updated_at": 7.5})
    assert execute(store, UpdateChat(id="c", changes=changes, now=7.5)) == expected == get(store)
    expected = attrs.evolve(expected, title=None, pinned=False, updated_at=8.0)
    assert execute(store, UpdateChat(id="c", changes={"title": None, "pinned": False}, now=8.0)) == expected
    assert execute(store, UpdateChat(id="c", changes={}, now=9.0)) == attrs.evolve(expected, updated_at=9.0)
    assert execute(store, UpdateChat(id="other", changes={"title": "x"}, now=9.0)) is None


def test_the_first_reason_to_end_stays(store: Store) -> None:
    create(store, chat())
    first = execute(store, UpdateChat(id="c", changes={"end_reason": "one", "ended_at": 5}, now=5.0))
    second = execute(store, UpdateChat(id="c", changes={"end_reason": "two", "ended_at": 6.0, "title": "t"}, now=6.0))
    third = execute(store, UpdateChat(id="c", changes={"end_reason": None, "ended_at": None}, now=6.0))
    assert first == chat(end_reason="one", ended_at=5.0, updated_at=5.0)
    assert second == third == chat(end_reason="one", ended_at=5.0, title="t", updated_at=6.0)


WRONG = {"id": "x", "message_count": 0, "nothing": 1, "title": 1, "pinned": 1, "ended_at": "x"}


@pytest.mark.parametrize(("name", "value"), [*WRONG.items(), ("pinned", None)])
def test_an_update_of_other_members_is_refused_whole(store: Store, name: str, value: object) -> None:
    create(store, chat())
    with pytest.raises(HostError, match=f"cannot set {name}") as caught:
        store.execute(UpdateChat(id="c", changes={"model": "m", name: value}, now=9.0))
    assert caught.value.failure.kind is FailureKind.INVALID
    assert get(store) == chat()


def test_deleting_takes_messages_and_runs_and_leaves_forks(store: Store) -> None:
    create(
        store,
        chat(),
        chat("child", is_child=True, parent_id="c"),
        chat("grandchild", is_child=True, parent_id="child"),
        chat("fork", parent_id="c"),
        chat("fork of a child", parent_id="child"),
        chat("other"),
    )
    for session_id in ("c", "child", "grandchild", "fork", "other"):
        add(store, message("m", "kept words"), to=session_id)
    assert execute(store, DeleteChat(id="c")) is True
    assert execute(store, DeleteChat(id="c")) is False
    for session_id in ("c", "child", "grandchild"):
        assert execute(store, GetChat(id=session_id)) is None
        assert execute(store, ListMessages(session_id=session_id)) is None
        assert execute(store, AddMessages(session_id=session_id, messages=(message("late"),))) is False
    for session_id in ("fork", "fork of a child", "other"):
        assert get(store, session_id).parent_id is None
    assert ids(store, "fork") == ids(store, "other") == ["m"]
    create(store, chat())  # the id is free again, without old rows
    assert ids(store) == []


def test_deleting_ends_with_sessions_that_are_their_own_ancestors(store: Store) -> None:
    create(store, chat("a", is_child=True, parent_id="b"), chat("b", is_child=True, parent_id="a"))
    create(store, chat("self", is_child=True, parent_id="self"))
    assert execute(store, DeleteChat(id="a"))
    assert execute(store, DeleteChat(id="self"))
    assert execute(store, ListChats(limit=9, include_children=True)).total == 0


def test_a_fork(store: Store) -> None:
    create(store, chat(preview=None))
    first = message("m1", "Plan \N{SNOWMAN}", at=2.0)
    second = message(
        "m2", PARTS, at=3.0, role="assistant", tool_calls=(CALL,), usage=Usage(input_tokens=5, output_tokens=6)
    )
    add(store, first, second)
    fork = execute(store, ForkChat(source="c", session=chat("f", at=9.0, title="Plan #2", preview="?"), now=9.5))
    assert fork == get(store, "f")
    counted = {"message_count": 2, "tool_call_count": 1, "input_tokens": 5, "output_tokens": 6}
    assert fork == chat("f", at=9.0, title="Plan #2", parent_id="c", preview="Plan \N{SNOWMAN}", **counted)
    assert execute(store, ListMessages(session_id="f")) == (
        attrs.evolve(first, id="f:1", session_id="f"),
        attrs.evolve(second, id="f:2", session_id="f"),
    )
    ended = get(store)
    assert (ended.end_reason, ended.ended_at, ended.updated_at, ended.message_count) == ("branched", 9.5, 9.5, 2)
    assert ids(store) == ["m1", "m2"]
    add(store, message("m3"), to="f")  # they are independent
    assert ids(store, "f") == ["f:1", "f:2", "m3"]
    assert ids(store) == ["m1", "m2"]


def test_impossible_forks(store: Store) -> None:
    create(store, chat(), chat("taken"))
    assert execute(store, ForkChat(source="none", session=chat("f"), now=2.0)) is True
    assert execute(store, ForkChat(source="c", session=chat("taken"), now=2.0)) is False
    assert execute(store, ForkChat(source="c", session=chat("c"), now=2.0)) is False
    assert get(store) == chat()


def test_a_fork_of_a_session_that_has_ended(store: Store) -> None:
    create(store, chat(end_reason="done", ended_at=2.0, last_active=4.0))
    fork = execute(store, ForkChat(source="c", session=chat("f", at=3.0), now=9.0))
    assert fork == chat("f", at=3.0, last_active=4.0, parent_id="c")
    assert get(store) == chat(end_reason="done", ended_at=2.0, last_active=4.0)


def test_titles_of_a_series(store: Store) -> None:
    titles = ["Plan", "Plan #2", "Plan #10", "plan #3", "Plan#4", "Planet #5", "Plan 100% #1", "Plan 1000 #1", None]
    create(store, *[chat(str(number), title=title) for number, title in enumerate(titles)], chat("x", title="Plan"))
    assert sorted(execute(store, ListTitles(base="Plan"))) == ["Plan", "Plan", "Plan #10", "Plan #2"]
    assert execute(store, ListTitles(base="Plan 100%")) == ("Plan 100% #1",)
    assert execute(store, ListTitles(base="Pl_n")) == execute(store, ListTitles(base="")) == ()


# --- messages ------------------------------------------------------------------------------------------------------


def test_messages_round_trip(store: Store) -> None:
    create(store, chat())
    messages = (
        message("m1", "Hi\r\n\ttab \N{GRINNING FACE} ", at=1927857906.1000001),
        message("m2", PARTS, run_id="r"),
        message("m3", (), at=math.nextafter(2.0, 3.0)),
        message("m4", "", role="assistant", tool_calls=(CALL, {"id": "t2", "args": {"n": 2**70, "f": 0.1}})),
        message("m5", "nul \0 and \ud800", role="tool", tool_call_id="t1", tool_name="screen"),
        message("m6", ({"type": "text", "text": "nul \0 and \ud800"},), finish_reason="stop", reasoning="so"),
        message("m7", usage=Usage(input_tokens=1, output_tokens=2**40), role="system"),
        message("m8", "[1]", usage=Usage()),
    )
    add(store, *messages)
    assert execute(store, ListMessages(session_id="c")) == messages


def test_a_mapping_of_any_kind_is_stored(store: Store) -> None:
    class Own(dict[str, object]):
        pass

    create(store, chat())
    add(store, message("m", (Own(type="text", text="hi"),), tool_calls=(Own(CALL),)))
    assert execute(store, ListMessages(session_id="c")) == (
        message("m", ({"type": "text", "text": "hi"},), tool_calls=(CALL,)),
    )
    with pytest.raises(TypeError):
        store.execute(AddMessages(session_id="c", messages=(message("n", ({"type": object()},)),)))
    assert ids(store) == ["m"]


def test_values_beyond_all_databases_are_replaced(store: Store) -> None:
    create(store, chat(title="a\0b\ud800"))
    assert get(store).title == "a\ufffdb\ufffd"
    add(store, message("m", usage=Usage(input_tokens=2**80, output_tokens=-5)))
    session = get(store)
    assert (session.input_tokens, session.output_tokens) == (2**63 - 1, 0)


def test_windows_of_messages(store: Store) -> None:
    create(store, chat(), chat("empty"))
    names = [f"m{number}" for number in range(7)]
    add(store, *[message(name, at=float(9 - place)) for place, name in enumerate(names)])  # by insertion, not by time
    assert ids(store) == names
    assert ids(store, limit=3) == names[:3]
    assert ids(store, limit=3, offset=5) == names[5:]
    assert ids(store, offset=5) == names[5:]
    assert ids(store, limit=3, latest=True) == names[4:]
    assert ids(store, limit=3, offset=2, latest=True) == names[2:5]
    assert ids(store, limit=3, offset=5, latest=True) == names[:2]
    assert ids(store, offset=70, latest=True) == ids(store, limit=0) == ids(store, "empty") == []
    assert ids(store, limit=10**30, offset=-1) == names
    assert execute(store, ListMessages(session_id="none")) is None


def test_counters_follow_the_messages(store: Store) -> None:
    create(store, chat())
    add(store)
    assert get(store) == chat()
    add(store, message("m1", "\n  Plan a\tweekend  \n in Rome", at=2.0))
    add(
        store,
        message("m2", role="assistant", at=3.5, tool_calls=(CALL, CALL), usage=Usage(input_tokens=10, output_tokens=2)),
        message("m3", role="tool", at=3.0, tool_call_id="t1"),
        message("m4", "later", at=1.0),
    )
    counted: dict[str, Any] = {"message_count": 4, "tool_call_count": 2, "input_tokens": 10, "output_tokens": 2}
    assert get(store) == chat(updated_at=3.5, last_active=3.5, preview="Plan a weekend in Rome", **counted)
    assert execute(store, AddMessages(session_id="none", messages=(message("m9"),))) is False


@pytest.mark.parametrize(
    ("content", "preview"),
    [
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 60 + "..."),
        ("語😀" * 30, "語😀" * 30),
        ("語😀" * 31, "語😀" * 30 + "..."),
        ("word " * 30, ("word " * 30)[:60] + "..."),
        (PARTS, "Look: at this and that"),
        (({"type": "text", "text": 5}, {"type": "image_url", "image_url": {"url": "u"}}), "next"),
        (" \n ", "next"),
    ],
)
def test_the_preview_is_the_first_user_message(store: Store, content: object, preview: str) -> None:
    create(store, chat())
    add(store, message("m0", "not this", role="system"), message("m1", content))
    add(store, message("m2", "next"))
    add(store, message("m3", "last"))
    assert get(store).preview == preview


def test_an_existing_message_is_replaced(store: Store) -> None:
    create(store, chat())
    draft = message("m2", "dr", role="assistant", tool_calls=(CALL,), usage=Usage(input_tokens=5, output_tokens=1))
    add(store, message("m1", "one", at=2.0), draft, message("m3", at=3.0))
    final = message(
        "m2", "done", role="assistant", at=4.0, finish_reason="stop", usage=Usage(input_tokens=7, output_tokens=9)
    )
    add(store, message("m4", at=3.5), final, message("m5", "x"), message("m5", "five"))
    messages = messages_of(store)
    assert [one.id for one in messages] == ["m1", "m2", "m3", "m4", "m5"]
    assert messages[1] == final
    assert messages[4].content == "five"
    session = get(store)
    assert (session.message_count, session.tool_call_count, session.last_active) == (5, 0, 4.0)
    assert (session.input_tokens, session.output_tokens) == (7, 9)
    add(store, message("m1", "uno", at=1.0))
    assert get(store).preview == "uno"
    add(store, message("m1", "", at=1.0))
    assert get(store).preview == "hello"
    assert get(store).last_active == 4.0


def test_one_id_in_two_sessions(store: Store) -> None:
    create(store, chat(), chat("d"))
    add(store, message("m", "here"))
    add(store, message("m", "there"), to="d")
    assert messages_of(store, "c") == (message("m", "here"),)
    assert messages_of(store, "d") == (message("m", "there", session_id="d"),)


@pytest.mark.parametrize("store", EMBEDDED, indirect=True)
def test_many_messages_at_once(store: Store) -> None:
    create(store, chat())
    names = [f"m{number}" for number in range(1201)]
    add(store, *[message(name) for name in names])
    add(store, *[message(name, "again") for name in names], message("more"))
    assert ids(store) == [*names, "more"]
    assert get(store).message_count == 1202
    assert get(store).preview == "again"


def test_begin_turn_returns_the_history(store: Store) -> None:
    def begin(text: str, history: int, **more: Any) -> list[str] | None:
        said = (message(f"m-{text}", text),)
        rows = execute(store, BeginTurn(session_id="c", messages=said, history=history, **more))
        return None if rows is None else [str(row.content) for row in rows]

    assert begin("too early", 5) is None
    assert begin("one", 5, create=chat(title="first")) == []
    assert begin("two", 5, create=chat(title="second")) == ["one"]
    assert begin("three", 1) == ["two"]
    assert begin("four", 0) == []
    found = get(store)
    assert (found.title, found.message_count, found.preview) == ("first", 4, "one")
    assert execute(store, ListChats(limit=1)).total == 1


def test_a_chat_created_by_its_first_turn_is_counted(store: Store) -> None:
    assert execute(store, ListChats(limit=1)).total == 0
    execute(store, BeginTurn(session_id="c", create=chat(), messages=(message("m", "Hi"),), history=0))
    assert execute(store, ListChats(limit=1)).total == 1


def test_total_of_a_list_follows_each_change(store: Store) -> None:
    totals = [execute(store, ListChats(limit=1)).total]
    changes: list[StoreRequest[Any]] = [
        CreateChat(session=chat()),
        ForkChat(source="c", session=chat("d"), now=1.0),
        UpdateChat(id="d", changes={"archived": True}, now=2.0),
        UpdateChat(id="d", changes={"archived": False}, now=3.0),
        DeleteChat(id="c"),
    ]
    for change in changes:
        execute(store, change)
        totals.append(execute(store, ListChats(limit=1)).total)
    assert totals == [0, 1, 2, 1, 2, 1]


# --- fences --------------------------------------------------------------------------------------------------------


def test_an_outdated_fence_writes_nothing(store: Store) -> None:
    def write(name: str, fence: int | None) -> bool:
        return execute(store, AddMessages(session_id="c", messages=(message(name, "x"),), fence=fence))

    def begin(name: str, fence: int | None) -> object:
        said = (message(name, "x"),)
        return execute(store, BeginTurn(session_id="c", messages=said, history=0, create=chat(), fence=fence))

    assert begin("a", 2**52) == ()
    assert write("b", 2**52)
    assert begin("c", 2**52 + 5) == ()
    for late in (begin, write):
        with pytest.raises(HostError) as refused:
            late("d", 2**52)
        assert refused.value.failure.kind is FailureKind.DENIED
    assert write("e", 2**52 + 5)
    assert write("f", None)  # a process without other nodes
    assert write("g", 2**52 + 6)
    with pytest.raises(HostError):
        write("h", 2**52 + 5)
    assert ids(store) == ["a", "b", "c", "e", "f", "g"]
    assert execute(store, AddMessages(session_id="none", messages=(), fence=1)) is False
    assert execute(store, DeleteChat(id="c"))
    assert begin("again", 1) == ()  # it is another session


def test_an_outdated_fence_in_a_batch_fails_alone(store: Store) -> None:
    create(store, chat())
    writes = [AddMessages(session_id="c", messages=(message(str(fence), "x"),), fence=fence) for fence in (5, 4, 6)]
    first, second, third = store.execute_all(writes)
    assert (first, third, ids(store)) == (True, True, ["5", "6"])
    assert isinstance(second, HostError)


def test_a_chat_is_cut_and_its_counters_follow(store: Store) -> None:
    create(store, chat())
    first, second = message("1", role="user", content="First"), message("2", role="assistant", tool_calls=(CALL,))
    last = message("3", role="assistant", usage=Usage(input_tokens=5, output_tokens=2))
    add(store, first, second, last)
    whole = get(store)
    assert execute(store, TruncateMessages(session_id="c", keep=3, now=0.0))
    assert get(store) == whole
    assert execute(store, ListChats(limit=1, min_messages=3)).total == 1
    assert execute(store, ListChats(limit=1, min_messages=4)).total == 0
    assert execute(store, TruncateMessages(session_id="c", keep=1, now=whole.updated_at + 5))
    cut = get(store)
    assert (cut.message_count, cut.tool_call_count, cut.input_tokens, cut.output_tokens) == (1, 0, 0, 0)
    assert (cut.preview, cut.updated_at) == ("First", whole.updated_at + 5)
    assert ids(store) == ["1"]
    assert execute(store, TruncateMessages(session_id="c", keep=0, now=0.0))
    assert (get(store).preview, ids(store)) == (None, [])
    assert execute(store, TruncateMessages(session_id="other", keep=0, now=0.0)) is False
