"""What the operator keeps in files, as the API shows and uses it: skills, personalities, models, and the key itself."""

from __future__ import annotations

import json
from typing import Any

from attrs import frozen

from fuzz.audit import KEYS_FORGOTTEN, Audit
from fuzz.audits.heard import Events, Listener
from fuzz.audits.messages import Client
from fuzz.audits.probes import NAME, edit_settings, settings_of
from fuzz.audits.refusals import refused
from fuzz.part import Round, asking
from fuzz.upstream import MODEL_PORT
from fuzz.world import API, API_KEY, MODEL_KEY
from runtimes.sim.disk import Folder
from tests.support.sim_http import RequestClient as Caller

__all__ = ["UPKEEP"]

ELSEWHERE = MODEL_PORT + 1  # another server, for whom no key is
URL = f"http://10.0.0.3:{MODEL_PORT}/v1"
MAX_FILE = 256 * 1024  # bytes of a file of a skill
LISTED_FOR = 60.0  # s that a list of models is good for
Members = dict[str, Any]


# --- skills ---


@frozen
class _Skill:
    """One as it has to be shown."""

    name: str
    category: str | None
    folder: str
    description: str
    content: str
    tags: list[str]
    related: list[str]

    @property
    def row(self) -> Members:
        return {"name": self.name, "description": self.description, "category": self.category}


class _Skills:
    """The folder of skills."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.disk = audit.world.home.disk
        self.root = f"{audit.world.home.state}/skills"
        self.there: list[_Skill] = []

    def steps(self) -> None:
        audit = self.audit
        for _ in range(audit.rng.randint(1, 4)):
            self.make()
        self.list_all()
        self.read()
        self.files()
        self.told()
        audit.pick((self.move, self.refuse))()
        for path in [each for each in self.disk.paths(self.root) if audit.name in each or "/" in each]:
            self.disk.remove(path)
        for path in [each for each, node in self.disk._nodes.items() if isinstance(node, Folder)]:
            if path.startswith(f"{self.root}/"):
                self.disk.remove(path)
        self.there.clear()
        self.list_all()

    def make(self) -> None:
        """With a front or without, in a category or not, with a link to a file of its own."""
        audit, word = self.audit, self.audit.word()
        category = audit.pick((None, "phone", f"{word}/deep"))
        folder = f"{category}/{word}" if category else word
        name, front, tags, related, described = word, "", list[str](), list[str](), ""
        if audit.chance(0.7):
            name = audit.pick((word, f"the-{word}"))
            tags, described = audit.pick((["a", "b"], [])), audit.pick((f"for {word}", ""))
            related = audit.pick(([], ["other"]))
            front = f"---\nname: {name}\ndescription: {described}\ntags: {json.dumps(tags)}\n"
            front += f"related_skills: {', '.join(related)}\n---\n"
        content = f"{front}\n# Do {word}\nSee references/{word}.md and ../../etc.\n"
        self.disk.put(f"{self.root}/{folder}/SKILL.md", content.encode())
        self.disk.put(f"{self.root}/{folder}/references/{word}.md", f"levels of {word}".encode())
        self.there.append(_Skill(name, category, folder, described or f"Do {word}", content, tags, related))

    def list_all(self) -> None:
        audit = self.audit
        there = sorted(self.there, key=lambda skill: (skill.category or "", skill.name))
        rows = [skill.row for skill in there]
        told = audit.right(audit.ask_api("GET", "/api/skills"), 200)
        told.pop("hint")
        categories = sorted({skill.category for skill in there if skill.category is not None})
        is_ = {"success": True, "skills": rows, "categories": categories, "count": len(rows)}
        audit.same(told, is_, "the skills")
        audit.same(audit.right(audit.ask_api("GET", "/v1/skills"), 200), {"object": "list", "data": rows}, "the skills")
        for category in (*categories, "none"):
            told = audit.right(audit.ask_api("GET", f"/api/skills?category={category}"), 200)
            due = [row for row in rows if row["category"] == category]
            audit.same((told["skills"], told["count"], told["categories"]), (due, len(due), categories), "some skills")

    def read(self) -> None:
        audit, skill = self.audit, self.audit.pick(self.there)
        told = audit.right(audit.ask_api("GET", f"/api/skills/{skill.name}"), 200)
        word = skill.folder.rpartition("/")[2]
        is_ = {"success": True, **skill.row, "tags": skill.tags, "related_skills": skill.related}
        is_ |= {"content": skill.content, "path": f"{skill.folder}/SKILL.md"}
        is_ |= {"linked_files": {"references": [f"references/{word}.md"]}}
        audit.same(told, is_, "a skill")
        told = audit.right(audit.ask_api("GET", f"/api/skills/no-{audit.word()}"), 200)
        known = sorted(skill.name for skill in self.there)
        audit.same((told["success"], sorted(told["available_skills"])), (False, known), "a skill that is not there")

    def files(self) -> None:
        """Those of a skill, whatever they hold, and none beside it, by whatever name or link."""
        audit, skill = self.audit, self.audit.pick(self.there)
        folder, word = f"{self.root}/{skill.folder}", skill.folder.rpartition("/")[2]
        secret = f"{audit.world.home.state}/{audit.word()}.txt"
        self.disk.put(secret, b"not yours")
        self.disk.put(f"{folder}/picture.bin", b"\xff\xfe\x00")
        self.disk.put(f"{folder}/whole.md", b"x" * MAX_FILE)
        self.disk.put(f"{folder}/large.md", b"x" * (MAX_FILE + 1))
        self.disk.symlink(f"{folder}/link.md", secret)
        text = {"content": f"levels of {word}", "file_type": ".md"}
        rows: tuple[tuple[str, Members | None], ...] = (
            (f"references/{word}.md", text),
            ("picture.bin", {"is_binary": True}),
            ("link.md", None),
            (f"../{skill.folder}/../../{secret.rpartition('/')[2]}", None),
            (secret, None),
            ("large.md", None),
            ("references", None),
            ("nothing.md", None),
        )
        for path, more in audit.rng.sample(rows, 4):
            told = audit.right(audit.ask_api("GET", f"/api/skills/{skill.name}?file_path={path}"), 200)
            is_ = {"success": True, "name": skill.name, "file": path, **more} if more is not None else None
            if is_ is not None:
                audit.same(told, is_, "a file of a skill")
            elif told["success"] is not False or "content" in told:
                audit.wrong(f"{path} of {skill.folder} is told: {told!r:.100}")
        if audit.chance(0.3):
            told = audit.right(audit.ask_api("GET", f"/api/skills/{skill.name}?file_path=whole.md"), 200)
            audit.same(len(told.get("content", "")), MAX_FILE, "a file that just is not too large")
        self.disk.remove(secret)

    def told(self) -> None:
        """A model is told of all, and reads one by a tool."""
        audit, skill = self.audit, self.audit.pick(self.there)
        rounds = (Round(calls=[["skill_view", {"name": skill.name}], ["skills_list", {}]]), Round(text="So."))
        heard = Listener(audit)
        asked = {"messages": [{"role": "user", "content": asking(audit.word(), *rounds)}]}
        audit.right(audit.ask_api("POST", "/v1/chat/completions", asked), 200)
        heard.stop()
        for each in self.there:
            if f"- {each.name}: {each.description}" not in heard.orders():
                audit.wrong(f"a model is not told of {each.name}: {heard.orders()[-300:]}")
        names = {tool["function"]["name"] for tool in heard.asked[0]["tools"]}
        audit.same({"skills_list", "skill_view", "memory"} - names, set(), "tools that a model is not told of")
        viewed, listed = (json.loads(row["content"]) for row in heard.rows(1)[-2:])
        audit.same((viewed["content"], listed["count"]), (skill.content, len(self.there)), "what a model reads")

    def move(self) -> None:
        """What is moved away is gone at once."""
        skill = self.there.pop()
        self.disk.remove(f"{self.root}/{skill.folder}/SKILL.md")
        self.list_all()

    def refuse(self) -> None:
        audit = self.audit
        told = audit.right(audit.ask_api("PUT", "/api/skills/toggle", {"skill": "x", "enabled": False}), 501)
        audit.same(told["error"], "skill_toggle_not_implemented", "to switch a skill off")


def skills(audit: Audit) -> None:
    """Skills are written, listed, read, used and moved away."""
    _Skills(audit).steps()


# --- what the configuration file says of the agent ---


def configured(audit: Audit) -> None:
    """Personalities, aliases and the model are as the file has them now, and secrets in it are told to nobody."""
    before = settings_of(audit)
    word = audit.word()
    upstream = audit.world.upstream
    close = upstream.listen(ELSEWHERE)
    secrets = [f"secret-{audit.word()}" for _ in range(3)]
    for secret in secrets:
        audit.world.secrets[secret] = "a key in the configuration file"
    people = {
        "brief": f"Answer {word}.",
        "mentor": {"system_prompt": f"Explain {word}.", "tone": "warm", "x": 1},
        "no": "",
    }
    aliases: Members = {
        "far": {"model": f"far-{word}", "base_url": "http://10.0.0.3:9000/v2", "api_key": secrets[0]},
        "near": {"model": f"near-{word}"},
        "other": {"model": f"other-{word}", "base_url": f"http://10.0.0.3:{ELSEWHERE}/v1"},
        "lost": {"base_url": URL},
    }
    display = {"personality": audit.pick(("brief", "default")), "skin": "dark", "token": secrets[1]}
    edit_settings(
        audit,
        agent={"personalities": people, "system_prompt": f"House {word}."},
        display=display,
        model={"default": "file-model", "provider": "some", "api_key": secrets[2], "base_url": f"{URL}?key=x"},
        platforms={"api_server": {"extra": {"model_routes": aliases, "key": secrets[1]}}},
    )
    told = audit.right(audit.ask_api("GET", "/api/config"), 200)
    shown = {"brief": people["brief"], "mentor": {"system_prompt": f"Explain {word}.", "tone": "warm"}}
    model = {"default": "file-model", "provider": "some", "base_url": ""}
    config = {"agent": {"personalities": shown}, "model": model}
    config["display"] = {name: value for name, value in display.items() if name != "token"}
    is_ = {"model": "sim", "provider": "some", "api_mode": "", "base_url": URL, "config": config}
    audit.same(told, is_, "the configuration")
    rows = [
        (row["id"], row["root"], row["parent"]) for row in audit.right(audit.ask_api("GET", "/v1/models"), 200)["data"]
    ]
    due = [(NAME, NAME, None), *((name, f"{name}-{word}", NAME) for name in ("far", "near", "other"))]
    audit.same(rows, due, "the models")
    audit.right(audit.ask_api("GET", "/v1/models/far"), 200)
    audit.right(audit.ask_api("GET", "/v1/models/lost"), 404, "model_not_found")
    prompts = {"brief": f"Answer {word}.", "mentor": f"Explain {word}.\ntone: warm", "no": "", "": "", "default": ""}
    for _ in range(3):
        _asked_as(audit, word, prompts, display["personality"], secrets[0])
    _changed(audit)
    edit_settings(audit, agent=None, display=None, model=None, platforms=None)
    edit_settings(audit, **before)
    audit.right(audit.ask_api("GET", "/api/config"), 200)
    if audit.chance(0.5):
        _offered(audit)
    close()


def _asked_as(audit: Audit, word: str, prompts: dict[str, str], default: str, secret: str) -> None:
    """A turn by a personality and an alias: whose words the model has first, which model it is, and by which key."""
    heard = Listener(audit)
    way, person, alias = (
        audit.rng.randrange(4),
        audit.pick((*prompts, None, 5)),
        audit.pick(("far", "near", "other", "lost", None)),
    )
    text, orders = f"plain: {audit.word()}", dict[str, str]()
    more = {} if alias is None else {"model": alias}
    if way == 0:
        chat = audit.right(audit.ask_api("POST", "/api/sessions", {"system_prompt": f"Chat {word}."}), 201)["id"]
        orders = audit.pick(({}, {"system_message": f"Now {word}."}))
        body = {"message": text, "personality": person, **orders, **more}
        caller = audit.ask_api("POST", f"/api/sessions/{chat}/chat", body)
    elif way == 1:
        body = {"input": text, "personality": person, "stream": True, **more}
        caller = audit.ask_api("POST", "/v1/runs", body)
    else:
        person = None
        path, body = audit.pick(
            (
                ("/v1/responses", {"input": text}),
                ("/v1/chat/completions", {"messages": [{"role": "user", "content": text}]}),
            )
        )
        caller = audit.ask_api("POST", path, {**body, **more})
    audit.right(caller, 200)
    heard.stop()
    ((head,), (asked,)) = heard.heads, heard.asked
    named = alias if way else None  # a chat has the server's model
    model = f"{named}-{word}" if named in ("far", "near", "other") else "sim"
    audit.same(asked["model"], model, "which model is asked")
    due = None if named == "other" else f"Bearer {secret if named == 'far' else MODEL_KEY}".encode()
    audit.same(head.headers.get(b"authorization"), due, f"the key for {named}")
    chosen = prompts.get(person, "") if isinstance(person, str) else ""
    wanted = chosen or prompts[default]
    base = f"Chat {word}." if way == 0 else f"House {word}."
    start = "\n\n".join(filter(None, (base, wanted, *orders.values())))
    others = [each for each in prompts.values() if each and each != wanted]
    if not heard.orders().startswith(start) or any(each in heard.orders() for each in others):
        audit.wrong(f"by {person!r} a model is told {heard.orders()[:150]!r}, and it is {start!r}")


def _changed(audit: Audit) -> None:
    """`PATCH` writes to the file what may be written; the environment's word is in force all the same."""
    word = audit.word()
    rows: tuple[tuple[Members, int], ...] = (
        ({"model": "m" * 256, "provider": word}, 200),
        ({"model": f" {word} "}, 200),
        ({}, 200),
        ({"model": "m" * 257}, 400),
        ({"model": 5}, 400),
        ({"model": "a\nb"}, 400),
        ({"api_key": "x"}, 400),
        ({"base_url": "ftp://x"}, 400),
        ({"base_url": "http://user:pass@x/v1"}, 400),
        ({"base_url": "http://elsewhere.example/v1"}, 400),  # the key would go there
    )
    for body, status in audit.rng.sample(rows, 4):
        before = settings_of(audit)["model"]
        told = audit.right(audit.ask_api("PATCH", "/api/config", body), status, about=f"{body!r:.80}")
        after = settings_of(audit)["model"]
        if status == 400:
            audit.same(([*told], after), (["error"], before), "a change that is refused")
            continue
        names = {"default" if name == "model" else name: value.strip() for name, value in body.items()}
        audit.same(after, {**before, **names}, "what is written")
        is_ = {"ok": True, "model": "sim", "provider": after["provider"], "base_url": URL}
        audit.same(told, is_, "a change")


def _offered(audit: Audit) -> None:
    """The models of the model's server, asked for once a minute."""
    upstream, who = audit.world.upstream, settings_of(audit).get("model", {}).get("provider", "custom")
    audit.rest(LISTED_FOR + 1.0)
    before = upstream.offers
    upstream.offers = (f"m-{audit.word()}", "sim", "x" * 256, "y" * 257, "")
    asked, due = upstream.listed, [*upstream.offers[:3]]
    for late in (0.0, 1.0, LISTED_FOR - 3.0, 4.0):
        audit.rest(late)
        told = audit.right(audit.ask_api("GET", "/api/available-models"), 200)
        audit.same([model["id"] for model in told["models"]], due, "the models that there are")
        row = {"id": who, "label": who.title(), "aliases": [], "authenticated": True}
        audit.same((told["provider"], told["providers"]), (who, [row]), "who has models")
    audit.same(upstream.listed, asked + 2, "how often a server was asked for its models in a minute and more")
    told = audit.right(audit.ask_api("GET", "/api/available-models?provider=other"), 200)
    audit.same((told["provider"], told["models"]), ("other", []), "the models of somebody else")
    upstream.offers = before


# --- the key ---


def rotation(audit: Audit) -> None:
    """The key is changed in its file: at once the old one opens nothing any more, and what it has let in is over."""
    disk, path = audit.world.home.disk, f"{audit.world.home.state}/.env"
    audit.rest(KEYS_FORGOTTEN)
    for text, code in audit.rng.sample(((None, "key_not_found"), ("API_SERVER_KEY=\n", "key_not_found")), 1):
        if text is not None:
            disk.put(path, text.encode())
        refused(audit, audit.ask_api("POST", "/api/key/reload"), 409, code, None)
    disk.put(path, f"API_SERVER_KEY={API_KEY}\n".encode())
    told = audit.right(audit.ask_api("POST", "/api/key/reload"), 200)
    audit.same(told, {"ok": True, "changed": False}, "the key that it was")
    fresh = f"fresh-key-{audit.word()}-of-24-characters"
    audit.world.secrets[fresh] = "the API's new key"
    watched, streamed = Events(), Events()
    run = audit.right(audit.ask_api("POST", "/v1/runs", {"input": f"hang: {audit.word()}"}), 202)["run_id"]
    reader = audit.begin_api("GET", f"/v1/runs/{run}/events", None, watched)
    chat = audit.new_chat()
    body = {"message": f"hang: {audit.word()}"}
    turn = audit.begin_api("POST", f"/api/sessions/{chat}/chat/stream", body, streamed)
    client = Client.of_api(audit)
    session = client.open()
    audit.rest(2.0)
    disk.put(path, f"API_SERVER_KEY={fresh}\n".encode())
    audit.right(audit.ask_api("GET", "/v1/models"), 200, about="the old key, as long as nobody has said so")
    told = audit.right(audit.ask_api("POST", "/api/key/reload"), 200)
    audit.same(told, {"ok": True, "changed": True}, "another key")
    refused(audit, audit.ask_api("GET", "/v1/models"), 401, "invalid_api_key", None)
    refused(audit, audit.ask_api("POST", "/api/key/reload"), 401, "invalid_api_key", None)
    audit.wait(lambda: reader.over and turn.over, 10.0, "what the old key has let in goes on")
    audit.rest(2.0)
    view = audit.right(_with(audit, fresh, "GET", f"/v1/runs/{run}"), 200)
    audit.same(view["status"], "cancelled", "a run of the old key")
    audit.same(audit.world.upstream.questions, [], "what the model is asked for the old key")
    stored = audit.right(_with(audit, fresh, "GET", f"/api/sessions/{chat}/messages"), 200)["messages"]
    audit.same(stored[0]["content"], body["message"], "what was said with the old key")
    client.token = fresh
    audit.right(client.request("ping", {}, session), 404, about="a session of MCP that the old key has opened")
    told = audit.right(_with(audit, fresh, "POST", "/api/key/reload"), 200)
    audit.same(told, {"ok": True, "changed": False}, "the new key")
    disk.put(path, f"API_SERVER_KEY={API_KEY}\n".encode())
    audit.right(_with(audit, fresh, "POST", "/api/key/reload"), 200)
    audit.right(audit.ask_api("GET", "/v1/models"), 200)
    disk.remove(path)
    audit.rest(KEYS_FORGOTTEN)


def _with(audit: Audit, key: str, method: str, path: str, body: object = None) -> Caller:
    fields = {"authorization": f"Bearer {key}"}
    return audit.answer(audit.begin((audit.world.home, API), method, path, body, fields))


UPKEEP = (skills, configured, rotation)
