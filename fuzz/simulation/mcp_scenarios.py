"""Optional MCP scenarios in a quarter of the scripts.

They have OAuth agents, phone drivers, MCP clients of the agent, and tool servers. Each is drawn from a random source of
its own, so that all other scripts stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from fuzz.simulation.script import PAIRED
from fuzz.simulation.servers.mcp_tool_behavior import BEHAVIORS
from fuzz.steps import AskAgentByMcp, AuthorizeAgent, DrivePhone, PairDevice, RegisterCode, Step, UseToolServers

MCP_ACTIONS = (AuthorizeAgent, DrivePhone, AskAgentByMcp, UseToolServers)  # only drawn here
SHARE = 1 / 4  # share of all scripts
MOST = 3  # scenarios of one script at most
WATCHED = 1 / 16  # share of the other scripts
REFUSED = 6  # `choice` of an agent that the owner refuses
CRASH = 54 * BEHAVIORS.index("crash")  # `choice` of a call that ends its server
ROOM = 1 << 16
OVER = 0.6  # share of driven phones whose owner revokes the grant


def mcp_scenarios(seed: int, others: list[Step]) -> list[Step]:
    """Return the steps of MCP scenarios for a seed."""
    rng = Random(f"mcp {seed}")
    if rng.random() >= SHARE:
        return _watched(seed, others)
    steps: list[Step] = []
    for _ in range(rng.randint(1, MOST)):
        begin = max(PAIRED + 1.0, rng.choice(others).at) + rng.random()
        steps += rng.choice(MCP_SCENARIOS)(rng, begin)
    return steps


def _watched(seed: int, others: list[Step]) -> list[Step]:
    """Return steps of a notification listener that reconnects and unsubscribes, in some of the other scripts.

    Then the owner refuses an agent, and tool servers crash.
    """
    rng = Random(f"watched by mcp {seed}")
    if rng.random() >= WATCHED:
        return []
    at, who = max(PAIRED + 1.0, rng.choice(others).at) + rng.random(), 3 * rng.randrange(16) + 1
    ways = [11, *rng.choices((12, 13), (1, 2), k=rng.randint(1, 4))]
    actions = [(DrivePhone, who, 16 * (3 * rng.randrange(16) + 1) + way, 4.0 * rng.random()) for way in ways]
    lost = [
        (AuthorizeAgent, who, REFUSED, 0.5),
        (UseToolServers, who, CRASH, 0.5),
        (UseToolServers, who, CRASH + 9, 0.5),
    ]
    return [*_begun(rng, at, 0), *_row(rng, at + 8.0, actions, 12.0), *_row(rng, at + 50.0, lost, 6.0)]


def _row(rng: Random, at: float, actions: Sequence[tuple[type[Step], int, int, float]], longest: float) -> list[Step]:
    steps: list[Step] = []
    for kind, index, choice, amount in actions:
        steps.append(kind.of(round(at, 3), index, choice, round(amount, 3)))
        at += longest * rng.random()
    return steps


def _let_in(rng: Random, at: float) -> list[Step]:
    """Return steps of OAuth agents whose tokens are renewed, replaced, reused and revoked."""
    few = [(AuthorizeAgent, rng.randrange(64), 16 * rng.randrange(64) + rng.randrange(8), 2.0 * rng.random())]
    few += [
        (AuthorizeAgent, rng.randrange(64), rng.randrange(ROOM), 2.0 * rng.random()) for _ in range(rng.randint(3, 7))
    ]
    return _row(rng, at, few, 2.5)


def _begun(rng: Random, at: float, app: int) -> list[Step]:
    """Return steps that pair a phone, and authorize two agents."""
    actions = [
        (RegisterCode, 0, 0),
        (PairDevice, 3 * rng.randrange(16), -1),
        (AuthorizeAgent, rng.randrange(64), app),
        (AuthorizeAgent, rng.randrange(64), 16 * rng.randrange(64)),
    ]
    return [
        kind.of(round(at + 0.3 * place, 3), who, other, 0.1 if kind is AuthorizeAgent else 0.0)
        for place, (kind, who, other) in enumerate(actions)
    ]


def _driven(rng: Random, at: float) -> list[Step]:
    """Return steps of a phone that agents drive, until one of the grants may end."""
    app, who = 16 * rng.randrange(64), 3 * rng.randrange(16) + 1
    steps = _begun(rng, at, app)
    drivers = (who, who, who + 1, rng.randrange(64))
    actions = [
        (DrivePhone, rng.choice(drivers), rng.randrange(ROOM), 6.0 * rng.random() ** 2)
        for _ in range(rng.randint(2, 5))
    ]
    if rng.random() < OVER:
        actions.append((DrivePhone, who, 16 * rng.randrange(64) + rng.randint(4, 6), 6.0 * rng.random()))
    return [*steps, *_row(rng, at + 3.0, actions, rng.choice((0.5, 3.0, 8.0)))]


def _inquired(rng: Random, at: float) -> list[Step]:
    """Return calls of the API's agent by MCP clients."""
    chat = rng.randrange(64)
    actions = [(AskAgentByMcp, chat, rng.randrange(ROOM), 3.0 * rng.random()) for _ in range(rng.randint(2, 5))]
    return _row(rng, at, actions, 4.0)


def _used(rng: Random, at: float) -> list[Step]:
    """Return calls of MCP tools by the agent."""
    actions = [
        (UseToolServers, rng.randrange(64), rng.randrange(ROOM), 3.0 * rng.random()) for _ in range(rng.randint(2, 5))
    ]
    return _row(rng, at, actions, rng.choice((1.0, 8.0)))


MCP_SCENARIOS: tuple[Callable[[Random, float], list[Step]], ...] = (_let_in, _driven, _driven, _inquired, _used)
