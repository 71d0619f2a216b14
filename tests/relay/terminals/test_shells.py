"""Shells on the host: the program, and its tmux session (wire terminal 1.4, 1.6, 1.7)."""

import pytest

from svc_proto.basics.brand import HERMES
from svc_proto.basics.entropy import sha256_hex
from svc_proto.commands import Level, SignalName, Spawn
from svc_proto.engine.child_process import INHERITED
from svc_proto.engine.flow import Flow
from svc_proto.facts import Started
from svc_proto.relay_config import RelayConfig
from tests.cluster.harness import WHERE
from tests.relay.child_process_harness import (
    ChildProcessHarness,
    Tmux,
    attach,
    attached,
    describe_messages,
    desktop_relay,
    send_and_collect,
)
from tests.relay.coordinator_harness import CoordinatorHarness
from tests.support.core_harness import HOME

SOCKET = "svc-relay-" + sha256_hex("/home/svc")[:12]


@pytest.mark.parametrize(
    ("requested", "usable", "chosen"),
    [
        ("/bin/fish", ("/bin/fish", "/bin/zsh"), "/bin/fish"),
        ("/bin/fish", ("/bin/zsh", "/bin/sh"), "/bin/zsh"),
        ("fish", ("fish", "/opt/sh"), "/opt/sh"),
        (None, ("/bin/bash", "/bin/sh"), "/bin/bash"),
        (5, ("/bin/sh",), "/bin/sh"),
    ],
)
def test_the_first_usable_shell(requested: object, usable: tuple[str, ...], chosen: str) -> None:
    config = RelayConfig(terminal_shell="/opt/sh", user_shell="/bin/zsh")
    book = ChildProcessHarness(config=config)
    book.shells = usable
    assert attach(book.client(), shell=requested)["payload"]["shell"] == chosen


@pytest.mark.parametrize(
    ("shell", "told"), [("/nope/sh", ["configured shell not usable"]), ("/bin/zsh", []), (None, [])]
)
def test_a_configured_shell_that_is_missing_is_reported_at_the_start(shell: str | None, told: list[str]) -> None:
    book = ChildProcessHarness(config=RelayConfig(home=HOME, terminal_shell=shell))
    assert [event for event in book.events(Level.WARNING) if "shell" in event] == told


def test_without_a_usable_shell() -> None:
    book = ChildProcessHarness(config=RelayConfig(user_shell=None))
    book.shells = ()
    answer = attach(book.client())
    assert (answer["type"], answer["payload"]["session_name"]) == ("terminal.error", "default")
    book = ChildProcessHarness(tmux=Tmux())
    book.shells = ()
    (answer,) = send_and_collect(book.client(), "list")
    assert answer["payload"] == {"sessions": [], "tmux_available": True}


def test_a_fresh_tmux_session() -> None:
    book = ChildProcessHarness(tmux=Tmux())
    answer = attach(book.client(), "my work.1")["payload"]
    assert (answer["session_name"], answer["tmux_available"], answer["reattach"]) == ("my work.1", True, False)
    (made,) = book.tmux_commands
    assert made[:7] == ("-f", "/home/svc/tmux.conf", "-u", "new-session", "-d", "-s", "svc-my_work_1")
    assert made[7:11] == ("-x", "80", "-y", "24")
    assert made[11:15] == ("-e", "COLORTERM=truecolor", "-e", "SVC_RELAY_TERMINAL=my work.1")
    assert made[15:] == ("/bin/zsh", "-l")
    argv = book.children[0].order.argv
    assert argv[:5] == ("/usr/bin/tmux", "-L", SOCKET, "-f", "/home/svc/tmux.conf")
    assert argv[5:] == ("-u", "attach-session", "-t", "=svc-my_work_1")  # never created again: it may have been killed


def test_old_and_ending_tmux_servers() -> None:
    tmux = Tmux()
    tmux.makes = False  # before version 3.2 tmux has no `-e`
    book = ChildProcessHarness(tmux=tmux)
    answer = attach(book.client())
    assert (answer["type"], answer["payload"]["reattach"]) == ("terminal.attached", False)
    made, asked, again = book.tmux_commands
    assert (asked, again) == (("has-session", "-t", "=svc-default"), made)
    assert book.children[0].order.argv[5:] == ("-u", "new-session", "-A", "-s", "svc-default", "/bin/zsh", "-l")
    tmux = Tmux()
    refusals = [(1, b"server exited unexpectedly")]
    book = ChildProcessHarness(tmux=lambda argv: refusals.pop() if refusals else tmux(argv))
    assert attach(book.client())["payload"]["reattach"] is False
    assert book.children[0].order.argv[5:] == ("-u", "attach-session", "-t", "=svc-default")


@pytest.mark.parametrize(("login", "mode"), [(False, "-i"), (True, "-l"), ("no", "-l"), (None, "-l")])
@pytest.mark.parametrize("tmux", [False, True])
def test_a_shell_that_is_no_login_shell(login: object, mode: str, tmux: bool) -> None:
    book = ChildProcessHarness(tmux=Tmux() if tmux else None)
    attach(book.client(), login=login)
    words = book.tmux_commands[0] if tmux else book.children[0].order.argv
    assert words[-2:] == ("/bin/zsh", mode)


def test_the_tmux_server_of_the_relay() -> None:
    book = ChildProcessHarness(tmux=Tmux(), config=RelayConfig(brand=HERMES, home="/home/svc"))
    attach(book.client(), "x")
    order = book.children[0].order
    assert "=hermes-x" in order.argv
    assert order.argv[1:3] == ("-L", SOCKET.replace("svc", "hermes"))
    assert ("HERMES_RELAY_TERMINAL", "x") in order.env
    sockets = set()
    for home in ("/home/svc", "/home/svc2"):
        book = ChildProcessHarness(tmux=Tmux(), config=RelayConfig(home=home))
        attach(book.client())
        sockets.add(book.children[0].order.argv[2])
    assert len(sockets) == 2
    book = ChildProcessHarness(tmux=Tmux(), started=False)
    book.conf_written = False
    book.feed(Started())
    attach(book.client())
    assert book.children[0].order.argv[:4] == ("/usr/bin/tmux", "-L", SOCKET, "-u")
    book = ChildProcessHarness(tmux=Tmux(), config=RelayConfig(terminal_tmux=False))
    assert attach(book.client())["payload"]["tmux_available"] is False


@pytest.mark.parametrize(("screen", "replay"), [(b"$ make\nok\n", "$ make\nok\n"), (b"\n\n\n", None)])
def test_existing_tmux_session_is_reattached(screen: bytes, replay: str | None) -> None:
    book = ChildProcessHarness(tmux=Tmux("svc-default", screen=screen))
    answer = attach(book.client())["payload"]
    assert answer["reattach"] is True
    assert answer.get("replay") == replay
    assert book.tmux_commands[1] == ("has-session", "-t", "=svc-default")
    assert book.tmux_commands[2] == ("capture-pane", "-p", "-S", "-200", "-t", "=svc-default:")
    assert book.children[0].order.argv[-3:] == ("attach-session", "-t", "=svc-default")


def test_screens_that_tmux_does_not_capture_or_cuts() -> None:
    tmux = Tmux("svc-default")
    book = ChildProcessHarness(tmux=lambda argv: (1, b"no") if argv[0] == "capture-pane" else tmux(argv))
    assert "replay" not in attach(book.client())["payload"]
    book, phone, client = attached(tmux=Tmux())
    client.write_output("a€".encode()[:-1] + b"\x1b[H" + "€".encode())
    book.after(0.016)
    client.write_output("€".encode()[:2])
    phone.send("terminal", "terminal.detach")
    assert describe_messages(phone) == [("output", "a\x1b[H€"), ("detached", "client detach")]


@pytest.mark.parametrize("end", ["the client detaches", "the client leaves", "the relay stops"])
def test_the_session_of_tmux_survives_and_gets_no_signal(end: str) -> None:
    book, phone, client = attached(tmux=Tmux())
    if end == "the client detaches":
        phone.send("terminal", "terminal.detach")
    elif end == "the client leaves":
        phone.vanish()
    else:
        book.stop()
    assert (client.gone, client.signals) == (True, [])
    assert [exit_.code for exit_ in book.exits] == [0] * (end == "the relay stops")


def test_a_kill_of_a_held_session_ends_it_whatever_happens() -> None:
    tmux = Tmux("svc-default")
    book, phone, client = attached(tmux=tmux)
    phone.send("terminal", "terminal.kill", {"session_name": "default"})
    assert describe_messages(phone) == [("detached", "client kill")]
    assert (client.signals, tmux.sessions) == ([SignalName.HANGUP], {})  # with the other programs of the session
    assert book.tmux_commands[-1] == ("kill-session", "-t", "=svc-default")
    book, phone, client = attached(tmux=Tmux("svc-default"))
    book.hold = (Spawn,)
    phone.send("terminal", "terminal.kill")
    client.write_output(b"[exited]")
    client.exit()
    assert describe_messages(phone) == [("output", "[exited]"), ("detached", "client kill")]
    book.hold = ()
    book.release()
    assert phone.envelopes() == []
    assert "bug" not in book.events(Level.ERROR)
    tmux = Tmux("svc-default")
    book, phone, client = attached(tmux=tmux)
    book.hold = (Spawn,)
    phone.send("terminal", "terminal.kill")
    phone.vanish()
    book.hold = ()
    book.release()
    assert (client.signals, tmux.sessions) == ([SignalName.HANGUP], {})


def test_kill_of_a_detached_session() -> None:
    tmux = Tmux("svc-work", "svc-work2")
    _, phone = desktop_relay(tmux=tmux)
    (answer,) = send_and_collect(phone, "kill", session_name="work")
    assert answer["type"] == "terminal.detached"
    assert answer["payload"] == {"session_name": "work", "reason": "client kill"}
    assert answer["id"] != "m-1"
    assert list(tmux.sessions) == ["svc-work2"]
    (answer,) = send_and_collect(phone, "kill", session_name="work")
    assert (answer["type"], answer["id"] != "m-1") == ("terminal.error", True)
    assert answer["payload"] == {"session_name": "work", "reason": "client kill", "message": "there is no such session"}
    assert send_and_collect(phone, "kill") == []


def test_the_list_with_tmux_is_of_all() -> None:
    tmux = Tmux("svc-work", "svc-a_b", "foreign", "svc-theirs")
    tmux.makes = False  # so that one listed session is unknown to tmux
    book, phone, _ = attached("a.b", tmux=tmux)
    attach(book.client(), "theirs")
    attach(phone, "fresh")
    (answer,) = send_and_collect(phone, "list")
    common = {"attached": 1, "windows": 1, "created_at": 1790000000, "shell": "/bin/zsh"}
    mine, theirs, fresh = ({"pid": child.pid, "live": True, "owned_by_client": True} for child in book.children)
    assert answer["payload"]["sessions"] == [
        {"name": "a.b", "tmux_name": "svc-a_b", **common, **mine},
        {"name": "theirs", "tmux_name": "svc-theirs", **common, **theirs, "owned_by_client": False},
        {"name": "work", "tmux_name": "svc-work", **common, "live": False, "owned_by_client": False},
        {"name": "fresh", "shell": "/bin/zsh", **fresh},
    ]


@pytest.mark.parametrize("tmux", [False, True])
def test_shells_and_tmux_get_named_variables_alone(tmux: bool) -> None:
    book = ChildProcessHarness(config=RelayConfig(terminal_env=("GOPATH",)), tmux=Tmux() if tmux else None)
    attach(book.client())
    orders = [command for command in book.commands if isinstance(command, Spawn)]
    assert len(orders) == (2 if tmux else 1)
    assert {order.inherited_env for order in orders} == {(*INHERITED, "GOPATH")}
    assert not [name for name in INHERITED if "KEY" in name or "PASSWORD" in name or "TOKEN" in name]


def test_terminals_of_other_nodes_are_found_and_reported() -> None:
    book = ChildProcessHarness(tmux=Tmux())
    asked: list[str] = []

    def elsewhere(terminal: str) -> Flow[str]:
        yield from ()
        asked.append(terminal)
        return "http://10.0.0.2:8767" if terminal == "svc-build" else ""

    book.relay.coordinator.terminal_owner_url = elsewhere  # type: ignore[method-assign]  # as if there were others
    phone = book.client()
    assert "elsewhere" not in attach(phone, "other")["payload"]
    assert attach(phone, "build")["payload"]["elsewhere"] == "http://10.0.0.2:8767"
    assert "elsewhere" not in attach(phone, "build")["payload"]  # the session is on this node now
    assert "elsewhere" not in attach(phone, None)["payload"]
    assert asked == ["svc-other", "svc-build"]
    assert [book.relay.owns_locally("terminal", name) for name in ("svc-build", "svc-none")] == [True, False]
    send_and_collect(phone, "kill", session_name="build")
    assert not book.relay.owns_locally("terminal", "svc-build")
    one = CoordinatorHarness(RelayConfig(home=HOME, cluster=WHERE, node_url="http://10.0.0.1:8767"))
    one.relay.shells.begun.put("svc-a", True, None)
    for ticket, name in enumerate(("svc-a", "svc-b")):
        one.deliver("asks", {"word": "has", "body": {"what": "terminal", "name": name}, "ticket": ticket}, to_me=True)
    answers = [body["body"] for word, body in one.new_messages() if word == "says"]
    assert answers == [{"url": "http://10.0.0.1:8767"}, {}]
    found: list[str] = []
    for answer in ({}, {"url": "http://10.0.0.2:8767"}):
        one.run(one.coordinator.terminal_owner_url("svc-a"), found)
        ((_, body),) = one.new_messages()
        one.deliver("says", {"ticket": body["ticket"], "body": answer}, to_me=True)
    assert found == ["", "http://10.0.0.2:8767"]
