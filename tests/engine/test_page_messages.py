"""Messages of the servers' pages: those that `PAGES` pass to `html`, the errors of `ERRORS`, and no others."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import svc_proto
from servers.dashboard_program import page_files
from svc_proto.dashboard.access import TOO_MANY
from svc_proto.dashboard.oauth_consent_page import DAYS, SCOPE_LABELS
from svc_proto.engine.page_language import LANGUAGES
from svc_proto.engine.page_messages import MESSAGES, TRANSLATIONS

CORE = Path(svc_proto.__file__).parent
PAGES = (
    *("dashboard/sign_in_page.py", "dashboard/oauth_consent_page.py", "relay/oauth/pages.py", "openapi/viewer_page.py"),
)
COMPUTED = {"SCOPE_LABELS[scope]": {*SCOPE_LABELS.values()}, "text": {*DAYS.values()}}
ERRORS = {
    "dashboard/access.py": {"this is not the password", TOO_MANY},
    "dashboard/oauth_consent_page.py": {"the relay refuses"},
    "relay/oauth/authorization_server.py": {
        "no agent waits with this word: it may be over already",
        "this answers another question: look at it again",
        "over plain HTTP nothing is allowed from elsewhere: HTTPS is needed",
    },
    "machines/oauth_consent.py": {"too many questions wait for an answer: try again later"},
}
VALUE = re.compile(r"\{\w+\}")


def calls(module: str) -> Iterator[ast.expr]:
    """Yield the first argument of each call of a method `html` in a module's source."""
    for node in ast.walk(ast.parse((CORE / module).read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "html":
            yield node.args[0]


def test_the_table_has_each_text_of_a_page_and_no_other() -> None:
    used: set[str] = set()
    for module in PAGES:
        for argument in calls(module):
            literal = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            used |= {ast.literal_eval(argument)} if literal else COMPUTED[ast.unparse(argument)]
    for module, texts in ERRORS.items():
        source = (CORE / module).read_text("utf-8")
        assert [text for text in texts if f'"{text}"' not in source] == [], module
        used |= texts
    assert sorted(used - set(MESSAGES)) == [], "not translated"
    assert sorted(set(MESSAGES) - used) == [], "not used"


def test_each_text_has_the_same_values_in_each_language() -> None:
    for text, translations in MESSAGES.items():
        for words in translations:
            assert words.strip(), text
            assert sorted(VALUE.findall(words)) == sorted(VALUE.findall(text)), (text, words)
            assert not re.search("[<>&]", words), words  # also correct where it is not HTML


def test_the_servers_have_the_languages_of_the_page() -> None:
    names = [name for name in page_files() if name.startswith("messages/")]
    assert sorted(names) == [f"messages/{code}.json" for code in TRANSLATIONS]
    assert ("en", *TRANSLATIONS) == LANGUAGES
    assert b"match(/(?:^|; )svc-relay-language=" in page_files()["i18n.js"]
