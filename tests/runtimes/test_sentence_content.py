"""Tests of the user's own words in sentences: no word is lost, and no word of the request is added to them."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
import yaml

from runtimes.sentences import HassilParser
from runtimes.sentences.parser import LANGUAGES
from runtimes.sentences.suggestions import words_of
from svc_proto.agent.sentences import SentenceIntent

PARSER = HassilParser()
FOLDER = Path("runtimes/sentences")
FILES = {code: yaml.load((FOLDER / f"{code}.yaml").read_text("utf-8"), yaml.BaseLoader) for code in LANGUAGES}
INTENTS = ("send_text", "remember", "type", "clipboard_write", "web_search", "find_text")
SLOT = re.compile(r"{(message|rest|text|query)}")
# Words of the templates behind the own words: particles of verbs, and names of the target.
BEHIND = {
    "en": "a an any anywhere at browser box by can clipboard contents field find for form from google have in input"
    " internet into message my net of on onto online out page phone quick saying screen search bar sms somewhere the"
    " text that this to web with yet display here mobile device cell smartphone handset it name via line note msg shown"
    " visible written",
    "de": "an auf bei bildschirm box das dem den der die diesem diese dieser display ein eingeben eintippen eine feld"
    " google googeln googlen gucken heraus herein hin hinein im in ins internet irgendwo kopieren legen meine meinem"
    " nach nachricht nachschauen nachsehen ne netz online packen per raus recherchieren rein schauen schreiben screen"
    " seite sms suchen suchfeld textfeld textnachricht tun web zwischenablage",
    "fr": "barre case cette champ dans de en google internet l le la les ligne ma mon net navigateur page papiers part"
    " presse quelque recherche sur texte web zone a à écran affiche affiché apparaît est figure s se trouve écrit",
    "es": "al alguna algún barra buscador búsqueda campo casilla cuadro de el en esta google internet la lado línea"
    " mi navegador pantalla parte página por portapapeles red texto un web",
    "zh": "两三几个字词样这吗在网上查复制到放进拷贝剪贴板发短信息条消",
}
STEMS = {
    "en": "text Ada that {}|send Ada a message saying {}|remember that {}|note to self: {}|type {}|look up {}"
    "|search the web for {}|copy {} to the clipboard",
    "de": "schreib Ada, dass {}|sag Ada Bescheid, dass {}|merk dir, dass {}|gib {} ein|such im Internet nach {}"
    "|google mal {}|kopiere {} in die Zwischenablage",
    "fr": "écris à Ada que {}|note que {}|saisis {}|cherche sur internet {}|envoie un SMS à Ada pour dire que {}"
    "|copie {} dans le presse-papiers",
    "es": "dile a Ada que {}|apunta que {}|escribe {}|busca en internet {}|busca {}|copia {} al portapapeles",
    "zh": "给Ada发短信说{}|记住{}|输入{}|上网搜索{}|查一下{}|搜一下{}|把{}复制到剪贴板",
}
EDGES = {  # words at the edges of the own words, which templates and skipped words have too
    "en": "how where what the online now again really quick on to my okra",
    "de": "wie wo was der jetzt schnell im zu mein noch Okra",
    "fr": "comment où quoi ligne maintenant encore vite dans sur mon okra",
    "es": "cómo dónde qué línea ahora otra ya en mi okra",
    "zh": "怎么 哪里 什么 网上 现在 再 快 怎么做 怎么走 多少 秋葵",
}


@pytest.mark.parametrize("code", LANGUAGES)
def test_behind_the_own_words_templates_have_only_particles_and_targets(code: str) -> None:
    allowed = words_of(" ".join(BEHIND[code].split())) if code != "zh" else set(BEHIND[code])
    for intent in INTENTS:
        for row in FILES[code]["sentences"][intent]:
            *_, last = SLOT.split(row) if SLOT.search(row) else ("",)
            literal = re.sub(r"{\w+}|<\w+>", " ", last)
            found = set(re.findall(r"[^\W_]", literal)) if code == "zh" else words_of(literal.replace("-", " "))
            assert found <= allowed, (row, found - allowed)


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_word_of_the_own_words_is_lost(code: str, full: bool) -> None:
    glue = "" if code == "zh" else " "
    words = EDGES[code].split()
    pairs = [(first, last) for place, (first, last) in enumerate(product(words, words)) if full or not place % 7]
    lost: dict[str, dict[str, str]] = {}
    for stem in STEMS[code].split("|"):
        for first, last in pairs:
            own = glue.join((first, "斑马" if code == "zh" else "zebra", last))
            found = PARSER.parse(stem.format(own))
            if found is not None and not any(own in value for value in found.slots.values()):
                lost[stem.format(own)] = dict(found.slots)
    assert lost == {}


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("dile a Ada q llego tarde", "llego tarde"),
        ("mándale un mensaje a Ada diciendo q ya salí", "ya salí"),
        ("escríbele a Ada k estoy abajo", "estoy abajo"),
        ("écris à Ada ke j'arrive", "j'arrive"),
        ("dis à Ada k le train est là", "le train est là"),
        ("schreib Ada das ich später komme", "das ich später komme"),
        ("schreib an Ada, dass ich erst um acht da bin", "dass ich erst um acht da bin"),
        ("sag Ada Bescheid, dass der Zug voll ist", "dass der Zug voll ist"),
        ("dile a Ada que me llame", "que me llame"),
        ("dis à Ada qu'il m'appelle", "qu'il m'appelle"),
        ("text Ada tht I am late", "I am late"),
        ("text Ada that was great", "that was great"),
        ("escríbele a Ada que tal estás", "que tal estás"),
        ("发消息给Ada\uff1a明天见", "明天见"),
        ("发消息给Ada: 明天见", "明天见"),
        ("给Ada发短信说\uff1a明天见", "明天见"),
    ],
)
def test_conjunction_is_no_part_of_a_message(sentence: str, message: str) -> None:
    found = PARSER.parse(sentence)
    assert found is not None
    assert found.slots == {"name": "Ada", "message": message}


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("anota q hay que comprar pan", "hay que comprar pan"),
        ("merk dir das ich Tee mag", "das ich Tee mag"),
        ("note k le code est 12", "le code est 12"),
        ("写个备忘\uff1a周五交房租", "周五交房租"),
        ("查一下饺子怎么包", "饺子怎么包"),
        ("查一下火车站怎么走", "火车站怎么走"),
        ("look up where to buy shoes online", "where to buy shoes online"),
        ("such im Internet nach Schuhe kaufen online", "Schuhe kaufen online"),
        ("google danke auf japanisch", "danke auf japanisch"),
        ("google please how to tie a tie, thanks", "how to tie a tie"),
    ],
)
def test_notes_and_searches_are_whole(sentence: str, text: str) -> None:
    found = PARSER.parse(sentence)
    assert found is not None
    assert list(found.slots.values()) == [text]


@pytest.mark.parametrize(
    "sentence",
    [
        "dile a Ada qué hora es",
        "escribe que llego tarde",
        "schreib dass ich komme",
        "type that I am late",
        "type the cat is in the box",
        "写个故事",
        "google it",
        "search for how to say thanks",
        "write hello in the second field please",
        "type my name",
        "gib mal Hallo ein",
        "avisa a Ada de mi retraso",
        "给Ada发个消息提醒她带伞",
        "copy it to the clipboard",
        "type in the big box hello",
        "write hello in the address line",
        "escribe hola en el segundo campo",
        "tape bonjour dans le champ du haut",
        "schreib Otto in die obere Zeile",
        "tippe Hallo in dieses Feld",
        'tippe "Hallo" in dieses Feld',
        "在标题栏里输入你好",
        "open the url example.org slash news",
    ],
)
def test_own_words_with_an_uncertain_edge_are_not_performed(sentence: str) -> None:
    assert PARSER.parse(sentence) is None


@pytest.mark.parametrize(
    ("language", "text", "message"),
    [
        ("en", "to bring milk", None),
        ("en", "that I am late", "I am late"),
        ("de", "ob du kommst", None),
        ("en", "asking whether he is home", None),
        ("es", "k kieres", None),
        ("de", "dass", None),
        ("de", "dass ich komme", "dass ich komme"),
        ("fr", "de venir", None),
        ("es", "que llego tarde", "llego tarde"),
        ("zh", "一声我到了", None),
        ("en", "tomorrow at 8 good luck", None),
        ("en", "that tomorrow is off", "tomorrow is off"),
        ("en", "good luck for tomorrow", "good luck for tomorrow"),
        ("de", "übermorgen früh viel Glück für die Prüfung", None),
        ("de", "viel Glück für übermorgen", "viel Glück für übermorgen"),
        ("de", "bitte morgen früh viel Glück", None),
        ("de", "guten Morgen", "guten Morgen"),
        ("fr", "demain matin bonne chance", None),
        ("fr", "un message demain matin bonne chance", None),
        ("es", "mañana temprano suerte", None),
        ("es", "a las 8 suerte en el examen", None),
        ("zh", "明天早上祝你顺利", None),
        ("zh", "晚点到", "晚点到"),
    ],
)
def test_edges_of_a_message(language: str, text: str, message: str | None) -> None:
    assert PARSER.message(language, text) == message


@pytest.mark.parametrize(
    ("sentence", "text"),
    [("kannst du da bitte auf Anmelden tippen", "Anmelden"), ("tap there on Sign in", "Sign in")],
)
def test_fillers_are_no_part_of_a_label(sentence: str, text: str) -> None:
    found = PARSER.parse(sentence)
    assert found is not None
    assert found.slots["text"] == text


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("type see you at the gate into that box", "see you at the gate"),
        ("type into this field see you", "see you"),
        ('enter "see you" into that box', "see you"),
        ("type see you at the bar", "see you at the bar"),
        ("escribe en el recuadro calle Mayor 14", "calle Mayor 14"),
        ("mete hola en esa casilla", "hola"),
        ("écris dans ce champ bonjour", "bonjour"),
        ("saisis bonjour dans cette case", "bonjour"),
        ("tipp in dieses Feld Bahnhofstraße 12 ein", "Bahnhofstraße 12"),
        ("gib Hallo in das Suchfeld ein", "Hallo"),
        ("往那个框里写明天见", "明天见"),
    ],
)
def test_words_for_a_field_are_no_part_of_typed_text(sentence: str, text: str) -> None:
    found = PARSER.parse(sentence)
    assert found is not None
    assert (found.intent, found.slots) == (SentenceIntent.TYPE, {"text": text})


@pytest.mark.parametrize(
    ("sentence", "url"),
    [
        ("打开bilibili.com这个网址", "https://bilibili.com"),
        ("打开zhihu.com这个网站", "https://zhihu.com"),
        ("打开这个网页 zhihu.com/hot", "https://zhihu.com/hot"),
        ("open the link example.org/news", "https://example.org/news"),
        ("open example.org the website", "https://example.org"),
        ("öffne tagesschau.de die Seite", "https://tagesschau.de"),
        ("ouvre l'adresse lemonde.fr", "https://lemonde.fr"),
        ("abre este enlace marca.com", "https://marca.com"),
    ],
)
def test_words_that_call_it_an_address_are_no_part_of_an_address(sentence: str, url: str) -> None:
    found = PARSER.parse(sentence)
    assert found is not None
    assert (found.intent, found.slots) == (SentenceIntent.OPEN_URL, {"url": url})


@pytest.mark.parametrize(
    ("sentence", "slots"),
    [
        (
            "mándale a Dani sube el volumen que no te oigo",
            {"name": "Dani sube el volumen", "message": "no te oigo", "rest": "Dani sube el volumen que no te oigo"},
        ),
        ("告诉小李妈妈说我到了?", {"name": "小李妈妈", "message": "我到了?", "rest": "小李妈妈说我到了?"}),
        (
            "schreib Lena mach lauter, dass ich dich höre",
            {
                "name": "Lena mach lauter",
                "message": "dass ich dich höre",
                "rest": "Lena mach lauter, dass ich dich höre",
            },
        ),
        ("dile a Dani que llego tarde", {"name": "Dani", "message": "llego tarde"}),
        ("给小明发短信说我到了", {"name": "小明", "message": "我到了"}),
    ],
)
def test_conjunction_behind_several_words_can_belong_to_the_message(sentence: str, slots: dict[str, str]) -> None:
    found = PARSER.parse(sentence)
    assert found is not None
    assert found.slots == slots
