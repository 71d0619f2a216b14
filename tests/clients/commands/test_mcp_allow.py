"""Test of `svc mcp allow`: a real relay, a waiting browser, and the owner at a terminal."""

import http.client
import json
import re
from urllib.parse import urlencode

from tests.clients.commands.command_process import CommandHome, finish
from tests.servers.program_process import TIMEOUT

REDIRECT = "http://127.0.0.1:4000/cb"
ASKED = {
    "response_type": "code",
    "redirect_uri": REDIRECT,
    "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    "code_challenge_method": "S256",
}


class Browser:
    """HTTP client in the part of a browser on the relay's own host, where plain HTTP is permitted."""

    def __init__(self, port: int) -> None:
        self._port = port
        wish = json.dumps({"client_name": "Claude Code", "redirect_uris": [REDIRECT]})
        self._client = json.loads(self.ask("POST", "/oauth/register", wish)[1])["client_id"]

    def ask(self, method: str, path: str, body: str = "") -> tuple[str, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT)
        connection.request(method, path, body)
        answer = connection.getresponse()
        found = answer.headers.get("location", ""), answer.read().decode()
        connection.close()
        return found

    def wait(self) -> tuple[str, str]:
        """Start an authorization request; return the path of its waiting page, and the word on that page."""
        place, _ = self.ask("GET", f"/oauth/authorize?{urlencode({**ASKED, 'client_id': self._client})}")
        page = f"/oauth/{place}"
        word = re.search(r'class="word">(\w{6})<', self.ask("GET", page)[1])
        assert word is not None
        return page, word[1]


def test_the_owner_answers(linked: CommandHome) -> None:
    browser = Browser(linked.port)
    page, word = browser.wait()
    done = linked.run("svc", "mcp", "allow", word.lower(), "--read-only", "--days", "2", "--yes")
    assert (done.code, "Claude Code   (not verified)" in done.out) == (0, True), done
    assert browser.ask("GET", page)[0].startswith(f"{REDIRECT}?code=")
    page, word = browser.wait()
    terminal = linked.spawn("svc", "mcp", "allow", word)
    terminal.expect_exact("Allow it?")
    terminal.sendline("n")
    status, shown = finish(terminal)
    assert (status, "Refused" in shown) == (1, True)
    assert "error=access_denied" in browser.ask("GET", page)[0]
    gone = linked.run("svc", "mcp", "allow", word, "--refuse")
    assert gone.code == 1
    assert gone.problem == "the relay refuses: no agent waits with this word: it may be over already (status 404)"
