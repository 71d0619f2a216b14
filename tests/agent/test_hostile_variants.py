"""Buttons in six languages that a model wants to press.

Those with an effect, in several forms, have none when the owner denies; harmless ones lead to no question.
"""

from collections.abc import Callable, Mapping, Sequence

import pytest

from clients.phone.emulator import EmulatedPhone
from clients.phone.emulator.actions import Submit
from clients.phone.emulator.layout import App, Row, Screen, button, icon, label
from svc_proto.agent.agent_factory import AgentParts
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.phone.safety.settings import ConfirmationPolicy, SafetySettings
from tests.agent.harness import AgentHarness
from tests.support.scenario_plan import some
from tests.support.servers.model_server import Scripted, calls, plain
from tests.support.tables import read_table

ROWS = read_table("tests/agent/button_labels.tsv")  # what a label does, and the label in each language
LANGUAGES = ("en", "de", "fr", "es", "zh", "ru")
LABELS = {row["effect"]: row for row in ROWS if row["effect"]}
Form = Callable[[str], tuple[Sequence[Row], str]]  # of a label: the rows, and the text that is pressed


def pressed(text: str) -> Row:
    return button(text, "view_1", Submit("done", "page"))


FORMS: Mapping[str, Form] = {
    "button": lambda text: ((pressed(text),), text),
    "icon": lambda text: ((icon(text, "view_1", Submit("done", "page")),), text),
    "capitals": lambda text: ((pressed(text.upper()),), text.upper()),
    "signs": lambda text: ((pressed(f"✓ {text}!"),), f"✓ {text}!"),
    "invisible letters": lambda text: ((pressed(f"{text[0]}\u200b{text[1:]}"),), f"{text[0]}\u200b{text[1:]}"),
    "dialog": lambda text: ((label(f"{text}?"), pressed("OK")), "OK"),
}


def press_all(form: Form, row: Mapping[str, str]) -> tuple[AgentHarness, list[int]]:
    """Let a model press a button in each of six apps, a turn each, with an owner who denies.

    Return the world, and after each turn the number of questions so far.
    """
    apps = []
    answers: list[Scripted] = []
    for language in LANGUAGES:
        rows, target = form(row[language])
        package = f"org.x.{language}reader"
        apps.append(App(package=package, label=language, screens={"page": Screen(title="Page", rows=tuple(rows))}))
        acts = (("phone_open_app", {"package": package}), ("phone_tap_text", {"text": target, "exact": True}))
        answers += [*map(calls, acts), plain("done")]
    world = AgentHarness(relay=True)
    world.start_phone(EmulatedPhone(seed_apps=tuple(apps)), SafetySettings(armed=True, answers=ConfirmationPolicy.DENY))
    world.model.answers = answers
    counts = []

    def plan(parts: AgentParts, engine: Engine) -> Flow[None]:
        for _ in LANGUAGES:
            yield from world.turn(parts, "Read me the page.")
            counts.append(len(world.host.asked))

    world.run(plan)
    return world, counts


@pytest.mark.full
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("row", LABELS.values(), ids=LABELS)
def test_no_effect_without_the_owners_word(row: Mapping[str, str], form: Form) -> None:
    world, counts = press_all(form, row)
    assert [item.kind for item in world.backend.device.outbox] == []
    assert all(after - before <= 1 for before, after in zip([0, *counts], counts, strict=False))


@pytest.mark.unmeasured
@pytest.mark.parametrize("row", some(row for row in ROWS if not row["effect"]), ids=lambda row: row["en"])
def test_no_question_without_an_effect(row: Mapping[str, str]) -> None:
    world, _ = press_all(FORMS["button"], row)
    assert world.host.asked == []
    assert len(world.backend.device.outbox) == len(LANGUAGES)
