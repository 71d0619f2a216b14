"""Tests of the real servers behind real proxies, and without one."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

import pytest

from svc_proto.cli.public_url_check import LOCAL_ROUTES
from svc_proto.dashboard.access import CROSS_SITE_TEXT
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.local_secret import HEADER, LOCAL_SECRET
from tests.servers.program_process import ROOT, SYSTEM_PATH, call, ports_of, run_program, running, sign_in, websocket
from tests.servers.proxies import in_front

LOCAL = ("--host", "127.0.0.1", "--port", "0", "--api-port", "0", "--dashboard-port", "0", "--no-qr")
PASSWORD = "correct horse"
KNOWN = {"authorization": "Basic " + base64.b64encode(f":{PASSWORD}".encode()).decode()}
LOCAL_ACCESS = (RelayAccess.LOOPBACK, RelayAccess.LOOPBACK_OR_BEARER, RelayAccess.LOCAL_OR_NOTIFICATIONS)
KEY = "sk-behind-a-proxy-1"
PATHS = {"API_SERVER_KEY": KEY, "RELAY_ROOT_PATH": "/relay", "SVC_DASHBOARD_ROOT_PATH": "/board"}


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Return kind and text of each nginx or Caddy block on a page of docs."""
    return re.findall(r"```(nginx|caddy)\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


NGINX_FOR_ALL, NGINX_FOR_ONE = blocks_of("howto/nginx.md")
CADDY_FOR_ALL, CADDY_FOR_ONE = blocks_of("howto/caddy.md")
SHORT = [CADDY_FOR_ONE, *blocks_of("explanation/local-access.md")]


@contextmanager
def proxy(folder: Path, kind: str, block: str, relay: int, api: int = 0, dashboard: int = 0) -> Iterator[int]:
    """Run a proxy with a block from docs; yield its port.

    The ports of the arguments replace the documented ones; the proxy's own URL on 127.0.0.1 replaces host names.
    """
    here: dict[str, object] = {"8767": relay, "8642": api, "9119": dashboard}
    here |= dict.fromkeys(("relay.example", "home.example"), "http://127.0.0.1:{port}")
    for there, name in here.items():
        block = block.replace(there, str(name))
    with in_front(folder, kind, block) as port:
        yield port


def local_access_is_refused(port: int, root: str = "") -> None:
    routes = [route for route in Relay(RelayConfig()).router.routes if route.access in LOCAL_ACCESS]
    assert len(routes) > 10
    for route in routes:
        path = root + route.pattern.replace("{token_prefix}", "abcd")
        assert call(port, route.method, path).status in (401, 403), route
    assert call(port, "GET", f"{root}/health").status == 200


def diagnosed(home: Path, url: str) -> tuple[int, dict[str, str | None]]:
    """Run `svc doctor` for a public URL; return its exit code, and what its checks of that URL found, by code."""
    done = run_program(home, "clients.commands.svc", "doctor", "--public-url", url, "--json")
    assert done.stderr == ""
    checks = json.loads(done.stdout)["checks"]
    return done.returncode, {each["code"]: each["found"] for each in checks if each["code"].startswith("public_")}


def needs(kind: str) -> None:
    if which(kind, path=SYSTEM_PATH) is None:
        pytest.skip(f"{kind} is not installed")


@pytest.mark.parametrize(("kind", "block"), SHORT, ids=["caddy", "nginx", "nginx with sockets"])
def test_the_shortest_blocks_open_no_local_route(kind: str, block: str, tmp_path: Path) -> None:
    needs(kind)
    with running(tmp_path, "servers", *LOCAL) as servers:
        ports = ports_of(servers)
        assert call(ports["relay"], "POST", "/pairing").status == 200  # direct access works
        with proxy(tmp_path / "relay", kind, block, ports["relay"]) as port:
            local_access_is_refused(port)
        with proxy(tmp_path / "board", kind, block, ports["dashboard"]) as port:
            for path in ("/", "/api/plugins/svc-relay/overview", "/api/agent/sessions"):
                assert call(port, "GET", path).status == 403
            assert call(port, "POST", "/api/plugins/svc-relay/pairing").status == 403


@pytest.mark.parametrize(("kind", "block"), [NGINX_FOR_ONE, CADDY_FOR_ONE], ids=["nginx", "caddy"])
def test_phones_and_the_owner_have_access(kind: str, block: str, tmp_path: Path) -> None:
    needs(kind)
    env = {"RELAY_TRUST_PROXY_HEADERS": "1", "SVC_DASHBOARD_PASSWORD": PASSWORD}
    with running(tmp_path, "servers", *LOCAL, env=env) as servers:
        ports = ports_of(servers)
        secret = {HEADER.decode(): (tmp_path / "svc" / LOCAL_SECRET).read_text()}
        with proxy(tmp_path / "relay", kind, block, ports["relay"]) as port:
            local_access_is_refused(port)
            assert call(port, "POST", "/pairing", headers=secret).status == 403
            assert call(ports["relay"], "POST", "/pairing").status == 403
            code = call(ports["relay"], "POST", "/pairing", headers=secret).body["code"]
            token = sign_in(port, pairing_code=code)["session_token"]
            assert sign_in(port, session_token=token)["session_token"] == token
            assert [each["is_current"] for each in call(port, "GET", "/sessions", token=token).body["sessions"]] == [
                True
            ]
        with proxy(tmp_path / "board", kind, block, ports["dashboard"]) as port:
            overview = "/api/plugins/svc-relay/overview"
            assert call(port, "GET", overview).status == 401
            assert call(port, "GET", overview, headers=KNOWN).body["session_count"] == 1


@pytest.mark.parametrize(("kind", "block"), [NGINX_FOR_ALL, CADDY_FOR_ALL], ids=["nginx", "caddy"])
def test_one_name_for_all(kind: str, block: str, tmp_path: Path) -> None:
    needs(kind)
    env = {"RELAY_TRUST_PROXY_HEADERS": "1", "SVC_DASHBOARD_PASSWORD": PASSWORD, **PATHS}
    with running(tmp_path, "servers", *LOCAL, env=env) as servers:
        ports = ports_of(servers)
        secret = {HEADER.decode(): (tmp_path / "svc" / LOCAL_SECRET).read_text()}
        with proxy(tmp_path / "proxy", kind, block, **ports) as port:
            local_access_is_refused(port, "/relay")
            assert call(port, "POST", "/relay/pairing", headers=secret).status == 403
            code = call(ports["relay"], "POST", "/pairing", headers=secret).body["code"]
            token = ""
            for path in ("/relay", "/relay/ws"):  # route syntax of desktops and of phones in an invite
                shown = {"session_token": token} if token else {"pairing_code": code}
                with websocket(port, path=path) as ws:
                    payload = ws.sign_in(**shown)["payload"]
                    assert payload["transport_hint"] == "ws"
                    token = payload["session_token"]
            assert call(port, "GET", "/relay/sessions", token=token).status == 200

            assert call(port, "GET", "/v1/models").status == 401
            assert call(port, "GET", "/v1/models", token=KEY).status == 200

            assert call(port, "GET", "/board/api/plugins/svc-relay/overview").status == 401
            # The header fields of a page of the same origin, as a browser sends them.
            page = {**KNOWN, "origin": f"http://127.0.0.1:{port}", "sec-fetch-site": "same-origin"}
            overview = call(port, "GET", "/board/api/plugins/svc-relay/overview", headers=page)
            assert overview.body["session_count"] == 1
            assert call(port, "POST", "/board/api/agent/sessions", {}, headers=page).status == 201
            code, found = diagnosed(tmp_path, f"http://127.0.0.1:{port}")
            plain = found.pop("public_plain")  # this proxy has no TLS
            assert plain is not None
            assert plain.startswith("encryption: none")
            assert (code, set(found.values())) == (1, {None})
            other = {**KNOWN, "origin": "http://127.0.0.1:1"}
            assert call(port, "POST", "/board/api/agent/sessions", {}, headers=other).status == 403


USUAL = """
proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";
proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
proxy_set_header X-Forwarded-Proto $scheme;
location / { proxy_pass http://127.0.0.1:9119; }
location /relay/ { proxy_pass http://127.0.0.1:8767; }
location /r2 { proxy_pass http://127.0.0.1:8767/; }
location /r3 { proxy_pass http://127.0.0.1:8767/relay/; }
location /old { return 301 https://$host:8443/relay/; }
"""


def test_usual_nginx_blocks(tmp_path: Path) -> None:
    needs("nginx")
    env = {"RELAY_TRUST_PROXY_HEADERS": "1", "SVC_DASHBOARD_PASSWORD": PASSWORD, "RELAY_ROOT_PATH": "/relay"}
    with running(tmp_path, "servers", *LOCAL, env=env) as servers:
        ports = ports_of(servers)
        secret = {HEADER.decode(): (tmp_path / "svc" / LOCAL_SECRET).read_text()}
        with proxy(tmp_path / "proxy", "nginx", USUAL, **ports) as port:
            assert call(port, "GET", "/r2/health").status == 200  # the relay receives //health
            local_access_is_refused(port, "/r2")

            def paired(path: str, code: str = "Q7M2ZK") -> tuple[int, str]:
                words = ("pair", code, "--remote", f"ws://127.0.0.1:{port}{path}")
                done = run_program(tmp_path, "clients.commands.svc_relay", *words)
                return done.returncode, done.stderr

            for path in ("/relay", "/relay/", "/r2", "/r2/", "/r3"):
                code = call(ports["relay"], "POST", "/pairing", headers=secret).body["code"]
                assert paired(path, code) == (0, ""), path
            there = "it sends callers on to https://127.0.0.1:8443/relay/ (status 301)"
            assert paired("/old") == (
                1, f"error: ws://127.0.0.1:{port}/old does not open a WebSocket: {there}; is it really a relay?\n",
            )  # fmt: skip

            page = {**KNOWN, "origin": f"https://127.0.0.1:{port}"}

            def written(**said: str) -> tuple[int, object]:
                answer = call(port, "POST", "/api/agent/sessions", {}, headers=page | {"sec-fetch-site": "", **said})
                return answer.status, answer.body.get("detail")

            assert written(**{"sec-fetch-site": "same-origin"}) == (201, None)
            assert written(**{"sec-fetch-site": "cross-site"}) == (403, CROSS_SITE_TEXT)
            assert written() == (403, CROSS_SITE_TEXT)


def test_no_proxy_at_all(tmp_path: Path) -> None:
    """Without a proxy, the doctor reports local routes as open, as its requests are local, and an API without a key."""
    with running(tmp_path, "servers", *LOCAL) as servers:
        ports = ports_of(servers)
        code, found = diagnosed(tmp_path, f"http://127.0.0.1:{ports['api']}")
        assert code == 1
        routes = ", ".join(map(" ".join, LOCAL_ROUTES))
        assert found["public_open"] == f"local routes: open to every caller on this way: {routes}"
        assert found["public_websocket"] is None
        assert str(found["public_unreachable"]).endswith("the API has no key: every caller may use the agent")
        assert call(ports["relay"], "GET", "/sessions").body["sessions"] == []  # no session is left
