"""The contract between a core and a runtime, watched from both sides, around any core: three lines in `handle`.

Give a runtime of yours `Checked(core)` in place of the core while you test it: a rule that it breaks is a
`ContractError` with the rule's words, where it was broken.
"""

from __future__ import annotations

from runtimes.sim.contract import Contract
from svc_proto import Command, Core, Fact, Moment


class Checked:
    """A core under the eyes of the contract."""

    def __init__(self, core: Core, name: str = "mine") -> None:
        self._core = core
        self._contract = Contract(name)

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        """As `Core.handle`. Raises `runtimes.sim.contract.ContractError`."""
        self._contract.fact(fact)
        commands = self._core.handle(fact, now)
        for command in commands:
            self._contract.command(command)
        return commands

    def next_deadline(self) -> float | None:
        """As `Core.next_deadline`."""
        return self._core.next_deadline()
