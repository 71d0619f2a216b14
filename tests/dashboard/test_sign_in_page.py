from urllib.parse import quote, urlencode

import pytest

from svc_proto.dashboard.sign_in_page import MAX_NEXT
from svc_proto.engine.page_language import LANGUAGES, PageTexts
from tests.dashboard.app_client import PASSWORD, AppClient, AppHarness, token_of
from tests.support.http_codec import Response
from tests.support.playbook import REMOTE

BROWSER = [(b"accept", b"text/html,application/xhtml+xml")]


def place(answer: Response) -> str:
    assert answer.status == 303, answer
    return (answer.headers.get(b"location") or b"").decode()


def send(book: AppHarness, password: str = PASSWORD, **form: str) -> Response:
    """Send the form, as a browser does."""
    headers = [*BROWSER, (b"origin", b"http://" + book.host_name)]
    body = urlencode({"password": password, **form}).encode()
    return book.request("POST", "/login", body, headers=headers, peer=REMOTE)


def test_a_browser_is_led_to_the_form_and_back() -> None:
    book = AppHarness()
    form = place(book.request("GET", "/allow?code=X", headers=BROWSER, peer=REMOTE))
    assert form == "/login?next=%2Fallow%3Fcode%3DX"
    page = book.request("GET", form, peer=REMOTE)
    assert b'value="/allow?code=X"' in page.body
    assert b"form-action 'self'" in (page.headers.get(b"content-security-policy") or b"")
    answer = send(book, next="/allow?code=X")
    assert place(answer) == "/allow?code=X"
    browser = AppClient(book, token_of(answer))
    assert browser.request("GET", "/").status == 200
    assert place(browser.request("GET", "/login")) == "/"


@pytest.mark.parametrize("path", ["/api/sessions", "/"])
def test_programs_get_a_challenge(path: str) -> None:
    book = AppHarness()
    refused = book.request("GET", path, peer=REMOTE)
    assert refused.status == 401
    assert (refused.headers.get(b"www-authenticate") or b"").startswith(b"Basic")
    assert book.request("POST", "/api/qr", b"x", headers=BROWSER, peer=REMOTE).status == 401


def test_the_form_is_for_passwords_and_short_addresses() -> None:
    answer = send(AppHarness(), "wrong-guess")
    assert (answer.status, answer.headers.get(b"set-cookie")) == (401, None)
    assert b'role="alert"' in answer.body
    assert AppHarness().request("POST", "/login", b"password=\xff", peer=REMOTE).status == 401
    book = AppHarness()
    path = f"/?{'x' * (MAX_NEXT - 2)}"
    assert place(book.request("GET", path, headers=BROWSER, peer=REMOTE)) == f"/login?next={quote(path, '')}"
    assert place(book.request("GET", f"{path}x", headers=BROWSER, peer=REMOTE)) == "/login?next="
    book = AppHarness(password="")
    assert place(book.request("GET", "/login")) == "/"
    answer = book.request("POST", "/login", b"password=")
    assert (place(answer), answer.headers.get(b"set-cookie")) == ("/", None)


@pytest.mark.parametrize(
    ("root", "after", "target"),
    [
        ("", "", "/"),
        ("", "//evil.example", "/"),
        ("", "https://evil.example", "/"),
        ("", "/\\evil.example", "/"),
        ("", "/\x7f", "/"),
        ("/board", "/other", "/board/"),
        ("/board", "/board/allow", "/board/allow"),
    ],
)
def test_only_pages_of_the_dashboard_follow(root: str, after: str, target: str) -> None:
    assert place(send(AppHarness(root_path=root), next=after)) == target


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_is_in_the_language_that_is_set(language: str) -> None:
    book, texts = AppHarness(), PageTexts(language)
    spoken = [(b"cookie", b"svc-relay-language=" + language.encode()), (b"accept-language", b"fr")]
    page = book.request("GET", "/login", headers=spoken, peer=REMOTE).body.decode()
    assert f'<html lang="{language}">' in page
    for text in ("Sign in", "Password"):
        assert texts.html(text) in page
    origin = (b"origin", b"http://" + book.host_name)
    refused = book.request("POST", "/login", b"password=wrong-guess", headers=[*spoken, origin], peer=REMOTE)
    assert texts.html("this is not the password") in refused.body.decode()
