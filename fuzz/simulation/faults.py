"""Faults of a simulation: the handlers of the steps that inject one."""

from functools import partial

from attrs import evolve

from fuzz import steps
from fuzz.simulation.actors.actor_context import StepHandler
from fuzz.simulation.deployment import DEVICES, SETTLE_AFTER_FAULT, Deployment
from fuzz.simulation.servers.model_server import ModelBehavior
from runtimes.sim.faults import Faults

OFTEN = 0.4  # share of failed operations while a disk is degraded
ENDLESS = 1e9  # s
BAD = (ModelBehavior.REFUSE, ModelBehavior.BREAK, ModelBehavior.HANG, ModelBehavior.NONSENSE)
# Slow operations cannot be cancelled; with the last entry the disk stalls.
DISKS = (("store",), ("file",), ("slow", "late_answer"), ())
STALLS = 32.0  # s at least, longer than a body may pause


class FaultInjector:
    """Handler of the steps that inject faults."""

    def __init__(self, world: Deployment) -> None:
        self.world = world
        self.sim = world.sim
        felt: dict[type[steps.Step], StepHandler] = {
            steps.CutConnection: self._cut,
            steps.HangConnection: self._hang,
            steps.PartitionHost: self._part,
            steps.StopReading: self._slow,
            steps.SetNoise: self._make_noise,
            steps.StopProgram: self._end,
            steps.KillProgram: self._end,
            steps.FillDisk: self._fill_disk,
            steps.SetWallClock: lambda step: world.set_clock(step.seconds),
            steps.FailUpstream: self._spoil_model,
            steps.RefuseChatRecords: lambda step: world.fail_row_writes(step.seconds),
            steps.DegradeDisk: self._spoil_disk,
        }
        self.handlers: dict[type[steps.Step], StepHandler] = {
            kind: partial(self._strike, how) for kind, how in felt.items()
        }
        self.handlers[steps.LeaveEarly] = lambda step: world.impatient.append((step.seconds, step.ending % 2 == 1))
        # Affects one client, which must handle it.
        self.handlers[steps.DropAnswer] = lambda step: world.upstream.doomed.append(step.seconds)

    def _strike(self, how: StepHandler, step: steps.Step) -> None:
        endless = isinstance(step, steps.SetNoise) and step.level > 0
        self.world.faulted = max(
            self.world.faulted, self.sim.now + (ENDLESS if endless else step.value(steps.AMOUNT) + SETTLE_AFTER_FAULT)
        )
        how(step)

    def _cut(self, step: steps.CutConnection) -> None:
        if connections := self.sim.network.connections:
            self.sim.cut(connections[step.connection % len(connections)])

    def _hang(self, step: steps.HangConnection) -> None:
        if connections := self.sim.network.connections:
            self.world.blackhole(connections[step.connection % len(connections)], step.seconds)

    def _part(self, step: steps.PartitionHost) -> None:
        world, now = self.world, self.sim.now
        other = [*world.devices, world.phone.host][step.host % (DEVICES + 1)]
        self.sim.network.partition(world.home, other)
        world.parted[other.address] = max(world.parted.get(other.address, 0.0), now + step.seconds)
        world.note_network_fault(step.seconds)

        def heal() -> None:
            if world.parted[other.address] <= self.sim.now:  # else another step lasts longer
                self.sim.network.heal_between(world.home, other)

        self.sim.after(step.seconds, heal)

    def _slow(self, step: steps.StopReading) -> None:
        lines = [line for line in self.world.lines if line.has_connection]
        if lines:
            self.world.pause_reading_for(lines[step.client % len(lines)], step.seconds)

    def _end(self, step: steps.KillProgram) -> None:
        self.world.stop_program(
            ("relay", "api")[step.program % 2], step.seconds, kill=isinstance(step, steps.KillProgram)
        )

    def _spoil_model(self, step: steps.FailUpstream) -> None:
        upstream = self.world.upstream
        upstream.trouble = BAD[step.manner % len(BAD)]
        self.sim.after(step.seconds, lambda: setattr(upstream, "trouble", None))

    def _fill_disk(self, step: steps.FillDisk) -> None:
        disk = self.world.home.disk
        self.world.disk_trouble = True
        self.world.note_disk_fault(step.seconds)
        disk.fill()
        self.sim.after(step.seconds, lambda: setattr(disk, "capacity", None))

    def _make_noise(self, step: steps.SetNoise) -> None:
        some = Faults.some(step.level)
        self.sim.faults = evolve(some, late_answer=min(some.late_answer, 1.0), clock_step=0.0)
        world, bad = self.world, step.level > 0
        world.store_trouble |= bad
        world.note_network_fault(ENDLESS if bad else 0.0)
        world.noisy = ENDLESS if bad else min(world.noisy, self.sim.now)

    def _spoil_disk(self, step: steps.DegradeDisk) -> None:
        sim, kinds = self.sim, DISKS[step.kind % len(DISKS)]
        if not kinds:
            self.world.home.disk.busy_until = sim.now + STALLS + step.seconds
            self.world.note_disk_fault(STALLS + step.seconds)
        sim.faults = evolve(sim.faults, **dict.fromkeys(kinds, OFTEN))
        self.world.store_trouble = True
        self.world.note_disk_fault(step.seconds)
        sim.after(step.seconds, lambda: setattr(sim, "faults", evolve(sim.faults, **dict.fromkeys(kinds, 0.0))))
