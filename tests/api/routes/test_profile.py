import pytest

from svc_proto.agent.avatar import Avatar
from svc_proto.commands import ReadConfig
from tests.api.harness import CONFIG, HOME, ApiHarness
from tests.support.http_codec import Response

FILE = """\
agent: {personalities: {brief: Answer in one line.}}
model: {default: small, base_url: 'http://127.0.0.1:9/v1', api_key: sesame}
"""
ONE = "/api/profiles/default"


@pytest.fixture
def book() -> ApiHarness:
    book = ApiHarness(files={CONFIG: FILE})
    book.secrets.add("sesame")
    return book


def put(book: ApiHarness, path: str, content: object) -> Response:
    return book.request("PUT", f"{ONE}/{path}", {"content": content})


def changes(book: ApiHarness) -> list[tuple[str, str, str]]:
    found = book.request("GET", "/api/changes").json["changes"]
    return [(each["target"], each["before"], each["after"]) for each in found]


def test_settings_and_soul(book: ApiHarness) -> None:
    shown = book.request("GET", f"{ONE}/config").json
    assert (shown["profile"], shown["path"], shown["readonly"]) == ("default", CONFIG, True)
    assert shown["config"]["model"]["default"] == "small"
    assert book.request("GET", f"{ONE}/soul").json["exists"] is False
    written = put(book, "soul", "Be kind.\nBe brief.\n")
    assert written.json == {"ok": True, "profile": "default", "path": CONFIG, "bytes_written": 19}
    soul = book.request("GET", f"{ONE}/soul").json
    assert (soul["content"], soul["exists"], soul["size_bytes"]) == ("Be kind.\nBe brief.", True, 18)
    assert [*book.request("GET", "/api/config").json["config"]["agent"]["personalities"]] == ["brief"]
    assert not book.leaks()
    for content in ("x" * 20_001, 7, None):
        assert put(book, "soul", content).status == 400
    ((*_, after),) = changes(book)
    assert after == "Be kind.\nBe brief."
    (change,) = book.request("GET", "/api/changes").json["changes"]
    assert book.request("POST", "/api/changes/undo", {"principal": change["principal"]}).json["ok"] is True
    assert book.request("GET", f"{ONE}/soul").json["exists"] is False


def test_notes(book: ApiHarness) -> None:
    assert put(book, "memory/MEMORY.md", "Tea\n§\nMilk\n").json["bytes_written"] == 12
    assert put(book, "memory/MEMORY.md", "Milk\r\n§\n\n§\nOolong\n§\nSugar\n§\nMilk").status == 200
    shown = book.request("GET", f"{ONE}/memory").json
    assert (shown["memories_dir"], shown["total"]) == (f"{HOME}/memories", 2)
    assert [(each["filename"], each["content"], each["path"]) for each in shown["entries"]] == [
        ("MEMORY.md", "Milk\n§\nOolong\n§\nSugar\n", f"{HOME}/memories/MEMORY.md"),
        ("USER.md", "\n", f"{HOME}/memories/USER.md"),
    ]
    assert put(book, "memory/MEMORY.md", "Milk").status == 200
    assert put(book, "memory/MEMORY.md", "Milk").status == 200  # which changes nothing
    notes = [("", "Tea"), ("", "Milk"), ("Tea", "Oolong"), ("", "Sugar"), ("Oolong", ""), ("Sugar", "")]
    assert changes(book) == [("memory", before, after) for before, after in notes]
    assert put(book, "memory/MEMORY.md", "x" * 2_201).status == 400
    assert put(book, "memory/MEMORY.md", 7).status == 400
    assert put(book, "memory/NOTES.md", "x").status == 404


def test_notes_that_cannot_be_read(book: ApiHarness) -> None:
    book.refuse = (ReadConfig,)
    assert put(book, "memory/USER.md", "x").status == 503
    assert book.request("GET", f"{ONE}/memory").status == 503


def test_skills_and_context(book: ApiHarness) -> None:
    assert book.request("GET", f"{ONE}/context").json == {"enabled": True, "blocks": []}
    path = f"{HOME}/skills/tea/SKILL.md"
    book.disk.put(path, b"---\nname: tea\ndescription: Brews\n---\nWait.\n")
    row = {"name": "tea", "description": "Brews", "category": None, "path": path, "enabled": True}
    assert book.request("GET", f"{ONE}/skills").json == {"profile": "default", "skills": [row], "total": 1}
    put(book, "soul", "Be kind.")
    put(book, "memory/USER.md", "Has a cat")
    blocks = book.request("GET", f"{ONE}/context").json["blocks"]
    assert [(block["name"], block["text"].rpartition("\n")[2]) for block in blocks] == [
        ("system prompt", "Be kind."), ("notes", "- Has a cat"), ("skills", "- tea: Brews")
    ]  # fmt: skip


def test_picture(book: ApiHarness) -> None:
    assert book.request("GET", f"{ONE}/avatar").status == 404
    picture = Avatar("image/png", b"\x89PNG\r\n\x1a\n")
    book.disk.put(f"{HOME}/avatar", picture.url.encode())
    answer = book.request("GET", f"{ONE}/avatar")
    assert (answer.headers.get(b"content-type"), answer.body) == (b"image/png", picture.data)


@pytest.mark.parametrize("part", ["config", "skills", "soul", "memory", "avatar", "context"])
def test_other_profiles(book: ApiHarness, part: str) -> None:
    assert book.request("GET", f"/api/profiles/other/{part}").status == 404
