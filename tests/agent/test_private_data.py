import pytest

from svc_proto.agent import private_data
from svc_proto.agent.private_data import PrivateData


def screen(package: str, *texts: str) -> dict[str, object]:
    return {"packageName": package, "nodes": [{"nodeId": "w0:123456", "text": text} for text in texts]}


@pytest.mark.parametrize(
    ("path", "body", "was_read"),
    [
        ("/search_contacts", {"contacts": [{"name": "Ada", "phones": [{"number": "+15550100"}]}]}, True),
        ("/clipboard", {"text": "code 654321"}, True),
        ("/location", {"latitude": 52.0116}, True),
        ("/screen", screen("com.example.mail", "Hello"), True),
        ("/screen", screen("com.android.systemui", "Your code is 654321"), True),
        ("/screen", screen("org.x.reader", "Write to ada@example.com"), True),
        ("/screen", screen("org.x.reader", "Your code: 654321"), True),
        ("/screen", screen("org.x.reader", "A story about boats"), False),
        ("/screen", screen("com.android.chrome", "Write to ada@example.com"), False),
        ("/get_apps", {"apps": [{"label": "ada@example.com"}]}, False),
    ],
)
def test_what_is_private(path: str, body: dict[str, object], was_read: bool) -> None:
    data = PrivateData()
    data.read_answer(path, body)
    assert data.was_read is was_read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://collector.invalid/?d=+15550100", True),
        ("http://collector.invalid/?d=15-55-01-00", True),
        ("d=1 555 0100", True),
        ("ada(at)example.com", False),
        ("ADA@example.com", True),
        ("boats", False),
        ("d=4711", True),
        ("d=912345", False),
    ],
)
def test_values_in_a_text(text: str, expected: bool) -> None:
    data = PrivateData("")
    contact = {"mail": "ada@example.com", "id": None, "numbers": ["+15550100", "12345", "4711"]}
    data.read_answer("/search_contacts", {"c": [contact], "count": 1})
    assert data.is_in(text) is expected


def test_what_the_owner_gave_and_what_is_deep_is_not_private() -> None:
    data = PrivateData("Search for +15550100")
    data.read_answer("/clipboard", {"text": "+15550100"})
    assert not data.is_in("+15550100")
    body: dict[str, object] = {"text": "654321"}
    for _ in range(20):
        body = {"a": body}
    data = PrivateData()
    data.read_answer("/clipboard", body)
    assert not data.is_in("654321")


def test_data_of_earlier_turns() -> None:
    found: list[tuple[bool, bool]] = []
    for name in ("memory", "phone_screen", "phone_search_contacts"):
        data = PrivateData()
        data.read_history(name, "Ada 5550100, ada@example.com")
        found.append((data.was_read, data.is_in("5550100")))
    assert found == [(False, False), (True, True), (True, True)]


def test_values_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_data, "MAX_VALUES", 2)
    data = PrivateData()
    data.read_answer("/clipboard", {"text": "1111111, 2222222, 3333333"})
    assert [data.is_in(text) for text in ("1111111", "2222222", "3333333")] == [False, True, True]
