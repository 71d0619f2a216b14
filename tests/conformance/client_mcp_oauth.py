"""Program of `mcp_phone_suite`, which gets the folder of `mcp` and instructions: the official client uses OAuth.

Its browser and the owner are scripted; the owner answers as programs of the relay's host do. Prints the observations.
"""

import asyncio
import importlib
import json
import re
import site
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

REDIRECT = "http://127.0.0.1:4000/callback"


class Storage:
    """Storage of the client's tokens and registration, in memory."""

    tokens: Any = None
    client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


class Person:
    """A scripted user with a browser, and the relay's owner."""

    def __init__(self, http: Any, auth: Any, url: str, scope: str | None) -> None:
        self._http = http
        self._auth = auth
        self._url = url
        self._scope = scope  # None: deny everything
        self.asked = 0
        self._back = ""

    async def follow(self, address: str) -> None:
        """Follow the authorization as a browser does, answer as the owner, and keep the redirect to the client."""
        self.asked += 1
        async with self._http.AsyncClient() as browser:
            page = str((await browser.get(address)).next_request.url)
            word = re.search(r'class="word">(\w+)<', (await browser.get(page)).text)
            assert word is not None
            question = f"{self._url}/mcp/questions/{word[1]}"
            ballot = (await browser.get(question)).json()["ballot"]
            answer = {"ballot": ballot, "allow": self._scope is not None, "scope": self._scope}
            (await browser.post(question, json=answer)).raise_for_status()
            self._back = (await browser.get(page)).headers["location"]

    async def come_back(self) -> Any:
        """Return code, state and issuer of the redirect to the client. Raise PermissionError if it has an error."""
        assert self._back.startswith(REDIRECT)
        fields = {name: values[0] for name, values in parse_qs(urlsplit(self._back).query).items()}
        if "error" in fields:
            raise PermissionError(fields["error"])
        return self._auth.AuthorizationCodeResult(code=fields["code"], state=fields["state"], iss=fields["iss"])


async def run_all_steps(url: str) -> dict[str, object]:
    """Run all steps and return the observations by name, among them results of tool calls and names of errors."""
    http: Any = importlib.import_module("httpx2")
    mcp: Any = importlib.import_module("mcp")
    auth: Any = importlib.import_module("mcp.client.auth")
    shared: Any = importlib.import_module("mcp.shared.auth")
    transport: Any = importlib.import_module("mcp.client.streamable_http")

    def provider(person: Person, storage: Storage) -> Any:
        about = shared.OAuthClientMetadata(client_name="Conformance", redirect_uris=[REDIRECT])
        return auth.OAuthClientProvider(f"{url}/mcp", about, storage, person.follow, person.come_back)

    async def call(listener: Any, *tools: str) -> list[bool]:
        async with (
            http.AsyncClient(auth=listener, timeout=30.0) as client,
            mcp.Client(transport.streamable_http_client(f"{url}/mcp", http_client=client)) as phone,
        ):
            given = {"phone_tap": {"x": 1, "y": 1}}
            return [bool((await phone.call_tool(tool, given.get(tool, {}))).is_error) for tool in tools]

    async def failure(listener: Any) -> str:
        try:
            await call(listener, "phone_ping")
        except BaseException as error:
            return type(_innermost(error)).__name__
        return ""

    seen: dict[str, object] = {}
    person, storage = Person(http, auth, url, "bridge"), Storage()
    listener = provider(person, storage)
    seen["comes in"] = await call(listener, "phone_ping", "phone_tap")
    first = storage.tokens
    seen["token"] = [first.token_type, first.expires_in, first.scope]
    listener.context.token_expiry_time = 1.0
    seen["refreshes"] = await call(listener, "phone_ping")
    seen["another token"] = storage.tokens.access_token != first.access_token
    again = Storage()
    again.tokens, again.client = storage.tokens, storage.client
    seen["comes back"] = await call(provider(person, again), "phone_ping")
    seen["was asked once"] = person.asked
    async with http.AsyncClient() as owner:
        listed = (await owner.get(f"{url}/sessions")).json()["sessions"]
        (mine,) = [row for row in listed if row["client_surface"] == "mcp"]
        seen["listed"] = mine["device_name"]
        (await owner.delete(f"{url}/sessions/{mine['token_prefix']}")).raise_for_status()
    absent = Person(http, auth, url, None)
    seen["revoked"] = await failure(provider(absent, again))
    seen["asked anew"] = absent.asked
    seen["without a grant"] = await failure(provider(Person(http, auth, url, None), Storage()))
    looker = provider(Person(http, auth, url, "bridge:read"), Storage())
    seen["only looks"] = await call(looker, "phone_ping", "phone_tap")
    return seen


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def main(folder: str, client_flow: str) -> None:
    """Run all steps with the packages in `folder`, and print the observations as JSON."""
    site.addsitedir(folder)
    sys.path.insert(0, folder)  # before packages of the same names in this venv
    url = json.loads(client_flow)["url"].removesuffix("/mcp")
    sys.stdout.write(json.dumps(asyncio.run(run_all_steps(url))))


if __name__ == "__main__":
    main(*sys.argv[1:])
