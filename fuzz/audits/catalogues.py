"""What can be chosen of a vendor of speech: what he offers now, for how long that is known, and what a choice is worth.

In the place of the vendors is a listener that offers what was drawn, page by page, or fails.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

from fuzz.audit import Audit
from fuzz.audits.annex import Annex
from fuzz.audits.paired import Paired, pair
from runtimes.sim.host import Host
from tests.support.sim_http import ScriptedHttpServer as Place
from tests.support.sim_http import ServerSideConnection as Visit

__all__ = ["CATALOGUES"]

PORT = 9300
KEPT, EDGE, PATIENCE = 600.0, 2.0, 5.0  # s
SILENT = 0
XAI, ELEVEN = ("eve", "ara", "rex", "sal", "leo"), 1  # voices that are known of each: by name, or how many
KEYS = {"xai": "XAI_API_KEY", "elevenlabs": "ELEVENLABS_API_KEY"}
ROUTES = (  # where, whose, and which cache it is
    ("/voice/output", "xai_tts", "xai"),
    ("/voice/output", "elevenlabs_tts", "elevenlabs"),
    ("/voice/realtime", "xai_realtime", "xai"),
    ("/voice/realtime-agent", "xai_realtime", "xai"),
)
Members = dict[str, Any]


class _Vendor(Place):
    """Offers voices; `heard` are the pages that somebody wanted, with the key that he has shown."""

    def __init__(self, host: Host) -> None:
        super().__init__(host, PORT)
        self.heard: list[tuple[str, str]] = []
        self.answers: dict[str, tuple[int, Any]] = {}
        self.custom: list[list[Members]] = [[]]  # by page

    def says(self, target: str) -> tuple[int, Any]:
        """What is on a page."""
        path, _, query = target.partition("?")
        if path != "/v1/custom-voices" or self.answers[path][0] != 200:
            return self.answers[path]
        number = int((parse_qs(query).get("pagination_token") or ["page 0"])[0].removeprefix("page "))
        more = {"pagination_token": f"page {number + 1}"} if number + 1 < len(self.custom) else {}
        return 200, {"voices": self.custom[number], **more}

    def asked(self, visit: Visit, body: bytes) -> None:
        """One page."""
        headers, target = visit.head.headers, visit.head.target
        key = headers.get(b"xi-api-key") or (headers.get(b"authorization") or b"").removeprefix(b"Bearer ")
        self.heard.append((target, key.decode()))
        status, value = self.says(target)
        if status >= 400:  # in words that nobody is to repeat
            value = {"error": {"message": f"not with {key.decode()}"}}
        if status != SILENT:
            visit.answer(status, value if isinstance(value, bytes) else json.dumps(value).encode())


class _Catalogues:
    def __init__(self, audit: Audit) -> None:
        self.annex = Annex(audit)
        self.vendor = _Vendor(self.annex.home)
        self.one: Paired = pair(self.annex, leaves=True)
        self.keys: dict[str, str] = {}
        self.found: dict[str, Members] = {}
        self.known: dict[str, tuple[float, Members, str]] = {}  # by provider: until when, what, and by which keys
        for name in KEYS:
            self.offer(name)
        self.write("xai")

    def steps(self) -> None:
        annex = self.annex
        for _ in range(annex.rng.randint(12, 20)):
            match annex.rng.randrange(8):
                case 0:
                    self.offer(annex.pick(KEYS))
                case 1:
                    self.write(annex.pick(KEYS))
                case 2:
                    if not annex.rest_about([until for until, *_ in self.known.values()], EDGE):
                        annex.rest(60.0)
                case 3:
                    self.choose()
                case _:
                    self.ask()
        annex.stop()

    def write(self, name: str) -> None:
        """The operator sets a key, or takes it away."""
        annex = self.annex
        if name in self.keys and annex.chance(0.4):
            del self.keys[name]
        else:
            self.keys[name] = f"vendor-key-{annex.word()}"
            annex.world.secrets[self.keys[name]] = "a vendor's key"
        lines = [f"{KEYS[each]}={key}" for each, key in self.keys.items()]
        url = f"http://127.0.0.1:{PORT}"
        lines += [f"XAI_BASE_URL={url}/v1", f"ELEVENLABS_BASE_URL={url}"]
        annex.home.disk.put(f"{annex.home.state}/.env", "\n".join(lines).encode())

    def offer(self, name: str) -> None:
        """The vendor has other voices, or some trouble."""
        annex, vendor = self.annex, self.vendor
        fine = annex.chance(0.7)
        status = 200 if fine else annex.pick((401, 500, 500, 429, SILENT, 302))
        voices = [{"voice_id": f"v-{annex.word()}", "name": f"Voice {n}"} for n in range(annex.rng.randint(0, 2))]
        odd: list[Members] = [{"name": "none"}, {"voice_id": 5}, {"voice_id": "x" * 161}]
        labels = {each["voice_id"]: each["name"] for each in voices}
        if name == "xai":
            custom = [[{"voice_id": f"c-{annex.word()}"} for _ in range(annex.rng.randint(0, 2))] for _ in range(3)]
            vendor.custom = custom[: annex.rng.randint(1, 3)]
            refused = annex.chance(0.3)
            vendor.answers["/v1/tts/voices"] = (status, {"voices": [*voices, *odd]})
            vendor.answers["/v1/custom-voices"] = (annex.pick((403, 404)) if refused else 200, {})
            mine = [] if refused else [each["voice_id"] for page in vendor.custom for each in page]
            pages = 1 if refused else len(vendor.custom)
            asked = ["/v1/tts/voices", "/v1/custom-voices?limit=100"]
            asked += [f"/v1/custom-voices?limit=100&pagination_token=page%20{n}" for n in range(1, pages)]
            found: Members = {"labels": {**labels, **dict(zip(mine, mine, strict=True))}, "custom": mine, "models": {}}
        else:
            rows = [{**each, "category": annex.pick(("premade", "cloned", "generated"))} for each in voices]
            models = [{"model_id": f"m-{annex.word()}", "name": "M", "languages": [{"language_id": "xx", "name": "X"}]}]
            silent = [{"model_id": "mute", "can_do_text_to_speech": False}]
            vendor.answers["/v1/voices"] = (
                status,
                annex.pick(({"voices": [*rows, *odd]}, [*rows, *odd])),
            )
            vendor.answers["/v1/models"] = (200, [*models, *silent])
            mine = [each["voice_id"] for each in rows if each["category"] != "premade"]
            found = {"labels": labels, "custom": mine, "models": {each["model_id"]: "M" for each in models}}
            asked = ["/v1/voices", "/v1/models"]
        if not fine:
            asked = asked[:1]
        self.found[name] = {**found, "fine": fine, "asked": asked, "silent": status == SILENT}

    def ask(self) -> None:
        """Somebody wants to know what there is."""
        annex = self.annex
        base, provider, name = annex.pick(ROUTES)
        prints = json.dumps(self.keys, sort_keys=True)
        until, kept, by = self.known.get(provider, (0.0, {}, ""))
        if abs(annex.now - until) < EDGE / 2:
            annex.rest(EDGE)
        self.vendor.heard.clear()
        caller = annex.ask(self.one.token, "GET", f"{base}/providers/{provider}/options")
        told = annex.right(caller, 200)
        dynamic, found = told["dynamic"], self.found[name]
        if annex.now < until and by == prints:
            annex.same(self.vendor.heard, [], "what a vendor is asked who was asked lately")
            annex.same((dynamic.get("cache"), dynamic.get("cache_ttl_seconds")), ("hit", 600), "what is known already")
            self.check(told["provider"], kept, dynamic, name)
        elif name not in self.keys:
            is_ = {"attempted": False, "status": "auth_missing", "source": "provider_info"}
            annex.same({**dynamic, "message": ""}, {**is_, "message": ""}, "a vendor without a key")
            annex.same((KEYS[name] in dynamic["message"], self.vendor.heard), (True, []), "what is missing")
            self.check(told["provider"], None, dynamic, name)
        else:
            due = [(target, self.keys[name]) for target in found["asked"]]
            annex.same(self.vendor.heard, due, "what a vendor is asked")
            if found["silent"]:
                annex.near(caller.ended - caller.began, PATIENCE, "how long a vendor is waited for", 1.0)
            if not found["fine"]:
                is_ = {"attempted": True, "status": "error", "source": "provider_info"}
                annex.same({**dynamic, "message": ""}, {**is_, "message": ""}, "a vendor who fails")
                self.check(told["provider"], None, dynamic, name)
                return
            self.known[provider] = (annex.now + KEPT, found, prints)
            annex.same("cache" in dynamic, False, "what is not known already")
            self.check(told["provider"], found, dynamic, name)

    def check(self, told: Members, found: Members | None, dynamic: Members, name: str) -> None:
        """What the tables have, and what was found besides."""
        annex = self.annex
        known = [*XAI] if name == "xai" else told["voices"][:ELEVEN]
        labels = {} if found is None else found["labels"]
        custom = [] if found is None else found["custom"]
        annex.same(told["voices"], [*known, *labels], f"the voices of {name}")
        shown = {voice: told["voice_labels"].get(voice) for voice in labels}
        annex.same(shown, labels, "what voices are called")
        groups = [(group["custom"], group["values"]) for group in told["voice_groups"]]
        built = [voice for voice in ([*XAI, *labels] if name == "xai" else labels) if voice not in custom]
        due = [(False, built)] if name == "xai" or found is not None else []
        annex.same(groups, [*due, *([(True, custom)] if custom else [])], "the groups of voices")
        marked = [voice for voice, about in told["voice_metadata"].items() if about["custom"]]
        annex.same(marked, custom, "which voices are one's own")
        if found is None:
            return
        counts = {"voice_count": len(labels), "custom_voice_count": len(custom), "model_count": len(found["models"])}
        is_ = {"attempted": True, "status": "ok", "source": f"{name}_api", **counts}
        annex.same({key: dynamic.get(key) for key in is_}, is_, "what was found")
        models = told["models"][len(told["models"]) - len(found["models"]) :]
        annex.same((models, told["model_labels"]), ([*found["models"]], found["models"]), "models that were found")
        if found["models"]:
            annex.same(
                (told["languages"][-1], told["language_labels"]), ("xx", {"xx": "X"}), "languages that were found"
            )

    def choose(self) -> None:
        """A choice is judged by what is known, and nobody is asked for it."""
        annex = self.annex
        until, found, by = self.known.get("xai_tts", (0.0, {}, ""))
        there = annex.now < until - EDGE and by == json.dumps(self.keys, sort_keys=True)
        voices = [*found.get("labels", {})]
        if not voices or abs(annex.now - until) < 2 * EDGE:
            return
        self.vendor.heard.clear()
        body = {"model": "xai-tts", "voice": annex.pick(voices), "sample_rate": 24_000, "language": "en"}
        told = annex.right(annex.ask(self.one.token, "POST", "/voice/output/providers/xai_tts/validate", body), 200)
        annex.same((told["valid"], self.vendor.heard), (there, []), f"whether a voice that was found is good: {told}")


def catalogues(audit: Audit) -> None:
    """Vendors offer this and that, and are asked now and then."""
    _Catalogues(audit).steps()


CATALOGUES = (catalogues,)
