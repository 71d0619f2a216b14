"""Metrics of the relay: phones, sockets, commands and codes."""

from svc_proto.basics.metrics import HistogramSnapshot, MetricFamily
from svc_proto.machines.bridge_commands import BridgeTrigger
from svc_proto.relay.metrics import relay_metrics
from tests.relay.harness import REMOTE, RelayHarness


def shown(book: RelayHarness) -> dict[str, MetricFamily]:
    return {family.name: family for family in relay_metrics(book.relay)}


def number(book: RelayHarness, name: str, *labels: str) -> float:
    value = dict(shown(book)[name].values)[labels]
    assert not isinstance(value, HistogramSnapshot)
    return value


def test_sockets_sessions_voice_and_refused_codes_are_counted(book: RelayHarness) -> None:
    assert number(book, "svc_phones") == number(book, "svc_sessions") == number(book, "svc_sockets", "client") == 0
    phone = book.pair(client_surface="android").phone
    assert number(book, "svc_phones") == number(book, "svc_sessions") == number(book, "svc_sockets", "client") == 1
    phone.close()
    assert (number(book, "svc_phones"), number(book, "svc_sessions")) == (0, 1)
    assert number(book, "svc_sockets", "terminal") == number(book, "svc_sockets", "tui") == 0
    book = RelayHarness()
    assert [labels for labels, _ in shown(book)["svc_sockets"].values] == [("client",), ("terminal",), ("tui",)]
    book.request("GET", "/voice/config")
    channels = {f"voice:{family}": 0.0 for family in ("output", "lab", "agent")}
    assert {labels[0]: value for labels, value in shown(book)["svc_sockets"].values if ":" in labels[0]} == channels
    book = RelayHarness()
    for _ in range(2):
        assert book.websocket(peer=REMOTE).auth(pairing_code="WRONG1")["type"] == "auth.fail"
    assert book.websocket(peer=REMOTE).auth(session_token="x" * 32)["type"] == "auth.fail"
    assert number(book, "svc_pairing_codes_refused") == 2


def test_commands_by_outcome_and_time(book: RelayHarness) -> None:
    paired = book.pair(client_surface="android")
    for status in (200, 500):
        call = book.call("GET", "/ping", token=paired.token)
        assert number(book, "svc_bridge_commands_waiting") == 1
        book.after(0.2)
        paired.phone.reply(paired.phone.command(), status, {})
        assert call.result.status == status
    assert number(book, "svc_bridge_commands", "success") == number(book, "svc_bridge_commands", "failure") == 1
    ((_, took),) = shown(book)["svc_bridge_command_duration_seconds"].values
    assert isinstance(took, HistogramSnapshot)
    assert (sum(took.counts), took.counts[6], round(took.total, 6)) == (2, 2, 0.4)
    book.call("GET", "/ping", token=paired.token)
    book.after(30.0)
    assert number(book, "svc_bridge_commands", "thirty seconds") == 1
    outcomes = {labels[0] for labels, _ in shown(book)["svc_bridge_commands"].values}
    assert outcomes == {trigger.value for trigger in BridgeTrigger}
