"""Tests of the user's own words in sentences: no word is lost, and no word of the request is added to them."""

import re
from itertools import product

import pytest

from runtimes.sentences.parser import LANGUAGES
from runtimes.sentences.suggestions import words_of
from tests.runtimes.test_sentences import EACH_LANGUAGE, FILES, PARSER

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


@pytest.mark.parametrize("code", EACH_LANGUAGE)
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
    found = PARSER.message(language, text)
    assert (found and found[0]) == message


@pytest.mark.parametrize(
    ("sentence", "is_certain"),
    [
        ("remember that the code is 12", True),
        ("remember: the code is 12", True),
        ('remember "the code is 12"', True),
        ("remember bread", True),
        ("remember the code is 12", False),
        ("remember that the code is 12, keep that for me", False),
        ("remember that the code is 12, i mean 13", False),
        ("don't forget my locker number is 212, keep that for me", False),
        ("copy good day to the clipboard", False),
        ("is the word good day on the screen", True),
        ("is a good day on the screen", False),
        ("schreib Ada, dass ich komme", False),
        ("merk dir, dass ich komme", True),
        ("merk dir: ich komme", True),
        ("note que le code est 12", True),
        ("note le code est 12, merci", False),
        ("dile a Ada que llego tarde", True),
        ("anota el código es 12", False),
        ("给Ada发短信说我晚点到了", True),
        ("记住我的车停在B2层", False),
        ("记住\uff1a我的车停在B2层", True),
    ],
)
def test_edges_of_the_own_words_are_certain_behind_a_mark_or_a_leading_word(sentence: str, is_certain: bool) -> None:
    found = PARSER.parse(sentence)
    assert found is not None
    assert (found.is_certain, found.text) == (is_certain, sentence)
