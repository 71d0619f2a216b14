"""Checker of the contract between a core and a runtime, around any core.

For tests of your own runtime, give it `Checked(core)` in place of the core. A violated rule raises `ContractError` with
the rule's text, at the place of the violation.
"""

from runtimes.sim.contract import Contract
from svc_proto import Command, Core, Fact, Moment


class Checked:
    """A core whose facts and commands are checked against the contract."""

    def __init__(self, core: Core, name: str = "mine") -> None:
        self._core = core
        self._contract = Contract(name)

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        """Implement `Core.handle`. Raises `runtimes.sim.contract.ContractError` if the contract is violated."""
        self._contract.fact(fact)
        commands = self._core.handle(fact, now)
        for command in commands:
            self._contract.command(command)
        return commands

    def next_deadline(self) -> float | None:
        """Implement `Core.next_deadline`: return that of the checked core."""
        return self._core.next_deadline()
