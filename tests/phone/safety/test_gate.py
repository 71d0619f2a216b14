"""The safety gates: refusals in the specified order, confirmations, and permitted commands."""

from collections.abc import Callable

import pytest

from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, DelayedReply, PhoneCommand
from svc_proto.phone.safety.blocklist import Blocklist
from svc_proto.phone.safety.confirmation import AwaitingConfirmation, TrustedActions
from svc_proto.phone.safety.destructive_verbs import DestructiveVerbs
from svc_proto.phone.safety.gate import MAX_UPLOADS, SafetyGate
from svc_proto.phone.safety.master_toggle import MasterState, MasterTrigger
from tests.phone.safety.scripted_backend import (
    ALL_ROUTES,
    ASKING,
    BANK,
    DENIED,
    FREE,
    MASTERLESS,
    NOW,
    OK,
    PICTURE,
    ScriptedBackend,
    check_gate,
    command,
    gate_of,
    gated,
    later,
    refused,
)

# --- gates --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ALL_ROUTES)
def test_with_all_permissions_only_four_routes_need_confirmation(path: str) -> None:
    backend = ScriptedBackend()
    outcome = gate_of(backend).execute(command(path), NOW)
    assert (outcome, len(backend.asked)) == ((AwaitingConfirmation("c1"), 0) if path in ASKING else (OK, 1))


@pytest.mark.parametrize("path", ALL_ROUTES)
@pytest.mark.parametrize(
    ("flavor", "master", "accessible", "free", "status", "told"),
    [
        (
            *("googlePlay", True, True, FREE | {"/events", "/setup"}, 403),
            {
                "error": "Device Control exists only in the sideload build of this app",
                "error_code": "device_control_sideload_only",
                "flavor": "googlePlay",
            },
        ),
        ("sideload", True, False, FREE, 503, {"error_code": "service_unavailable"}),
        ("sideload", False, True, FREE | MASTERLESS, 403, {"error_code": "bridge_disabled"}),
    ],
    ids=["store build", "no accessibility", "master off"],
)
def test_routes_without_a_gate_are_permitted(
    flavor: str, master: bool, accessible: bool, free: set[str], status: int, told: dict[str, object], path: str
) -> None:
    backend, gate = gated(flavor=flavor, master=master)
    gate.set_accessibility(accessible)
    if path in free:
        assert gate.execute(command(path), NOW) == OK
        return
    reply = refused(gate, backend, command(path))
    assert reply.status == status
    assert told.items() <= reply.result.items()
    assert reply.result["error"]
    assert flavor == "googlePlay" or reply.result["required_action"]


@pytest.mark.parametrize("path", ALL_ROUTES)
def test_with_a_blocked_app_in_front(path: str) -> None:
    backend = ScriptedBackend(foreground=BANK)
    gate = gate_of(backend)
    if path in FREE:
        assert gate.execute(command(path), NOW) == OK
        return
    reply = refused(gate, backend, command(path))
    more = {"status": "blocked", "reason": "blocked_package"} if path in ("/share_media", "/send_mms") else {}
    assert reply == CommandReply(403, {"error": f"blocked package {BANK}", **more})


@pytest.mark.parametrize("path", ["/open_app", "/send_intent", "/broadcast", "/share_media", "/send_mms"])
def test_a_blocked_target(path: str) -> None:
    backend = ScriptedBackend()
    reply = refused(gate_of(backend), backend, command(path, package=BANK))
    assert (reply.status, reply.result["error"]) == (403, f"blocked package {BANK}")


def test_first_refusing_gate_is_named() -> None:
    backend = ScriptedBackend(foreground=BANK)
    gate = gate_of(backend)
    gate.set_capture_consent(False)
    gate.set_accessibility(False)
    for _ in range(2):  # the second call changes nothing
        assert not gate.set_master(False, NOW)
    asked = command("/screenshot")
    assert refused(gate, backend, asked).result["error_code"] == "bridge_disabled"  # spec gate 2
    gate.set_accessibility(True)
    gate.set_master(True, NOW)
    gate.set_accessibility(False)
    assert refused(gate, backend, asked).result["error_code"] == "service_unavailable"  # 3
    gate.set_accessibility(True)
    assert refused(gate, backend, asked).status == 500  # 4
    gate.set_capture_consent(True)
    assert "blocked package" in str(refused(gate, backend, asked).result["error"])  # 5


@pytest.mark.parametrize("path", ["/nothing", "/tap/", "/TAP", "tap", "", "/events/", "/return_to_me"])
def test_unknown_route_is_not_performed(path: str) -> None:
    backend = ScriptedBackend()
    assert refused(gate_of(backend, master=False), backend, command(path)).status == 403
    assert refused(gate_of(backend), backend, command(path)).status == 404


# --- confirmations ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        command("/tap_text", text="Send"),
        command("/tap_text", text="please pay-now"),
        command("/tap", nodeId="w0:1"),
        command("/long_press", node_id="w0:1"),
        command("/tap", x=1, y=2, text="Buy"),
        command("/call", number="+1"),
    ],
)
def test_allowed_once(asked: PhoneCommand) -> None:
    backend = ScriptedBackend(texts={"w0:1": "Delete"})
    gate = gate_of(backend)
    key = check_gate(gate, asked)
    assert backend.asked == []
    assert [each.command for each in gate.confirmations()] == [asked]
    assert gate.next_deadline() == NOW.mono + 25
    assert gate.decide(key, allow=True, now=later(1)) == ("r1", CommandReply(200, {"ok": True, "confirmed": True}))
    assert gate.decide(key, allow=True, now=later(1)) is None
    assert backend.asked == [asked]
    assert gate.execute(PhoneCommand(asked.method, asked.path, asked.body, "r2"), later(2)) == AwaitingConfirmation(
        "c2"
    )


def test_denied() -> None:
    backend, gate = gated()
    key = check_gate(gate, command("/tap_text", text="Send"))
    answer = gate.decide(key, allow=False, remember=True, now=NOW)
    assert answer is not None
    assert isinstance(answer[1], CommandReply)
    assert (answer[0], answer[1].status) == ("r1", 403)
    assert DENIED.items() <= answer[1].result.items()
    assert gate.trust.verbs == ()
    assert gate.decide(key, allow=True, now=NOW) is None
    assert backend.asked == []


def test_timed_out() -> None:
    backend, gate = gated(confirmation_timeout=1)
    key = check_gate(gate, command("/call", number="+1"))
    check_gate(gate, command("/call", "r2", number="+2"))
    assert gate.advance(later(9.9)) == []
    assert gate.decide(key, allow=True, now=later(10)) is None
    assert gate.next_deadline() == later(10).mono
    (first, reply), (second, _) = gate.advance(later(11))
    assert isinstance(reply, CommandReply)
    assert (first, second, reply.status) == ("r1", "r2", 403)
    assert DENIED.items() <= reply.result.items()
    assert gate.advance(later(12)) == []
    assert backend.asked == []


def test_trusted_verbs_and_actions_need_no_confirmation() -> None:
    _, gate = gated()
    gate.decide(check_gate(gate, command("/tap_text", text="Send")), allow=True, remember=True, now=NOW)
    assert gate.execute(command("/tap_text", text="send it"), NOW) == OK
    check_gate(gate, command("/tap_text", text="send and delete"))  # another verb beside a trusted one
    check_gate(gate, command("/send_sms", "r2", to="+1", body="send it"))  # an action is not a verb
    gate.trust.reset()
    check_gate(gate, command("/tap_text", "r3", text="send it"))
    backend, gate = gated()
    gate.decide(check_gate(gate, command("/call", number="+1")), allow=True, remember=True, now=NOW)
    assert gate.execute(command("/call", number="+2"), NOW) == OK
    check_gate(gate, command("/send_sms", "r2"))
    backend.asked.clear()
    backend.foreground = BANK
    assert refused(gate, backend, command("/call")).status == 403


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ("accessibility", 503, "service_unavailable"),
        ("foreground", 403, None),
        ("blocklist", 403, None),
        ("keyguard", 423, "keyguard_blocked"),
        ("text", 403, "screen_changed"),
        ("app", 403, "screen_changed"),
    ],
)
def test_allowed_command_passes_every_gate_again(change: str, status: int, code: str | None) -> None:
    backend = ScriptedBackend(texts={"w0:1": "Send"})
    gate = gate_of(backend)
    gate.set_unattended(True)
    key = check_gate(gate, command("/tap", nodeId="w0:1"))
    match change:
        case "accessibility":
            gate.set_accessibility(False)
        case "foreground":
            backend.foreground = BANK
        case "blocklist":
            gate.blocklist.add(backend.foreground)
        case "keyguard":
            backend.usable = False
        case "text":
            backend.texts["w0:1"] = "Send all my money"
        case "app":
            backend.foreground = "com.example.other"
    answer = gate.decide(key, allow=True, now=NOW)
    assert answer is not None
    assert isinstance(answer[1], CommandReply)
    assert (answer[1].status, answer[1].result.get("error_code")) == (status, code)
    assert "confirmed" not in answer[1].result
    assert backend.asked == []


def test_master_off_withdraws_pending_confirmations() -> None:
    backend, gate = gated()
    key = check_gate(gate, command("/call"))
    check_gate(gate, command("/call", "r2"))
    gate.set_master(False, NOW)
    gate.set_master(True, NOW)
    assert not gate.view(NOW).screen_capture_granted
    assert gate.decide(key, allow=True, now=NOW) is None
    (first, reply), (second, _) = gate.advance(NOW)
    assert isinstance(reply, CommandReply)
    assert (first, second, reply.result["error_code"]) == ("r1", "r2", "bridge_disabled")
    assert backend.asked == []


def test_repeated_command_has_one_confirmation_of_sixteen() -> None:
    backend, gate = gated()
    key = check_gate(gate, command("/call", number="+1"))
    assert check_gate(gate, command("/call", number="+1")) == key
    reply = refused(gate, backend, command("/call", number="+2"))
    assert reply.status == 400
    assert len(gate.confirmations()) == 1
    assert check_gate(gate, command("/call", "", number="+1")) != check_gate(gate, command("/call", "", number="+1"))
    backend, gate = gated()
    for number in range(16):
        check_gate(gate, command("/call", f"r{number}"))
    assert refused(gate, backend, command("/call", "more")).status == 503


def test_confirmed_is_added_to_a_later_reply_and_not_to_a_file() -> None:
    backend = ScriptedBackend(answers={"/call": DelayedReply(2.0, CommandReply(200, {"a": 1})), "/send_sms": PICTURE})
    gate = gate_of(backend)
    answer = gate.decide(check_gate(gate, command("/call")), allow=True, now=NOW)
    assert answer == ("r1", DelayedReply(2.0, CommandReply(200, {"a": 1, "confirmed": True})))
    assert gate.decide(check_gate(gate, command("/send_sms")), allow=True, now=NOW) == ("r1", PICTURE)


# --- idle time, the connection, the log -----------------------------------------------------------------------------


def test_lost_connection_ends_pending_commands() -> None:
    backend = ScriptedBackend(answers={"/screenshot": PICTURE})
    gate = gate_of(backend)
    key = check_gate(gate, command("/call"))
    check_gate(gate, command("/call", "r2"))
    gate.execute(command("/screenshot", "r3"), NOW)
    gate.connection_lost()
    assert gate.decide(key, allow=True, now=NOW) is None
    assert gate.advance(later(100)) == []
    assert [(entry.activity_id, entry.status.value) for entry in gate.log.entries()] == [
        ("r3", "Failed"),
        ("r2", "Failed"),
        ("r1", "Failed"),
    ]
    assert [each.path for each in backend.asked] == ["/screenshot"]
    gate.on_uploaded("late", "svc-relay")
    assert [entry.thumbnail_token for entry in gate.log.entries()] == [None, None, None]


@pytest.mark.parametrize(
    ("give_up", "now"),
    [
        (lambda gate: gate.set_master(False, NOW), NOW),
        (lambda gate: gate.set_overlay_permission(False, NOW), NOW),
        (lambda gate: gate.view(later(25)), later(25)),
        (lambda gate: gate.status(later(25)), later(25)),
    ],
    ids=["master off", "no overlay", "view after the deadline", "status after the deadline"],
)
def test_commands_given_up_are_answered_at_once_unless_the_connection_is_lost(
    give_up: Callable[[SafetyGate], object], now: Moment
) -> None:
    for is_lost, answered in ((False, ["r1"]), (True, [])):
        _, gate = gated()
        check_gate(gate, command("/call"))
        give_up(gate)
        due = gate.next_deadline()
        assert due is not None
        assert due <= now.mono
        if is_lost:
            gate.connection_lost()
        assert [request_id for request_id, _ in gate.advance(now)] == answered


def test_abandoned_command_is_not_performed() -> None:
    backend, gate = gated()
    first, second = check_gate(gate, command("/call")), check_gate(gate, command("/call", "r2"))
    assert gate.forget("r2")
    assert not gate.forget("r2")
    assert gate.decide(second, allow=True, now=NOW) is None
    assert gate.decide(first, allow=True, now=NOW) is not None
    assert gate.advance(later(100)) == []
    assert [each.request_id for each in backend.asked] == ["r1"]
    assert [entry.status.value for entry in gate.log.entries()] == ["Failed", "Success"]


def test_process_end_keeps_only_the_settings() -> None:
    backend, gate = gated()
    gate.set_unattended(True)
    key = check_gate(gate, command("/call"))
    gate.process_died()
    view = gate.view(NOW)
    assert (view.master, view.turned_off_by) == (MasterState.OFF, MasterTrigger.PROCESS_DEATH)
    assert (view.screen_capture_granted, view.overlays, view.unattended) == (False, (), True)
    assert gate.decide(key, allow=True, now=NOW) is None
    assert gate.advance(later(100)) == []
    assert refused(gate, backend, command("/screen")).status == 403
    gate.process_died()


def test_every_command_is_logged() -> None:
    gate = gate_of(ScriptedBackend(answers={"/wait": DelayedReply(1.0, OK)}))
    for path in ALL_ROUTES:
        gate.execute(command(path, path), NOW)
    logged = [(f"/{entry.method}", entry.status.value) for entry in reversed(gate.log.entries())]
    assert logged == [(path, "Pending" if path in ASKING else "Success") for path in ALL_ROUTES]
    gate.advance(later(25))
    assert {entry.method for entry in gate.log.entries() if entry.status.value == "Blocked"} == {
        path[1:] for path in ASKING
    }
    backend, gate = gated()
    reply = refused(gate, backend, command("/send_sms", to="+1 1", body="hello", cc="+1 900"))
    assert reply.status == 400
    (entry,) = gate.log.entries()
    assert entry.status.value == "Failed"
    assert len(set(ALL_ROUTES)) == len(ALL_ROUTES) == 34 + 1  # with the second spelling


def test_screenshots_are_logged_with_their_tokens() -> None:
    gate = gate_of(ScriptedBackend(answers={"/screenshot": PICTURE}))
    for request_id in ("r1", "r2"):
        assert gate.execute(command("/screenshot", request_id), NOW) == PICTURE
    reply = CommandReply(200, {"media": "MEDIA:svc-relay://t2"})
    assert gate.on_uploaded("t2", "svc-relay", request_id="r2") == reply
    gate.on_uploaded("t1", "svc-relay")
    gate.on_uploaded("t0", "svc-relay")
    assert [(each.activity_id, each.thumbnail_token) for each in gate.log.entries()] == [("r2", "t2"), ("r1", "t1")]
    gate = gate_of(ScriptedBackend(answers={"/screenshot": PICTURE}))
    for number in range(MAX_UPLOADS + 1):
        gate.execute(command("/screenshot", f"r{number}"), NOW)
    gate.on_uploaded("t", "svc-relay")
    assert [each.activity_id for each in gate.log.entries() if each.thumbnail_token] == ["r1"]
    gate = gate_of(ScriptedBackend(answers={"/screenshot": PICTURE}))
    gate.execute(command("/screenshot"), NOW)
    for _ in range(2):
        gate.upload_failed("r1", CommandReply(500, {"error": "no token"}))
    gate.on_uploaded("t", "svc-relay")
    (entry,) = gate.log.entries()
    assert (entry.status.value, entry.result_text, entry.thumbnail_token) == ("Failed", "no token", None)


# --- status and the user's view -------------------------------------------------------------------------------------


def test_the_users_own_lists_are_used_even_when_empty() -> None:
    lists = Blocklist(()), DestructiveVerbs(()), TrustedActions()
    gate = SafetyGate(ScriptedBackend(foreground=BANK), blocklist=lists[0], verbs=lists[1], trust=lists[2])
    assert (gate.blocklist, gate.verbs, gate.trust) == lists
    gate.set_accessibility(True)
    gate.set_master(True, NOW)
    assert gate.execute(command("/tap_text", text="Send"), NOW) == OK
