"""What a model is told of tools, and how often it is asked, by the settings of an API: contexts, choices, limits."""

from __future__ import annotations

import json
import re
from typing import Any

from fuzz.audit import Audit
from fuzz.audits.heard import Listener
from fuzz.audits.lodge import Lodge
from fuzz.audits.paired import pair
from fuzz.part import Round, asking
from svc_proto.agent.offer import ToolChoice

__all__ = ["OFFERS"]

SMALL = 16_384  # tokens; a context below has room for a few tools only (decision 63)
PHONE = (  # decision 63 and wire bridge 3, in the order in which they are told
    *("ping", "setup", "current_app", "return_to_app", "screen", "screen_hash", "diff_screen", "find_nodes"),
    *("describe_node", "screenshot", "get_apps", "tap", "tap_text", "long_press", "drag", "type", "swipe", "scroll"),
    *("press_key", "wait", "open_app", "clipboard_read", "clipboard_write", "media", "send_intent", "broadcast"),
    *("events", "events_stream", "location", "search_contacts", "call", "send_sms", "share_media", "send_mms"),
)
GROUPS = {
    "look": (
        *("ping", "setup", "current_app", "return_to_app", "screen_hash", "diff_screen", "find_nodes"),
        *("describe_node", "events", "events_stream"),
    ),
    "touch": ("long_press", "drag", "swipe", "wait"),
    "send": ("clipboard_read", "clipboard_write", "media", "send_intent", "broadcast", "share_media"),
    "people": ("location", "search_contacts", "call", "send_sms", "send_mms"),
}
SKILLS = ("skills_list", "skill_view")
MORE = "more_tools"
NO_PHONE, DRIVES = "No phone is connected", "drive the user's phone"
KINDS = ("phone", "memory", "skills")
Members = dict[str, Any]


class _Offer:
    """An API whose model holds so much, and what it has to be told."""

    def __init__(self, audit: Audit) -> None:
        context = audit.pick((None, 4_096, SMALL - 1, SMALL - 1, SMALL))
        amount = audit.pick((None, None, None, None, True, False))
        only = audit.pick((None, None, None, None, (), ("memory",), ("phone", "skills"), ("phone",)))
        self.written = context is not None and audit.chance(0.4)  # in the configuration file, not by a setting
        self.few = amount if amount is not None else context is not None and context < SMALL
        self.only = KINDS if only is None else only
        self.most = audit.pick((None, 40, 90))
        self.calls = audit.pick((1, 2, 3, 90))  # of a model in one turn
        self.name = audit.pick((None, "porter"))
        self.lodge = Lodge(
            audit,
            beside=True,
            model_context=None if self.written else context,
            tools=ToolChoice(few=amount, only=only),
            max_tokens=self.most,
            max_model_calls=self.calls,
            model_name=self.name,
        )
        if self.written:
            text = json.dumps({"model": {"context_length": context}})
            self.lodge.home.disk.put(f"{self.lodge.home.state}/config.yaml", text.encode())
        self.there = audit.chance(0.6)
        if self.there:
            phone = pair(self.lodge, device_id=audit.word(), surface="android", form="phone")
            phone.seat.say("bridge", "bridge.status", {"bridge": {"device_control_supported": True}})
            self.lodge.rest(0.5)

    def steps(self) -> None:
        lodge = self.lodge
        self.toolsets()
        for _ in range(lodge.rng.randint(2, 4)):
            self.turn()
        self.limits()
        lodge.leave()

    # --- what there is ---

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of tools of which a model is told."""
        return tuple(kind for kind in self.only if kind != "phone" or self.there)

    def groups(self) -> dict[str, tuple[str, ...]]:
        """What has to be asked for."""
        if not self.few:
            return {}
        found = {} if "phone" not in self.kinds else {name: _phones(tools) for name, tools in GROUPS.items()}
        return {**found, **({"skills": SKILLS} if "skills" in self.kinds else {})}

    def first(self) -> list[str]:
        """The tools of a model that has asked for none."""
        later = [name for tools in self.groups().values() for name in tools]
        told = list(_phones(PHONE)) if "phone" in self.kinds else []
        told += (["memory"] if "memory" in self.kinds else []) + (list(SKILLS) if "skills" in self.kinds else [])
        return [name for name in told if name not in later] + ([MORE] if later else [])

    def toolsets(self) -> None:
        rows = self.lodge.right(self.lodge.ask_api("GET", "/v1/toolsets"), 200)["data"]
        told = {row["name"]: row["enabled"] for row in rows}
        self.lodge.same(told, {kind: kind in self.only for kind in KINDS}, "the toolsets that are wanted")
        known = self.lodge.right(self.lodge.ask_api("GET", "/v1/models"), 200)["data"][0]["id"]
        self.lodge.same(known, self.name or "svc-agent", "what an agent is called")

    # --- what a model is told ---

    def turn(self) -> None:
        """It asks for groups, also twice, or for one that is not there; and uses what it was not told of."""
        lodge, groups = self.lodge, self.groups()
        wanted = [*lodge.rng.sample([*groups], min(len(groups), 2)), lodge.pick((*GROUPS, "skills", "nothing"))]
        rounds = [Round(calls=[[MORE, {"group": wanted[0]}], ["skills_list", {}]])]
        rounds += (
            [Round(calls=[[MORE, {"group": each}] for each in wanted[1:]])] if wanted[1:] and lodge.chance(0.5) else []
        )
        rounds += [Round(calls=[[MORE, {"group": wanted[0]}]])] if lodge.chance(0.3) else []
        heard = Listener(lodge)
        chat = lodge.right(lodge.ask_api("POST", "/api/sessions", {}), 201)
        lodge.same(chat["model"], self.name or "svc-agent", "the model of a chat")
        body = {"message": asking(lodge.word(), *rounds, Round(text="So."))}
        whole = len(rounds) + 1 <= self.calls
        told = lodge.right(lodge.ask_api("POST", f"/api/sessions/{chat['id']}/chat", body), 200 if whole else 502)
        heard.stop()
        asked = len(rounds) + 1
        lodge.same(len(heard.asked), min(asked, self.calls), "how often a model is asked in a turn")
        if whole:
            lodge.same((told["completed"], told["message"]["content"]), (True, "So. "), "a turn with groups of tools")
        due, left = self.first(), dict(groups)
        for number, request in enumerate(heard.asked):
            names = [tool["function"]["name"] for tool in request.get("tools", [])]
            lodge.same(names, due, f"the tools of question {number + 1}, few: {self.few}, phone: {self.there}")
            self.check_words(request)
            if number < len(rounds):
                for name, given in rounds[number].calls:
                    due = due + list(left.pop(given["group"], ())) if name == MORE else due
        for request in heard.asked[1:2]:
            results = [row["content"] for row in request["messages"] if row["role"] == "tool"]
            good = wanted[0] in (*GROUPS, "skills", "mcp")
            lodge.same(
                results[0].startswith("error"), not good, f"whether the group {wanted[0]} is there: {results[0]}"
            )
            lodge.same(results[1], '{"skills":[],"count":0}', "a tool that is used without being told of")

    def check_words(self, request: Members) -> None:
        """In few words where there is little room; and whether there is a phone."""
        lodge = self.lodge
        for tool in request.get("tools", []):
            function = tool["function"]
            words = function["description"]
            if self.few and function["name"] != MORE:
                properties = function["parameters"]["properties"]
                shown = [name for name, member in properties.items() if "description" in member]
                lodge.same(
                    (shown, bool(re.search(r"\. .", words))), ([], False), f"how much is told of {function['name']}"
                )
        offered = [each for each in request.get("tools", []) if each["function"]["name"] == MORE]
        if offered:
            named = offered[0]["function"]["parameters"]["properties"]["group"]["enum"]
            lodge.same(named, [*self.groups()], "the groups of tools")
        system = " ".join(str(row["content"]) for row in request["messages"] if row["role"] == "system")
        about = (NO_PHONE in system, DRIVES in system)
        wants = "phone" in self.only
        lodge.same(about, (wants and not self.there, wants and self.there), "what a model is told of a phone")
        lodge.same(request.get("max_tokens"), self.most, "how much a model may say")

    def limits(self) -> None:
        """Of two limits of what a model says the lesser; a turn that is cut says that it is."""
        lodge, heard, wish = self.lodge, Listener(self.lodge), self.lodge.pick((39, 41, 91))
        body: Members = {"messages": [{"role": "user", "content": "plain: x"}], "max_tokens": wish}
        lodge.right(lodge.ask_api("POST", "/v1/chat/completions", body), 200)
        lodge.same(heard.asked[-1]["max_tokens"], min(wish, self.most or wish), "how much a model may say")
        if self.calls == 90:
            heard.stop()
            return
        word = lodge.word()
        rounds = [Round(text=f"{word} {n}", calls=[["skills_list", {}]]) for n in range(self.calls)]
        text, before = asking(word, *rounds, Round(text="never")), len(heard.asked)
        way = lodge.pick(("chat", "completion", "response", "run"))
        said = "\n\n".join(f"{word} {n} " for n in range(self.calls))
        if way == "chat":
            chat = lodge.new_chat()
            told = lodge.right(lodge.ask_api("POST", f"/api/sessions/{chat}/chat", {"message": text}), 200)
            flags = (told["completed"], told["partial"], told["interrupted"], told["message"]["content"])
            lodge.same(flags, (False, True, False, said), "a turn that has asked too often")
        elif way == "completion":
            body = {"messages": [{"role": "user", "content": text}]}
            told = lodge.right(lodge.ask_api("POST", "/v1/chat/completions", body), 200)["choices"][0]
            lodge.same(
                (told["finish_reason"], told["message"]["content"]), ("length", said), "the same as a completion"
            )
        elif way == "response":
            told = lodge.right(lodge.ask_api("POST", "/v1/responses", {"input": text}), 200)
            kinds = [item["type"] for item in told["output"]]
            due = ["message", "function_call", "function_call_output"] * self.calls
            lodge.same((told["status"], kinds), ("incomplete", due), "the same as a response")
        else:
            run = lodge.right(lodge.ask_api("POST", "/v1/runs", {"input": text}), 202)["run_id"]
            lodge.rest(30.0)
            view = lodge.right(lodge.ask_api("GET", f"/v1/runs/{run}"), 200)
            lodge.same((view["status"], view["output"]), ("completed", said), "the same as a run")
        lodge.same(len(heard.asked) - before, self.calls, "how often a model is asked in a turn")
        heard.stop()


def _phones(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"phone_{name}" for name in names)


def offers(audit: Audit) -> None:
    """An API with settings of its own has its model use tools."""
    _Offer(audit).steps()


OFFERS = (offers, offers)
