from __future__ import annotations

import pytest
from attrs import evolve

from svc_proto.agent.unfinished_work import MAX_STEPS, MAX_TEXTS, UnfinishedWork
from svc_proto.schema.effects.screen_tree import ScreenTree
from svc_proto.schema.screen_node import ScreenNode

PAGES = "pages were opened or left; the screens show no other change"
UNSENT = "“Tea” still stands in “Name”: it may not have been sent or saved"


def node(text: str, *, window: str = "w0", **members: object) -> ScreenNode:
    box = (0, len(text), 90, len(text) + 5)
    return ScreenNode(node_id=f"{window}:{text}", text=text, bounds=box, view_id="com.example.app:id/x", **members)  # type: ignore[arg-type]


def button(text: str, *, window: str = "w0", selected: bool = False) -> ScreenNode:
    return node(text, window=window, class_name="Button", clickable=True, selected=selected)


def field(text: str, *, hides_text: bool = False) -> ScreenNode:
    return node(text, class_name="EditText", editable=True, hint="Name", hides_text=hides_text)


def page(heading: str, *nodes: ScreenNode) -> ScreenTree:
    return ScreenTree(package="com.example.app", nodes=(node(heading), *nodes), area=10_000)


def dialog(*labels: str, over: ScreenTree) -> ScreenTree:
    return evolve(over, nodes=(*(button(label, window="w1") for label in labels), *over.nodes))


LIST = page("List", button("Add"), node("Milk 12"))
FORM = page("Form", button("Save"), field(""))
TYPED = page("Form", button("Save"), field("Tea"))
MENU = dialog("Edit", "Delete", over=LIST)


class Play:
    """`UnfinishedWork` with the acts of a turn and the screens after them."""

    def __init__(self, first: ScreenTree) -> None:
        self.work = UnfinishedWork()
        self.now = first
        self.work.record_screen(first)

    def act(self, after: ScreenTree | None, path: str = "/tap", *, has_effect: bool = False, **given: object) -> Play:
        """Record an act and, unless `after` is None, the screen that is read after it."""
        self.work.record_act(path, given, self.now, self.now.targets(path, given), has_effect=has_effect)
        if after is not None:
            self.now = after
            self.work.record_screen(after)
        return self

    def lines(self, prompt: str = "do", answer: str = "Done.") -> tuple[str, ...]:
        return self.work.lines(prompt, answer)


def test_turn_without_acts_has_no_lines() -> None:
    assert Play(LIST).lines("add 25") == Play(LIST).act(LIST, "/wait", ms=5).lines() == ()
    assert Play(page("首页")).act(page("备忘录", node("密码是海港"))).lines("密码?", "密码是海港。") == ()
    play = Play(ScreenTree(package="game"))
    for _ in range(MAX_STEPS):
        play.act(ScreenTree(package="game"), x=1, y=1)
    play.act(ScreenTree(package="game"), x=1, y=1, has_effect=True)
    assert play.lines() == (PAGES,)


def test_text_that_still_stands_in_its_field() -> None:
    play = Play(FORM).act(TYPED, "/type", text="Tea")
    assert play.lines() == (UNSENT,)
    assert play.act(TYPED, "/press_key", key="enter").lines() == ()
    for size, shown in ((40, "a" * 40), (41, "a" * 39 + "…")):
        (line,) = Play(FORM).act(page("Form", field("a" * size)), "/type", text="a" * size).lines()
        assert line.startswith(f"“{shown}” still")
    secret = page("Form", field("****", hides_text=True))
    assert Play(secret).act(secret, "/type", text="hunter2").lines() == ()
    assert Play(LIST).act(LIST, "/type", text="Tea").lines() == ()


@pytest.mark.parametrize(
    ("after", "has_effect", "lines"),
    [
        (LIST, False, ("“Tea” was typed, and the page was left for one that shows no change",)),
        (LIST, True, ()),  # a message that was sent shows nowhere
        (page("List", button("Add"), node("Milk 12"), node("Tea")), False, ()),
        (page("Form", button("Save"), field("")), False, ()),  # the field was emptied, as a composer is
    ],
)
def test_page_that_is_left_with_a_typed_text(after: ScreenTree, has_effect: bool, lines: tuple[str, ...]) -> None:
    play = Play(LIST).act(FORM).act(TYPED, "/type", text="Tea").act(TYPED, "/type", text="Tea")
    assert play.act(after, nodeId="w0:Save", has_effect=has_effect).lines() == lines


def test_dialog_that_is_open_or_was_closed_without_a_choice() -> None:
    play = Play(LIST).act(MENU)
    assert play.lines() == ("a dialog or menu is still open: “Edit”, “Delete”",)
    closed = ("a dialog or menu was closed without a choice: “Edit”, “Delete”",)
    assert play.act(LIST, "/press_key", key="back").act(FORM).lines() == closed
    assert play.act(TYPED, "/type", text="Tea").lines() == (UNSENT,)
    assert Play(LIST).act(MENU).act(LIST, nodeId="w1:Delete").lines() == ()
    assert Play(MENU).act(None).lines() == ("a dialog or menu is still open: “Edit”, “Delete”",)


def test_keyboards_and_windows_of_others_are_no_dialogs() -> None:
    keys = node("q", window="w9", clickable=True)
    keys = evolve(keys, view_id="com.example.inputmethod:id/q")
    keyboard = ScreenTree(package="com.example.inputmethod", nodes=(keys, *LIST.nodes))
    assert Play(LIST).act(keyboard).lines() == (PAGES,)
    bar = evolve(node("12:00", window="w5"), view_id="com.example.bar:id/clock")
    assert Play(LIST).act(evolve(LIST, nodes=(*LIST.nodes, bar))).lines() == ()


def test_selection_that_is_left() -> None:
    rows = page("List", button("Milk"), button("Bread"))
    selected = page("List", button("Milk", selected=True), button("Bread"))
    assert Play(rows).act(selected, "/long_press", nodeId="w0:Milk").lines() == ("still selected: “Milk”",)
    assert Play(rows).act(selected, nodeId="w0:Milk").lines() == ()  # a tab


def test_numbers_of_the_request() -> None:
    play = Play(LIST).act(page("List", button("Add"), node("0.45")))
    assert play.lines("set 12 and 45, 3 times") == ()
    missing = ("of the request, 50, 107 was neither typed nor seen on a screen",)
    assert play.lines("set 050 and 107") == missing
    assert play.act(LIST, "/send_sms", to="050", body="x").lines("text 050") == ()
    assert [len(play.lines("x" * size + "77")) for size in (298, 299)] == [1, 0]


def test_turn_that_only_opens_pages() -> None:
    play = Play(page("Home")).act(LIST, "/open_app", package="com.example.app")
    assert [play.lines("open the list".ljust(size)) for size in (24, 25)] == [(), (PAGES,)]
    assert play.act(FORM).act(LIST).act(LIST, "/scroll", direction="down").lines() == (PAGES,)
    assert play.lines("how much?", "It is 12.") == play.lines("which?", "The Milk") == ()
    play.work.has_picture = True
    assert play.lines() == ()
    play = Play(page("Home")).act(page("List", node("cake 7")), "/open_app", package="com.example.app")
    assert [play.lines("what does the first row show?", answer) for answer in ("It is cake.", "It is 7.")] == [
        (),
        (PAGES,),
    ]


@pytest.mark.parametrize(
    "after", [page("List", button("Add"), node("Milk 13")), None], ids=["another content", "a screen that is not read"]
)
def test_change_on_a_page_is_no_loose_end(after: ScreenTree | None) -> None:
    assert Play(LIST).act(FORM).act(after).lines() == ()


def test_choice_of_a_dialog_is_a_change_until_its_page_is_left_again() -> None:
    welcome, tour = page("Welcome", button("Start")), page("Tour", button("Up"))
    play = Play(dialog("No", over=welcome)).act(tour, nodeId="w1:No")
    assert play.lines() == ()
    assert play.act(welcome, nodeId="w0:Up").lines() == (PAGES,)


def test_texts_beyond_the_limit_are_not_compared() -> None:
    many = ScreenTree(
        package="com.example.app", nodes=tuple(button(f"row {number}x") for number in range(MAX_TEXTS - 1))
    )
    play = Play(many).act(page("List", node("9999")))
    assert "of the request, 9999 was neither typed nor seen on a screen" in play.lines("set 9999")
