"""Sentences that resemble a request, in five languages: the built-in agent completes no tool call for them."""

import pytest

from clients.phone.emulator import EmulatedPhone
from clients.phone.emulator.record_apps import ALL_APPS
from runtimes.sentences import HassilParser
from svc_proto.agent.interface import TurnOutcome
from tests.agent.harness import AgentHarness

PARSER = HassilParser()
NEAR_MISSES = {
    "en": "press the issue|tap the second one|tap Send only if Bob is listed|press the button that doesn't say OK"
    "|open the last photo|open the email from Bob|open the second link|text Ada Lovelace tomorrow at 8 good luck",
    "de": "Tipp der Woche|drück Ada von mir|tippe auf Senden nur wenn Bob da steht|öffne das letzte Bild"
    "|öffne die Mail von Bob|öffne den zweiten Link|sag Bescheid|sag Ada"
    "|schreib Ada Lovelace übermorgen früh viel Glück für die Prüfung",
    "fr": "appelle celui qui m'a appelé|ouvre la dernière photo|ouvre le mail de Bob|ouvre le deuxième lien"
    "|message de Bob|passe à table|lance la balle|ouvre les yeux|appeler Ada coûte cher|appelle-moi Ismaël"
    "|écris à Ada Lovelace demain matin bonne chance",
    "es": "llama al que me llamó|abre la última imagen|abre el correo de Bob|abre el segundo enlace|ve a la cama"
    "|ve a ver a Ada|lanza la pelota|abre los ojos|llámame Ismael"
    "|escribe a Ada Lovelace mañana temprano suerte en el examen",
    "zh": "给刚才打来的人打电话|打开我写的报告|打开小明的邮件|打开第二个链接|回复好的|按规则来|点到为止|打开心扉"
    "|打开局面|发短信给Ada Lovelace明天早上祝你顺利",
}


@pytest.mark.parametrize("code", NEAR_MISSES)
def test_no_act_on_words_that_the_phone_does_not_have(code: str) -> None:
    for sentence in NEAR_MISSES[code].split("|"):
        world = AgentHarness(phone=True, backend=EmulatedPhone(seed_apps=ALL_APPS), sentences=PARSER)
        world.host.choices = ["once"] * 3
        assert world.command(sentence) == TurnOutcome()
        done = [event.call.name for event in world.host.finished if event.error is None]
        assert done == [], (sentence, world.host.text)
