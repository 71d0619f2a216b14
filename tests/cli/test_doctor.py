import json

import pytest
from attrs import evolve

from svc_proto.cli.doctor import finding_lines, findings_json, run_checks
from svc_proto.cli.health_facts import Finding
from svc_proto.cli.session_store import StoredSession, UpdateSession, apply_change, record_members
from svc_proto.facts import Failure, FailureKind
from tests.cli.harness import LAN, PUBLIC, REFUSED, ROUTES, OneShotHarness, Reply, UpstreamRequest, as_json
from tests.support.playbook import START

SESSION = StoredSession(url=LAN, token="t0ken-1234", expires_at=START.wall + 30 * 86_400)
MANY = evolve(SESSION, candidates=ROUTES)


def well(asked: UpstreamRequest) -> Reply:
    return as_json({"status": "ok", "version": "1.0.0"})


def found(text: object, http: object = well, only: str | None = None) -> list[tuple[str, str]]:
    world = OneShotHarness(
        lambda engine: run_checks(engine, only),
        http=http,  # type: ignore[arg-type] # one of the functions here
        compute={"sessions.read": lambda: text},
    )
    findings = world.run()
    assert all(finding.remedy or finding.verdict != "failure" or finding.text for finding in findings)
    return [(finding.verdict, finding.text) for finding in findings]


def file(*sessions: StoredSession) -> str:
    text = ""
    for session in sessions:
        text = apply_change(text, UpdateSession(session.url, record_members(session)))
    return text


def test_all_checks_pass() -> None:
    assert found(file(SESSION)) == [
        ("ok", "can be read"),
        ("ok", "the session expires in 30d"),
        ("ok", "answers in 0 ms, version 1.0.0"),
        ("ok", "the relay knows this session"),
    ]


@pytest.mark.parametrize(
    ("text", "verdict", "says"),
    [
        ("{", "failure", "is damaged"),
        (Failure(FailureKind.DENIED), "failure", "cannot be read: permission denied"),
        ("", "ok", "can be read"),
    ],
)
def test_the_file(text: object, verdict: str, says: str) -> None:
    assert found(text) == [(verdict, says), ("warning", "no session is stored")]


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        (evolve(SESSION, expires_at=START.wall), [("failure", "the session has expired")]),
        (evolve(SESSION, expires_at=START.wall + 86_400), [("warning", "the session expires in 1d")]),
        (evolve(SESSION, expires_at=START.wall + 3 * 86_400), [("ok", "the session expires in 3d")]),
        (evolve(SESSION, expires_at=None), [("ok", "the session expires never")]),
        (
            evolve(SESSION, grants={"tui": START.wall, "bridge": 5.0, "chat": None}),
            [("ok", "the session expires in 30d"), ("warning", "grants that are over: bridge, tui")],
        ),
    ],
)
def test_lifetimes(session: StoredSession, expected: list[tuple[str, str]]) -> None:
    assert found(file(session))[1:-2] == expected


def test_unreachable() -> None:
    assert found(file(SESSION), lambda asked: REFUSED)[2:] == [("failure", "cannot be reached: connection refused")]
    assert found(file(SESSION), lambda asked: as_json({"status": "ill"}))[2][0] == "failure"
    untrusted = Failure(FailureKind.TLS, "self-signed")
    compute = {"sessions.read": lambda: file(SESSION)}

    def dial(host: str, port: int) -> Failure:
        return untrusted

    world = OneShotHarness(lambda engine: run_checks(engine, None), http=well, dial=dial, compute=compute)
    assert str(world.run()[2].remedy).startswith("this host does not trust the certificate")


def test_one_of_several_routes() -> None:
    def http(asked: UpstreamRequest) -> Reply:
        return well(asked) if "home.example" in asked.url else REFUSED

    assert [verdict for verdict, _ in found(file(MANY), http)] == ["ok", "ok", "warning", "ok", "ok"]
    assert found(file(MANY), lambda asked: REFUSED)[-1] == ("failure", "no route answers")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((401, b""), "the relay does not know this session any more"),
        ((500, b""), "the relay answers 500"),
        (REFUSED, "the relay at http://192.0.2.1:8767 cannot be reached: connection refused"),
    ],
)
def test_the_session_itself(answer: Reply, expected: str) -> None:
    http = lambda asked: answer if asked.path == "/sessions" else well(asked)  # noqa: E731
    assert found(file(SESSION), http)[-1] == ("failure", expected)


def test_check_of_one_session() -> None:
    both = file(SESSION, evolve(SESSION, url=PUBLIC))
    assert len(found(both, only=PUBLIC)) == 4
    assert found(both, only="ws://z")[-1] == ("warning", "no session is stored")


def test_output_formats() -> None:
    findings = [Finding("a", "ok", "good"), Finding("b", "failure", "bad", "do this")]
    assert finding_lines(findings) == ["✓ a: good", "✗ b: bad", "    do this"]
    assert findings_json(findings)["ok"] is False
    row = {"subject": "a", "verdict": "ok", "text": "good", "remedy": None}
    assert json.loads(json.dumps(findings_json(findings[:1]))) == {"ok": True, "findings": [row]}
