"""What breaks in a world: the steps that are faults."""

from __future__ import annotations

from functools import partial

from attrs import evolve

from fuzz.people.crowd import Deeds
from fuzz.script import Deed, Step
from fuzz.upstream import Manner
from fuzz.world import AFTERMATH, DEVICES, World
from runtimes.sim.faults import Faults

__all__ = ["Trouble"]

OFTEN = 0.4  # of all operations, while a disk has a bad time
ENDLESS = 1e9  # s
BAD = (Manner.REFUSE, Manner.BREAK, Manner.HANG, Manner.NONSENSE)
DISKS = (("store",), ("file",), ("slow", "late_answer"), ())  # what is slow cannot be called back; the last one stalls
STALLS = 32.0  # s at least, longer than a body may be silent


class Trouble:
    """The steps that break something; each sees to it that it is mended in time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sim = world.sim
        felt: dict[Deed, Deeds] = {
            Deed.CUT: self._cut,
            Deed.HANG: self._hang,
            Deed.PART: self._part,
            Deed.SLOW: self._slow,
            Deed.NOISE: self._make_noise,
            Deed.STOP: self._end,
            Deed.KILL: self._end,
            Deed.DISK_FULL: self._fill_disk,
            Deed.CLOCK: lambda step: world.set_clock(step.amount),
            Deed.UPSTREAM: self._spoil_model,
            Deed.HICCUP: lambda step: world.refuse_rows(step.amount),
            Deed.DISK: self._spoil_disk,
        }
        self.deeds: dict[Deed, Deeds] = {deed: partial(self._strike, how) for deed, how in felt.items()}
        self.deeds[Deed.IMPATIENT] = lambda step: world.impatient.append((step.amount, step.other % 2 == 1))
        self.deeds[Deed.DROP] = self._drop  # one party is concerned, and has to bear it

    def _strike(self, how: Deeds, step: Step) -> None:
        endless = step.deed is Deed.NOISE and step.amount > 0
        self.world.faulted = max(self.world.faulted, self.sim.now + (ENDLESS if endless else step.amount + AFTERMATH))
        how(step)

    def _cut(self, step: Step) -> None:
        if connections := self.sim.network.connections:
            self.sim.cut(connections[step.who % len(connections)])

    def _hang(self, step: Step) -> None:
        if connections := self.sim.network.connections:
            self.world.hang(connections[step.who % len(connections)], step.amount)

    def _part(self, step: Step) -> None:
        world, now = self.world, self.sim.now
        other = [*world.devices, world.phone.host][step.who % (DEVICES + 1)]
        self.sim.network.partition(world.home, other)
        world.parted[other.address] = max(world.parted.get(other.address, 0.0), now + step.amount)
        world.shake(step.amount)
        self.sim.after(step.amount, self.sim.network.heal)

    def _slow(self, step: Step) -> None:
        lines = [line for line in self.world.lines if line.opened]
        if lines:
            self.world.slow_down(lines[step.who % len(lines)], step.amount)

    def _end(self, step: Step) -> None:
        self.world.end(("relay", "api")[step.who % 2], step.amount, kill=step.deed is Deed.KILL)

    def _drop(self, step: Step) -> None:
        (self.world.upstream, self.world.provider)[step.who % 2].doomed.append(step.amount)

    def _spoil_model(self, step: Step) -> None:
        upstream = self.world.upstream
        upstream.trouble = BAD[step.other % len(BAD)]
        self.sim.after(step.amount, lambda: setattr(upstream, "trouble", None))

    def _fill_disk(self, step: Step) -> None:
        disk = self.world.home.disk
        self.world.disk_trouble = True
        disk.fill()
        self.sim.after(step.amount, lambda: setattr(disk, "capacity", None))

    def _make_noise(self, step: Step) -> None:
        some = Faults.some(step.amount)
        self.sim.faults = Faults(
            cut=some.cut,
            hang=some.hang,
            spike=some.spike,
            store=some.store,
            file=some.file,
            slow=some.slow,
            late_answer=min(some.late_answer, 1.0),
            late_read=min(some.late_read, 1.0),
            late_wake=min(some.late_wake, 1.0),
        )
        world, bad = self.world, step.amount > 0
        world.store_trouble |= bad
        world.shake(ENDLESS if bad else 0.0)
        world.noisy = ENDLESS if bad else min(world.noisy, self.sim.now)

    def _spoil_disk(self, step: Step) -> None:
        sim, kinds = self.sim, DISKS[step.other % len(DISKS)]
        if not kinds:
            self.world.home.disk.busy_until = sim.now + STALLS + step.amount
        sim.faults = evolve(sim.faults, **dict.fromkeys(kinds, OFTEN))
        self.world.store_trouble = True
        sim.after(step.amount, lambda: setattr(sim, "faults", evolve(sim.faults, **dict.fromkeys(kinds, 0.0))))
