"""What is said to the agent that is no question: a pairing code in a chat, and to whom; the servers of MCP, by name.

Decision 74: a code is for who sits at this host, who says so and comes from there; nobody else finds it, then or later.
"""

from __future__ import annotations

import re

from fuzz.audit import Audit
from fuzz.audits.heard import Events
from fuzz.audits.lodge import Lodge
from fuzz.audits.paired import sign_in
from runtimes.sim.host import Host
from tests.support.sim_http import RequestClient as Caller

__all__ = ["ORDERS"]

CODE = re.compile(r"\*\*([A-Z0-9]{6})\*\* at `([^`]+)`")
INVITE = re.compile(r"`(svc-relay://pair\?payload=[^`]+)`")
WORDS = ("/svc-relay-pair", " /hermes-relay-pair ", "/SVC-Relay-Pair")
NOT_WORDS = ("/svc-relay-pair now", "say /svc-relay-pair")
NOT_HERE, NOT_KEPT = "Pairing codes are for whoever sits at this host", "is not kept with the chat"


class _Orders:
    def __init__(self, audit: Audit) -> None:
        self.lodge = lodge = Lodge(audit, beside=True)
        self.far = lodge.host()
        self.phone = lodge.host()
        lodge.world.phones_say_what_they_will = True  # an invite is where a key may be
        told = lodge.right(lodge.ask_here("POST", "/pairing/mint", {}), 200)
        lodge.world.phones_say_what_they_will = False
        seat = sign_in(lodge, self.phone, {"pairing_code": told["code"]})
        self.token = seat.take()["payload"]["session_token"]
        lodge.world.secrets[self.token] = "the token of a pairing"
        seat.hang_up()
        self.device_key = re.search(r'"key":"([^"]+)"', told["qr_payload"])
        self.chat = lodge.new_chat()

    def say(self, text: str, key: str, host: Host, **headers: str) -> tuple[Caller, str, Events]:
        """Somebody says it in the chat; what he is told."""
        lodge, events = self.lodge, Events()
        place = (host, lodge.inside if host is lodge.home else lodge.outside)
        fields = {"authorization": f"Bearer {key}", **{name.replace("_", "-"): each for name, each in headers.items()}}
        path = f"/api/sessions/{self.chat}/chat/stream"
        lodge.world.phones_say_what_they_will = True  # and so is what is said of one
        caller = lodge.answer(lodge.begin(place, "POST", path, {"message": text}, fields, events), 60.0)
        lodge.world.phones_say_what_they_will = False
        return caller, "".join(data["delta"] for name, data in events.told if name == "assistant.delta"), events

    def steps(self) -> None:
        lodge = self.lodge
        for _ in range(lodge.rng.randint(4, 7)):
            lodge.pick((self.pair, self.pair, self.other, self.list_servers))()
        rows = lodge.rows_of(self.chat)
        for row in rows:
            if CODE.search(row["content"] or "") or "payload=" in (row["content"] or ""):
                lodge.wrong(f"a code is kept with a chat: {row}")
        found = lodge.right(lodge.ask_api("GET", "/api/sessions/search?q=payload"), 200)
        lodge.same("payload=" in repr(found), False, "whether a code is found in chats")
        lodge.leave()

    def pair(self) -> None:
        """The operator, or somebody who is not, or does not say so."""
        lodge, text = self.lodge, self.lodge.pick(WORDS)
        device = "" if self.device_key is None else self.device_key[1]
        rows: tuple[tuple[str, Host, dict[str, str], bool], ...] = (
            *[(lodge.key, lodge.home, {"x_svc_operator": "1"}, True)] * 2,
            (lodge.key, lodge.home, {}, False), (lodge.key, lodge.home, {"x_svc_operator": "0"}, False),
            (lodge.key, self.far, {"x_svc_operator": "1"}, False), (device, lodge.home, {"x_svc_operator": "1"}, False),
            (lodge.key, lodge.home, {"x_svc_operator": "1", "x_forwarded_for": "203.0.113.1"}, False),
        )  # fmt: skip
        key, host, headers, good = lodge.pick(rows)
        asked = lodge.world.upstream.asked
        caller, told, events = self.say(text, key, host, **headers)
        lodge.right(caller, 200)
        lodge.same(lodge.world.upstream.asked, asked, "how often a model is asked for a code")
        code, invite = CODE.search(told), INVITE.search(told)
        about = f"a code in a chat, by {headers} of {host.name}, with the main key: {key == lodge.key}"
        lodge.same((code is not None, invite is not None), (good, good), about)
        if not good or code is None:
            lodge.same(NOT_HERE in told, True, f"what is said instead: {told}")
            return
        lodge.same((NOT_KEPT in told, "█" in told), (True, True), "what a code is shown with")
        lodge.same(code[2], f"ws://{lodge.home.address}:8767", "where it leads")
        completed = [data["content"] for name, data in events.told if name == "assistant.completed"]
        if any(CODE.search(each) for each in completed):
            lodge.wrong(f"a code is in what is kept: {completed}")
        seat = sign_in(lodge, lodge.host(), {"pairing_code": code[1]})
        answer = seat.take()
        lodge.same(answer["type"], "auth.ok", "a code of a chat")
        lodge.world.secrets[answer["payload"]["session_token"]] = "a token"
        seat.hang_up()

    def other(self) -> None:
        """What only begins so is a question like any other."""
        lodge, asked = self.lodge, self.lodge.world.upstream.asked
        caller, told, _ = self.say(lodge.pick(NOT_WORDS), lodge.key, lodge.home, x_svc_operator="1")
        lodge.right(caller, 200)
        lodge.same((CODE.search(told), lodge.world.upstream.asked), (None, asked + 1), "what is no order")

    def list_servers(self) -> None:
        """Where there are none that is said, and nobody is asked."""
        lodge, asked = self.lodge, self.lodge.world.upstream.asked
        text = lodge.pick(("/mcp", " /MCP  ", "/mcp reload", "/mcp what"))
        caller, told, _ = self.say(text, lodge.key, lodge.home)
        lodge.right(caller, 200)
        about = f"what {text} is answered: {told}"
        lodge.same(("No MCP server is configured" in told, lodge.world.upstream.asked), (True, asked), about)


def orders(audit: Audit) -> None:
    """Orders are given in a chat, by whoever may, and by others."""
    _Orders(audit).steps()


ORDERS = (orders,)
