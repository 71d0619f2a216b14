import re
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from clients.phone.emulator import EmulatedPhone
from clients.phone.emulator.environment import Contact, PhoneNumber
from clients.phone.emulator.record_apps import ALL_APPS
from svc_proto.agent.builtin_agent import GREETING
from svc_proto.agent.interface import TurnOutcome
from svc_proto.agent.phone_consent import StatusSource
from svc_proto.agent.sentence_actions import SentenceActions
from svc_proto.agent.sentences import Sentence, SentenceIntent
from svc_proto.agent.tools.phone_touches import NOTHING
from svc_proto.schema.json_object import JsonObject
from tests.agent.harness import AgentHarness
from tests.support.playbook import make_flow, run_flow

ALARM, SETTINGS = "android.intent.extra.alarm.", "com.android.settings"
WORDS = {
    "wifi": ("wi-fi",),
    "airplane": ("airplane mode",),
    "mail": ("mail", "post"),
    "hotspot": ("hotspot",),
    "flashlight": ("flashlight",),
    "camera": ("camera",),
    "bar_volume": ("media volume",),
    "bar_brightness": ("brightness",),
}


class ScriptedParser:
    """Parser of scripted sentences: `open_app | app=Mail` is the intent `open_app` with a slot `app`.

    The edges of the words of a sentence with the slot `unsure` are not certain.
    """

    def parse(self, text: str) -> Sentence | None:
        name, *slots = text.removeprefix("~").split(" | ")
        if name not in [intent.value for intent in SentenceIntent]:
            return None
        found = dict(slot.split("=", 1) for slot in slots)
        is_certain = found.pop("unsure", "") == ""
        return Sentence(SentenceIntent(name), "xx", found, text, is_certain)

    def nearest(self, text: str) -> tuple[str, tuple[str, ...]]:
        return "xx", ("back", "home")

    def head(self, language: str, text: str) -> str:
        return "nearest"

    def examples(self, language: str) -> tuple[str, ...]:
        return ("one", "two")

    def reply(self, language: str, key: str, **values: str) -> str:
        return " ".join((key, *values.values()))

    def words(self, key: str) -> tuple[str, ...]:
        return WORDS.get(key, ())

    def label(self, language: str, key: str) -> str:
        return self.words(key)[0]

    def message(self, language: str, text: str) -> tuple[str, bool] | None:
        return None if text.startswith("to ") else (text.removeprefix("that "), text.startswith("that "))

    def kinds_of(self, text: str) -> tuple[str, ...]:
        return ("mail",) if text == "Courrier" else ()


@pytest.fixture
def world() -> AgentHarness:
    return AgentHarness(phone=True, sentences=ScriptedParser())


def say(world: AgentHarness, text: str, *choices: str) -> str:
    """Return the answer to a sentence; `choices` answer the approval requests."""
    world.host.events.clear()
    world.host.choices = list(choices)
    assert world.command(text) == TurnOutcome()
    return world.host.text


Call = Callable[[str, Mapping[str, object]], str]


def run_sentence(phone: object, call: Call, intent: SentenceIntent, **slots: str) -> str:
    """Return the answer to a sentence whose tool calls return the results of `call`."""
    actions = SentenceActions(cast("StatusSource", phone), ScriptedParser())
    run = lambda name, arguments: make_flow(call(name, arguments))  # noqa: E731 - one of many arguments
    return run_flow(actions.run(Sentence(intent, "xx", slots), run, lambda name, result: result))


def calls(world: AgentHarness) -> list[tuple[str, Mapping[str, object]]]:
    return [(event.call.name, event.call.args) for event in world.host.finished]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("gibberish", "nearest\n- back\n- home"),
        ("~help", "help\n- one\n- two"),
        ("greeting", GREETING),
        ("tools", "These tools are there:"),
        ("~tools", "These tools are there:"),
        ("memory", "memory (0%"),
        ("~memory", "memory (0%"),
        ("stop", "nothing_runs"),
    ],
)
def test_sentences_that_need_no_phone(text: str, answer: str) -> None:
    world = AgentHarness(sentences=ScriptedParser())
    assert say(world, text).startswith(answer)
    assert not calls(world)


@pytest.mark.parametrize(
    ("text", "answer", "name", "arguments"),
    [
        ("back", "done", "phone_press_key", {"key": "back"}),
        ("enter", "done", "phone_press_key", {"key": "enter"}),
        ("find_text | query=Mail", "", "phone_find_nodes", {"text": "Mail"}),
        ("scroll | direction=down", "", "phone_scroll", {"direction": "down"}),
        ("type | text=Hello", "", "phone_type", {"text": "Hello"}),
        ("screenshot", "", "phone_screenshot", {}),
        ("remember | text=Likes tea", "", "memory", {"action": "add", "target": "memory", "content": "Likes tea"}),
        ("tap | text=Mail now | short=Mail", "done", "phone_tap_text", {"text": "Mail"}),
        ("tap | text=Mail | short=Settings", "done", "phone_tap_text", {"text": "Mail"}),
        ("tap | text=mai", "done", "phone_tap_text", {"text": "Mail"}),
        ("tap | text=Mail | long=Mail button", "done", "phone_tap_text", {"text": "Mail"}),
        ("photo", "photo Camera", "phone_open_app", {"package": "com.example.camera"}),
        ("call | name=+1 555 0177", "done", "phone_call", {"number": "+1 555 0177"}),
        ("call | name=555-0177", "done", "phone_call", {"number": "555-0177"}),
    ],
)
def test_one_call(world: AgentHarness, text: str, answer: str, name: str, arguments: Mapping[str, object]) -> None:
    assert say(world, text, "once").startswith(answer)
    assert calls(world) == [(name, arguments)]


def test_results_and_failures_are_answered(world: AgentHarness) -> None:
    assert "MEDIA:" in say(world, "screenshot")
    assert say(world, "home") == "done"
    assert say(world, "tap | text=Nowhere of it | short=Nowhere") == "no_text Nowhere\n- back\n- home"
    assert say(world, "current_app").startswith("`phone_current_app` answered:")
    assert say(world, "open_app | app=Mail now | short=Mail") == "opened Mail"
    assert say(world, "open_app | app=Zed now | short=Zed").strip() == "no_app Zed"
    assert say(world, "battery") == "battery 64"
    assert say(AgentHarness(relay=True, sentences=ScriptedParser()), "battery") == "no_battery"
    empty = SimpleNamespace(phone_status=lambda _: make_flow(JsonObject(device={"battery_percent": 0})))
    assert run_sentence(empty, lambda name, arguments: "", SentenceIntent.BATTERY) == "battery 0"
    assert re.fullmatch(r"time \d\d:\d\d", say(world, "time"))
    assert re.fullmatch(r"date day_[0-6] \d{4}-\d\d-\d\d", say(world, "date"))


@pytest.mark.parametrize(
    ("name", "package"),
    [("Mail", "mail"), ("mail", "mail"), ("Courrier", "mail"), ("Sett", "settings"), (SETTINGS, SETTINGS)],
)
def test_app_is_opened_by_its_label_its_kind_or_a_part(world: AgentHarness, name: str, package: str) -> None:
    assert say(world, f"open_app | app={name}").startswith("opened ")
    ((tool, arguments),) = calls(world)
    assert (tool, package in str(arguments["package"])) == ("phone_open_app", True)


def test_app_that_is_unknown_or_ambiguous_is_not_opened(world: AgentHarness) -> None:
    assert say(world, "open_app | app=Nothing").startswith("no_app Nothing")
    assert say(world, "open_app | app=Mailx") == "near_app Mailx Mail"
    assert say(world, "open_app | app=ma").startswith("which_app ma ")
    assert say(world, "open_app | app=m").startswith("no_app m")
    assert say(world, "open_app | app=ai").startswith("no_app ai")  # a part of "Mail", but not of its start
    assert not calls(world)
    assert say(world, "tap | text=b").startswith("which_text b ")
    assert not calls(world)
    assert world.command("back", max_calls=1) == TurnOutcome(finish="length")
    assert not calls(world)
    assert world.command("back", max_calls=2) == TurnOutcome()


@pytest.mark.parametrize(
    "text", ["send_text | name=ada | message=I am late", "send_text | rest=Ada Lovelace: I am late"]
)
def test_text_message_asks_for_approval(world: AgentHarness, text: str) -> None:
    assert say(world, text, "once") == "done"
    ((name, arguments),) = calls(world)
    assert (name, arguments["body"]) == ("phone_send_sms", "I am late")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("send_text | rest=Ada", "no_message Ada"),
        ("send_text", "no_message Ada"),
        ("send_text | rest=Zed I am late", "no_contact Zed"),
        ("send_text | name=Zed | message=Hi", "no_contact Zed"),
        ("call | name=Known", "no_contact Known"),
        ("call | name=b", "no_contact b"),
        ("find_contact | name=Zed", "no_contact Zed"),
        ("find_contact | name=bo", "Bo Peep: +15550102"),
    ],
)
def test_no_act_without_one_contact_and_a_message(world: AgentHarness, text: str, answer: str) -> None:
    assert say(world, text).strip() == answer
    assert not calls(world)


def test_contact_that_is_ambiguous_is_asked_for() -> None:
    backend = EmulatedPhone()
    phones = (PhoneNumber("+15550199"),)
    backend.device.contacts = tuple(Contact(n, name, phones) for n, name in enumerate(("Ada A", "Ada B", "Ada")))
    world = AgentHarness(phone=True, backend=backend, sentences=ScriptedParser())
    assert say(world, "call | name=ada", "once") == "done"  # the whole name of one
    backend.device.contacts = backend.device.contacts[:2]
    assert say(world, "call | name=ada") == "which_contact ada Ada A, Ada B"
    backend.device.contacts = (Contact(1, "\u5f20\u4e09", phones),)
    assert say(world, "send_text | rest=\u5f20\u4e09\u6211\u8fdf\u5230\u4e86", "once") == "done"
    assert calls(world)[-1][1]["body"] == "\u6211\u8fdf\u5230\u4e86"
    assert say(world, "call | name=\u4e09", "once") == "done"
    backend.device.contacts = (Contact(1, "\u00c9mile Zola", phones),)
    assert say(world, "call | name=\u00e9mile", "once") == "done"
    world = _with_contacts("Grace Hopper")
    assert say(world, "send_text | rest=Grace Hopper\u4f1a\u8bae\u6539\u671f\u4e86", "once") == "done"
    assert calls(world)[-1][1]["body"] == "\u4f1a\u8bae\u6539\u671f\u4e86"


def test_text_to_a_number(world: AgentHarness) -> None:
    assert say(world, "send_text | rest=5550177 I am late", "once") == "done"
    asked = ("ask_user", {"question": "confirm_message 5550177 I am late"})
    assert calls(world) == [asked, ("phone_send_sms", {"to": "5550177", "body": "I am late"})]


@pytest.mark.parametrize(
    ("rest", "body"),
    [("Ada that I am late", "I am late"), ("Ada: to the harbour", "to the harbour"), ("Ada, yes", "yes")],
)
def test_message_behind_a_name_has_certain_edges(world: AgentHarness, rest: str, body: str) -> None:
    assert say(world, f"send_text | rest={rest}", "once") == "done"
    assert calls(world)[-1][1]["body"] == body
    assert (calls(world)[0][0] == "ask_user") is ("," in rest)
    assert say(world, "send_text | rest=Ada to come here") == "no_message Ada"


@pytest.mark.parametrize(
    ("text", "action", "more", "answer"),
    [
        ("timer | seconds=5405", "SET_TIMER", {"extras": {ALARM + "LENGTH": 5405}}, "asked_clock 1 h 30 min 5 s"),
        ("alarm | time=07:05", "SET_ALARM", {"extras": {ALARM + "HOUR": 7, ALARM + "MINUTES": 5}}, "asked_clock 07:05"),
        ("open_url | url=https://a.de", "VIEW", {"data": "https://a.de"}, "page_shown https://a.de"),
        ("web_search | query=tea", "WEB_SEARCH", {"extras": {"query": "tea"}}, "asked_search tea"),
        ("navigate | destination=Ü & Bar", "VIEW", {"data": "geo:0,0?q=%C3%9C%20%26%20Bar"}, "asked_maps Ü & Bar"),
    ],
)
def test_intent_is_sent_with_consent(text: str, action: str, more: Mapping[str, object], answer: str) -> None:
    world = AgentHarness(phone=True, backend=EmulatedPhone(seed_apps=ALL_APPS), sentences=ScriptedParser())
    assert say(world, text).startswith("failed ")
    assert say(world, text, "once") == answer
    assert calls(world) == [("phone_send_intent", {"action": f"android.intent.action.{action}", **more})]


@pytest.mark.parametrize(
    ("results", "answer", "calls"),
    [
        (["{}", "{}", NOTHING], "scrolled_end 2", 3),
        (["{}", "error: denied\nadvice for a model"], "failed denied", 2),
        (["{}"] * 30, "scrolled_on 20", 20),
    ],
)
def test_scroll_to_the_end_stops_where_nothing_moves(results: list[str], answer: str, calls: int) -> None:
    tools = []

    def call(name: str, arguments: Mapping[str, object]) -> str:
        tools.append((name, arguments))
        return results[len(tools) - 1]

    assert run_sentence(None, call, SentenceIntent.SCROLL, direction="down", extent="end") == answer
    assert tools == [("phone_scroll", {"direction": "down"})] * calls


def _with_contacts(*names: str) -> AgentHarness:
    backend = EmulatedPhone()
    numbers = [(PhoneNumber(f"+1555{place:04}"),) for place in range(len(names))]
    backend.device.contacts = tuple(map(Contact, range(len(names)), names, numbers))
    return AgentHarness(phone=True, backend=backend, sentences=ScriptedParser())


@pytest.mark.parametrize(
    ("text", "name", "question"),
    [
        ("remember | text=I like tea | unsure=yes", "memory", "confirm I like tea"),
        ("type | text=Good day | unsure=yes", "phone_type", "confirm Good day"),
        ("clipboard_write | text=Good day | unsure=yes", "phone_clipboard_write", "confirm Good day"),
        ("find_text | query=Good day | unsure=yes", "phone_find_nodes", "confirm Good day"),
        ("send_text | name=ada | message=Hi | unsure=yes", "phone_send_sms", "confirm_message Ada Lovelace Hi"),
    ],
)
def test_owner_confirms_words_whose_edges_are_not_certain(
    world: AgentHarness, text: str, name: str, question: str
) -> None:
    asked = ("ask_user", {"question": question})
    assert say(world, text) == "not_confirmed"
    assert calls(world) == [asked]
    say(world, text, "once", "once")
    first, (tool, _) = calls(world)
    assert (first, tool) == (asked, name)


def test_owner_confirms_the_only_contact_with_the_last_word_of_a_name() -> None:
    world = _with_contacts("Theo", "Ann A", "Ann B")
    asked = ("ask_user", {"question": "confirm_contact brother Theo Theo"})
    assert say(world, "call | name=brother Theo", "once", "once") == "done"
    assert calls(world) == [asked, ("phone_call", {"number": "+15550000"})]
    assert say(world, "call | name=brother Theo") == "near_contact brother Theo Theo"
    assert calls(world) == [asked]
    assert say(world, "call | name=Theo pays") == "near_contact Theo pays Theo"
    assert calls(world) == []
    assert say(world, "call | name=aunt Ann") == "near_contact aunt Ann Ann A, Ann B"
    assert calls(world) == []
    assert say(world, "find_contact | name=brother Theo") == "Theo: +15550000"


@pytest.mark.parametrize(
    ("contacts", "text", "question"),
    [
        (("Will", "Will Smith"), "rest=Will Smith is here", "Will Smith is here"),
        (("Will", "Will Smith"), "rest=Will Jones is here", "Will Jones is here"),
        (("Will Smith",), "rest=Will come: at six", "Will Smith come: at six"),
        (("Ada",), "rest=Ada I am OK", "Ada I am OK"),
        (("Ana",), "name=Ana sol | message=I sing | rest=Ana sol that I sing", "Ana sol that I sing"),
        (("\u5988\u5988",), "rest=\u5988\u5988\u522b\u7b49\u6211", "\u5988\u5988 \u522b\u7b49\u6211"),
    ],
)
def test_recipient_is_the_longest_start_that_is_a_contact(contacts: tuple[str, ...], text: str, question: str) -> None:
    world = _with_contacts(*contacts)
    assert say(world, f"send_text | {text}") == "not_confirmed"
    assert calls(world) == [("ask_user", {"question": f"confirm_message {question}"})]


@pytest.mark.parametrize(
    ("contacts", "text", "body"),
    [
        (("Ana Sol", "Ana"), "name=Ana Sol | message=I sing | rest=Ana Sol that I sing", "I sing"),
        (("Will", "Will Smith"), "rest=Will: Smith is here", "Smith is here"),
    ],
)
def test_message_with_certain_edges_needs_no_question(contacts: tuple[str, ...], text: str, body: str) -> None:
    world = _with_contacts(*contacts)
    assert say(world, f"send_text | {text}", "once") == "done"
    assert calls(world) == [("phone_send_sms", {"to": "+15550000", "body": body})]
