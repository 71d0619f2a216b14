from attrs import evolve

from svc_proto.cli import desktop_output
from svc_proto.cli.desktop_sessions import PairingResult
from svc_proto.cli.session_store import StoredSession
from svc_proto.schema.json_object import JsonObject

NOW = 1_000_000.0
DAY = 86_400.0
PIN = "sha256/ABCDEFGHIJKLMNOP" + "A" * 27 + "="
SESSION = StoredSession(
    url="wss://h",
    token="1c2d3e4f-0000",
    server_version="1.0.0",
    paired_at=int(NOW),
    cert_pin=PIN,
    grants={"tui": None, "bridge": NOW + DAY},
    expires_at=NOW + 30 * DAY,
    role="lan",
)
BARE = StoredSession(url="ws://h:1", token="x")


def test_after_pairing() -> None:
    assert desktop_output.paired_lines(PairingResult(session=SESSION, transport_hint="wss"), "/h/file") == [
        "Paired with wss://h",
        "  Session   1c2d3e4f…, expires in 30d",
        "  Route     lan",
        "  Grants    bridge=in1d tui=never",
        "  Pin       ABCDEFGHIJKL…",
        "  Stored    /h/file",
    ]
    spans = dict.fromkeys(("bridge", "chat", "terminal", "tui", "voice:config", "voice:realtime"), NOW + DAY)
    granted = PairingResult(session=evolve(SESSION, grants=spans), transport_hint="wss")
    assert desktop_output.paired_lines(granted, "/h/file")[3:5] == [
        "  Grants    bridge=in1d chat=in1d terminal=in1d tui=in1d",
        "            voice:config=in1d voice:realtime=in1d",
    ]
    bare = desktop_output.paired_lines(PairingResult(session=BARE, transport_hint="ws"), "/h/file")
    assert len(bare) == 6
    assert bare[3:5] == [
        "  Warning   not encrypted: every host on the way can read",
        "            it, and gets the session token too",
    ]
    assert max(map(len, bare)) <= 60
    for url in ("ws://127.0.0.1:8767", "ws://[::1]:8767", "ws://localhost:8767"):
        here = PairingResult(session=evolve(BARE, url=url), transport_hint="ws")
        assert len(desktop_output.paired_lines(here, "/h/file")) == 4
    found = desktop_output.paired_json(PairingResult(session=SESSION, transport_hint="wss"))
    assert found["token_prefix"] == "1c2d3e4f"
    assert "1c2d3e4f-0000" not in str(found)
    assert desktop_output.paired_json(PairingResult(session=BARE, transport_hint="ws"))["grants"] is None


def test_status() -> None:
    assert desktop_output.status_lines({}, NOW, reveal=False)[0].startswith("Sessions: none stored")
    lines = desktop_output.status_lines({"wss://h": SESSION, "ws://h:1": BARE}, NOW + 61, reveal=False)
    assert lines[:9] == [
        "wss://h",
        "  Server    1.0.0",
        "  Paired    1m ago",
        "  Token     (redacted)",
        "  Expires   in 29d",
        "  Tools     consent not given",
        "  Route     lan",
        "  Grants    bridge=in23h tui=never",
        "  Pin       ABCDEFGHIJKL…",
    ]
    assert lines[9:11] == ["", "ws://h:1"]
    assert "  Token     1c2d3e4f-0000" in desktop_output.status_lines({"wss://h": SESSION}, NOW, reveal=True)


def test_grants() -> None:
    assert desktop_output.grants_text(None, NOW) == "unknown"
    assert desktop_output.grants_text({}, NOW) == "none"
    assert desktop_output.grants_text({"b": NOW, "a": None}, NOW) == "a=never b=expired"


def test_devices() -> None:
    device = {"device_name": "My\x1b[2J desk", "device_model": "unknown", "device_platform": "Linux"}
    device |= {"token_prefix": "1c2d3e4f", "client_surface": "desktop", "device_form_factor": "desktop"}
    session = {"last_seen": NOW - 5, "expires_at": None, "transport_hint": "ws", "grants": {"chat": None}}
    bare = JsonObject({"grants": 7, "last_seen": True})
    away = JsonObject({"online": True, "last_seen": NOW - 900, "device_form_factor": "tablet"})
    found = desktop_output.device_rows([JsonObject({**device, **session, "is_current": True}), bare, away], NOW)
    assert found == [
        ("1c2d3e4f", "My [2J desk (this one)", "Linux, desktop", "5s ago", "never", "ws", "chat=never"),
        ("", "unknown", "-", "-", "never", "", "unknown"),
        ("", "unknown", "tablet", "online", "never", "", "unknown"),
    ]
    lines = desktop_output.table(desktop_output.DEVICE_COLUMNS, found)
    assert lines[0].split("  ")[0] == "PREFIX"
    assert lines[0].index("DEVICE") == lines[1].index("My")


def test_a_table_on_a_narrow_terminal() -> None:
    rows = [("1c2d3e4f", "Pixel 8", "bridge=in7d chat=in30d terminal=in30d"), ("aaaabbbb", "", "none")]
    columns = ("PREFIX", "DEVICE", "GRANTS")
    wide = desktop_output.table(columns, rows)
    assert desktop_output.table(columns, rows, max(map(len, wide))) == wide
    assert (desktop_output.table(("A", "BC"), [], 1), desktop_output.table(("A", "BC"), [])) == ([], ["A  BC"])
    for width in (40, 5):
        lines = desktop_output.table(columns, rows, width)
        assert max(map(len, lines)) <= max(width, 24)
    assert desktop_output.table(columns, rows, 40) == [
        "1c2d3e4f",
        "  Device  Pixel 8",
        "  Grants  bridge=in7d chat=in30d",
        "          terminal=in30d",
        "aaaabbbb",
        "  Device",
        "  Grants  none",
    ]
