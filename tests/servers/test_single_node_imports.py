"""Tests of the modules that servers import for Redis, buckets and PostgreSQL."""

import base64
import re
from pathlib import Path

import pytest

from tests.runtimes.redis_server import RedisServer, needs_redis
from tests.runtimes.store.postgresql_server import needs_postgresql
from tests.servers.program_process import LOCAL, ProgramProcess, call, running, websocket
from tests.support.ports import free_port

TELLS = {"PYTHONPROFILEIMPORTTIME": "1"}  # each imported module is reported, by a new interpreter
NODES = (
    r"svc_proto\.cluster(\..+)?",
    r"svc_proto\.wire\.resp",
    r"svc_proto\.relay\.cluster\.(codes|coordinator|phone_moves|request_forwarding|sessions)|svc_proto\.relay\.media\.object_store",
    r"svc_proto\.api\.cluster\.session_ownership",
    r"servers\.relay_workers|svc_proto\.cli\.worker_supervisor|runtimes\.net\.reuseport_bpf",
    r"redis|hiredis|valkey",
    r"aws_request_signer|boto.*",
    r"psycopg(\..+)?|sqlalchemy\.dialects\.postgresql(\..+)?|runtimes\.store\.search_postgresql",
)
KEY = "sk-alone-1d0f99"
PROGRAMS = {
    **dict.fromkeys(("servers.relay", "servers.api", "servers.dashboard"), ("--host", "127.0.0.1", "--port", "0")),
    "servers": (*LOCAL, "--no-qr"),
}
READY = r"^(relay|api|dashboard): https?://127\.0\.0\.1:(\d+)"


def loaded(program: ProgramProcess) -> list[str]:
    """Return the modules for clusters and shared storage that a program imported, from its `-X importtime` output."""
    found = (re.match(r"import time: .*\| +(\S+)$", line) for line in program.seen)
    names = [match[1] for match in found if match]
    assert len(names) > 100
    return [name for name in names if any(re.fullmatch(pattern, name) for pattern in NODES)]


def use_relay(port: int) -> None:
    """Pair, upload a file, list the sessions, send requests that are refused, and revoke the session."""
    code = call(port, "POST", "/pairing").body["code"]
    with websocket(port) as phone:
        told = phone.sign_in(pairing_code=code, device_name="x", device_id="x", client_surface="android")
        token = told["payload"]["session_token"]
        body = {"content": base64.b64encode(b"PNG").decode(), "content_type": "image/png", "file_name": "a.png"}
        kept = call(port, "POST", "/media/upload", body, token=token)
        assert kept.status == 200, kept.body
        path = f"/media/{kept.body['token']}"
        assert call(port, "GET", "/sessions", token=token).status == 200
        assert call(port, "GET", "/media/" + "x" * 22, token=token).status == 404
        assert call(port, "GET", "/ping?device=y", token=token).status == 404
        assert call(port, "GET", path).status == 401
        assert call(port, "DELETE", f"/sessions/{token}").status == 200


def use_api(port: int) -> None:
    """Create and list a chat, and request an unknown run."""
    made = call(port, "POST", "/api/sessions", {}, token=KEY)
    assert made.status in (200, 201), made.body
    assert call(port, "GET", "/api/sessions", token=KEY).status == 200
    assert call(port, "GET", f"/v1/runs/run_{'0' * 32}", token=KEY).status == 404


@pytest.mark.parametrize("module", PROGRAMS)
def test_single_servers_import_no_cluster_modules(module: str, tmp_path: Path) -> None:
    env = {**TELLS, "API_SERVER_KEY": KEY}
    if module == "servers.dashboard":
        env["SVC_RELAY_PORT"] = str(free_port())  # a relay of the user may run at the usual port
    with running(tmp_path, module, *PROGRAMS[module], env=env) as program:
        for _ in range(3 if module == "servers" else 1):
            found = program.line(READY)
            if found[1] == "dashboard":
                asked = call(int(found[2]), "GET", "/api/plugins/svc-relay/overview")
                assert asked.status == (200 if module == "servers" else 502)  # with and without a relay
            else:
                {"relay": use_relay, "api": use_api}[found[1]](int(found[2]))
        assert program.stop() == 0
    assert loaded(program) == []


@needs_redis
@pytest.mark.parametrize("module", ["servers.relay", "servers.api"])
def test_cluster_settings_import_cluster_modules(module: str, tmp_path: Path) -> None:
    with RedisServer(tmp_path) as redis:
        env = {
            **TELLS, "API_SERVER_KEY": KEY, "SVC_CLUSTER_URL": redis.url,
            "SVC_DATABASE_URL": f"sqlite:///{tmp_path}/svc.db", "API_SERVER_NODE_URL": "http://127.0.0.1:9",
            "SVC_MEDIA_URL": "s3://uploads?endpoint=http://127.0.0.1:9&region=x",
            "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y",
        }  # fmt: skip
        with running(tmp_path, module, *PROGRAMS[module], env=env) as program:
            program.line(READY)
            assert program.stop() == 0
    names = ("coordinator", "phone_moves", "sessions", "request_forwarding")
    relay = [*(f"cluster.{name}" for name in names), "media.object_store"]
    wanted = relay if module == "servers.relay" else ["cluster.session_ownership"]
    room = module.removeprefix("servers.")
    assert {"svc_proto.cluster.node", "svc_proto.wire.resp", *(f"svc_proto.{room}.{name}" for name in wanted)} <= {
        *loaded(program)
    }


@needs_postgresql
def test_a_postgresql_url_imports_the_driver(tmp_path: Path) -> None:
    env = {**TELLS, "SVC_DATABASE_URL": f"postgresql://svc@127.0.0.1:{free_port()}/svc"}
    with running(tmp_path, "servers.relay", *PROGRAMS["servers.relay"], env=env) as program:
        program.line("^error: cannot open the store")
        assert program.wait() == 2
    assert {"psycopg", "sqlalchemy.dialects.postgresql"} <= {*loaded(program)}
