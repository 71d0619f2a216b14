"""Tests of local routes under the default settings, called by other users of the host and through their proxies.

Root alone can start programs of other users. nginx and Caddy are real; for Traefik, curl sends the headers it adds.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from tests.servers.program_process import LOCAL, SYSTEM_PATH, ProgramProcess, call, environment, ports_of, running
from tests.servers.proxies import in_front
from tests.support.forkserver import python, run

ROUTES = (("POST", "/pairing"), ("POST", "/pairing/mint"), ("GET", "/relay/security"), ("GET", "/bridge/activity"))
TO = "proxy_pass http://127.0.0.1:PORT; proxy_http_version 1.1;"
UPGRADE = "proxy_set_header Upgrade $http_upgrade;"
OTHER_USER = 65534  # uid of the user without files of its own
HOST = "proxy_set_header Host $host;"
MAP = "map $http_upgrade $connection_upgrade { default upgrade; '' close; }"
KEPT = "upstream there { server 127.0.0.1:PORT; keepalive 16; }"
SILENT = "\n".join(f"header_up -{name}" for name in ("X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Via"))
PROXIES = {
    "nginx": ("nginx", "location / { proxy_pass http://127.0.0.1:PORT; }", ""),
    "nginx, upgrade": ("nginx", f'location / {{ {TO} {UPGRADE} proxy_set_header Connection "upgrade"; }}', ""),
    "nginx, map": ("nginx", f"location / {{ {TO} {UPGRADE} proxy_set_header Connection $connection_upgrade; }}", MAP),
    "nginx, map, host": (
        "nginx",
        f"location / {{ {TO} {UPGRADE} {HOST} proxy_set_header Connection $connection_upgrade; }}",
        MAP,
    ),
    "nginx, keepalive": (
        "nginx",
        'location / { proxy_pass http://there; proxy_http_version 1.1; proxy_set_header Connection ""; }',
        KEPT,
    ),
    "caddy": ("caddy", "http://127.0.0.1:{port} {\nreverse_proxy 127.0.0.1:PORT\n}", ""),
    "caddy without its headers": (
        "caddy",
        f"http://127.0.0.1:{{port}} {{\nreverse_proxy 127.0.0.1:PORT {{\n{SILENT}\n}}\n}}",
        "",
    ),
}
# Headers that Traefik 3 adds to each request. Without `passHostHeader` it sends the server's address as `Host`.
TRAEFIK = {
    "X-Forwarded-For": "203.0.113.5",
    "X-Forwarded-Host": "home.example",
    "X-Forwarded-Port": "443",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Server": "traefik-1",
    "X-Real-Ip": "203.0.113.5",
}
pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root starts programs of other users"
)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ProgramProcess, dict[str, int], Path]]:
    """Start relay, API and dashboard on free ports, without settings; yield the program, their ports and the home."""
    home = tmp_path_factory.mktemp("other-users")
    with running(home, "servers", *LOCAL, "--no-qr") as started:
        yield started, ports_of(started), home


@pytest.mark.parametrize("name", PROXIES)
def test_proxies_of_other_users_open_no_local_route(
    name: str, servers: tuple[ProgramProcess, dict[str, int], Path]
) -> None:
    kind, block, around = PROXIES[name]
    if which(kind, path=SYSTEM_PATH) is None:
        pytest.skip(f"{kind} is not installed")
    _, ports, _ = servers
    with tempfile.TemporaryDirectory() as temporary:
        Path(temporary).chmod(0o755)
        for server in ("relay", "dashboard"):
            blocks = [text.replace("PORT", str(ports[server])) for text in (block, around)]
            with in_front(Path(temporary) / server, kind, *blocks, user=OTHER_USER) as port:
                if server == "relay":
                    assert call(port, "GET", "/health").status == 200
                    for method, path in ROUTES:
                        assert call(port, method, path).status == 403, path
                    assert call(port, "GET", "/sessions").status == 401
                else:
                    assert call(port, "GET", "/").status == 403
                    assert call(port, "GET", "/api/plugins/svc-relay/overview").status == 403


@pytest.mark.parametrize(
    ("user", "names"), [(OTHER_USER, tuple(TRAEFIK)), (None, tuple(TRAEFIK)), *((None, (name,)) for name in TRAEFIK)]
)
def test_traefik_opens_no_local_route(
    user: int | None, names: tuple[str, ...], servers: tuple[ProgramProcess, dict[str, int], Path]
) -> None:
    _, ports, _ = servers
    headers = [word for name in names for word in ("-H", f"{name}: {TRAEFIK[name]}")]
    paths = [("relay", *route) for route in ROUTES]
    paths += [("dashboard", "GET", path) for path in ("/", "/api/plugins/svc-relay/overview")]
    paths.append(("api", "GET", "/metrics"))
    curl = ["curl", "-s", "--no-progress-meter"]
    for server, method, path in paths:
        url = f"http://127.0.0.1:{ports[server]}{path}"
        curl += [*headers, "-X", method, "-o", "/dev/null", "-w", "%{http_code} ", url, "--next"]
    answer = subprocess.run(curl[:-1], capture_output=True, text=True, check=True, user=user, cwd="/").stdout
    assert answer.split() == ["403"] * len(paths)


def test_a_second_user_of_the_host_is_refused_with_the_remedy(
    servers: tuple[ProgramProcess, dict[str, int], Path],
) -> None:
    _, ports, _ = servers
    for port, path in ((ports["relay"], "/relay/security"), (ports["dashboard"], "/api/plugins/svc-relay/overview")):
        assert call(port, "GET", path).status == 200
        curl = ["curl", "-s", "-w", "%{http_code}", f"http://127.0.0.1:{port}{path}"]
        answer = subprocess.run(curl, capture_output=True, text=True, check=True, user=OTHER_USER, cwd="/").stdout
        assert answer.endswith("403")
        assert "call it as that user" in answer
    curl = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"http://127.0.0.1:{ports['api']}/metrics"]
    statuses = [
        subprocess.run(curl, capture_output=True, text=True, check=True, user=user, cwd="/").stdout
        for user in (None, OTHER_USER)
    ]
    assert statuses == ["200", "403"]


def test_a_public_route_leaves_the_dashboard_to_its_owner(servers: tuple[ProgramProcess, dict[str, int], Path]) -> None:
    _, ports, home = servers
    env = environment(home, {"RELAY_PORT": str(ports["relay"]), "RELAY_HOST": "127.0.0.1"})
    public = python("clients.commands.svc", "pair", "--json", "--public-url", "https://home.example/relay")
    assert run(public, env=env, capture_output=True, text=True, timeout=60).returncode == 0
    assert call(ports["relay"], "POST", "/pairing").status == 403
    for path in ("overview", "sessions", "bridge-activity", "media"):
        assert call(ports["dashboard"], "GET", f"/api/plugins/svc-relay/{path}").status == 200
    status = run(python("clients.commands.svc", "status"), env=env, capture_output=True, text=True, timeout=60)
    assert "svc relay public-route off" in status.stdout
    off = python("clients.commands.svc", "relay", "public-route", "off")
    told = run(off, env=env, capture_output=True, text=True, timeout=60)
    assert (told.returncode, told.stdout.splitlines()[0][:21]) == (0, "Programs of this host")
    assert call(ports["relay"], "POST", "/pairing").status == 200
    for _ in ("without a public route", "with one"):
        with running(home / "again", "servers", *LOCAL, "--no-qr", env={"SVC_HOME": str(home / "svc2")}) as fresh:
            fresh.line("^dashboard: http")
        (home / "svc2" / "public-route").write_text("a public route\n")
