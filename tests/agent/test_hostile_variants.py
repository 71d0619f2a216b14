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
from tests.support.servers.model_server import Scripted, calls, plain

LANGUAGES = ("en", "de", "fr", "es", "zh", "ru")
LABELS: Mapping[str, Sequence[str]] = {
    "call": ("Call", "Anrufen", "Appeler", "Llamar", "拨打", "Позвонить"),
    "message": ("Send", "Senden", "Envoyer", "Enviar", "发送", "Отправить"),
    "purchase": ("Buy now", "Jetzt kaufen", "Acheter", "Comprar", "立即购买", "Купить"),
    "payment": ("Pay", "Bezahlen", "Payer", "Pagar", "支付", "Оплатить"),
    "update": (
        "Update Reader",
        "Reader aktualisieren",
        "Mettre à jour Reader",
        "Actualizar Reader",
        "更新 Reader",
        "Обновить Reader",
    ),
    "installation": ("Install", "Installieren", "Installer", "Instalar", "安装", "Установить"),
    "permission": ("Allow", "Zulassen", "Autoriser", "Permitir", "允许", "Разрешить"),
    "deletion": ("Delete", "Löschen", "Supprimer", "Eliminar", "删除", "Удалить"),
    "account": ("Log out", "Abmelden", "Se déconnecter", "Cerrar sesión", "退出登录", "Выйти"),
    "publication": ("Publish", "Veröffentlichen", "Publier", "Publicar", "发布", "Опубликовать"),
}
HARMLESS: Sequence[Sequence[str]] = (
    ("Back", "Zurück", "Retour", "Atrás", "返回", "Назад"),
    ("Cancel", "Abbrechen", "Annuler", "Cancelar", "取消", "Отмена"),
    ("Close", "Schließen", "Fermer", "Cerrar", "关闭", "Закрыть"),
    ("Search", "Suchen", "Rechercher", "Buscar", "搜索", "Поиск"),
    ("More", "Mehr", "Plus", "Más", "更多", "Ещё"),
    ("Details", "Einzelheiten", "Détails", "Detalles", "详情", "Подробнее"),
    ("Play", "Abspielen", "Lire", "Reproducir", "播放", "Воспроизвести"),
    ("Next", "Weiter", "Suivant", "Siguiente", "下一步", "Далее"),
    ("Edit", "Bearbeiten", "Modifier", "Editar", "编辑", "Изменить"),
    ("Refresh", "Aktualisieren", "Actualiser", "Actualizar", "刷新", "Обновить"),
)
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


def press_all(form: Form, labels: Sequence[str]) -> tuple[AgentHarness, list[int]]:
    """Let a model press a button in each of six apps, a turn each, with an owner who denies.

    Return the world, and after each turn the number of questions so far.
    """
    apps = []
    answers: list[Scripted] = []
    for language, text in zip(LANGUAGES, labels, strict=True):
        rows, target = form(text)
        package = f"org.x.{language}reader"
        apps.append(App(package=package, label=language, screens={"page": Screen(title="Page", rows=tuple(rows))}))
        acts = (("phone_open_app", {"package": package}), ("phone_tap_text", {"text": target, "exact": True}))
        answers += [*map(calls, acts), plain("done")]
    world = AgentHarness(relay=True)
    world.start_phone(EmulatedPhone(seed_apps=tuple(apps)), SafetySettings(armed=True, answers=ConfirmationPolicy.DENY))
    world.model.answers = answers
    counts = []

    def plan(parts: AgentParts, engine: Engine) -> Flow[None]:
        for _ in labels:
            yield from world.turn(parts, "Read me the page.")
            counts.append(len(world.host.asked))

    world.run(plan)
    return world, counts


@pytest.mark.full
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_no_effect_without_the_owners_word(labels: Sequence[str], form: Form) -> None:
    world, counts = press_all(form, labels)
    assert [item.kind for item in world.backend.device.outbox] == []
    assert all(after - before <= 1 for before, after in zip([0, *counts], counts, strict=False))


@pytest.mark.parametrize("labels", HARMLESS, ids=[labels[0] for labels in HARMLESS])
def test_no_question_without_an_effect(labels: Sequence[str]) -> None:
    world, _ = press_all(FORMS["button"], labels)
    assert world.host.asked == []
    assert len(world.backend.device.outbox) == len(labels)
