"""Script of a seed: its steps and faults, by its swarm configuration."""

from random import Random

from fuzz import steps
from fuzz.simulation.background_scenarios import background_scenarios
from fuzz.simulation.optional_scenarios import optional_scenarios
from fuzz.simulation.script import PAIRED, Script
from fuzz.simulation.swarm import swarm_config

ALWAYS: tuple[type[steps.Step], ...] = (steps.RegisterCode, steps.PairDevice)  # in every script
# In the order in which a swarm draws the kinds.
KINDS: tuple[type[steps.Step], ...] = (
    steps.RegisterCode, steps.PairDevice, steps.ReconnectSession, steps.DisconnectSocket, steps.SendCommand,
    steps.RevokeSession, steps.ExtendSession, steps.ListSessions, steps.UploadMedia, steps.FetchMedia,
    steps.InspectServer, steps.PostNotification, steps.ReportStatus, steps.GuessCredentials, steps.SendGarbage,
    steps.TryRoutes, steps.AnswerForeignCommand, steps.TypeInTerminal, steps.SendChatMessage, steps.ReadChatSlowly,
    steps.StartRun, steps.StopRun, steps.RequestCompletion, steps.DeleteChat, steps.UseGateway,
    steps.ReplacePhoneSocket, steps.EndWaitingSession, steps.RenewGrants, steps.ShareFile, steps.ChangeFile,
    steps.IgnoreClose, steps.LeaveEarly, steps.AskPhoneUser, steps.CutConnection, steps.HangConnection,
    steps.PartitionHost, steps.StopReading, steps.SetNoise, steps.StopProgram, steps.KillProgram, steps.FillDisk,
    steps.SetWallClock, steps.RefuseSessionRecord, steps.AdvanceWallClock, steps.FailUpstream, steps.DropAnswer,
    steps.RefuseChatRecords, steps.DegradeDisk
)  # fmt: skip
WEIGHTS: dict[type[steps.Step], int] = {
    steps.RegisterCode: 7, steps.PairDevice: 12, steps.ReconnectSession: 6, steps.DisconnectSocket: 3,
    steps.SendCommand: 26, steps.RevokeSession: 3, steps.ExtendSession: 5, steps.ListSessions: 4, steps.UploadMedia: 6,
    steps.FetchMedia: 9, steps.InspectServer: 7, steps.PostNotification: 3, steps.ReportStatus: 2,
    steps.GuessCredentials: 5, steps.SendGarbage: 3, steps.TryRoutes: 3, steps.AnswerForeignCommand: 4,
    steps.TypeInTerminal: 8, steps.SendChatMessage: 10, steps.ReadChatSlowly: 2, steps.StartRun: 3, steps.StopRun: 2,
    steps.RequestCompletion: 3, steps.DeleteChat: 1
}  # fmt: skip
FAULT_WEIGHTS: dict[type[steps.Step], int] = {
    steps.CutConnection: 6, steps.HangConnection: 3, steps.PartitionHost: 2, steps.StopReading: 4, steps.SetNoise: 3,
    steps.StopProgram: 1, steps.KillProgram: 2, steps.FillDisk: 1, steps.SetWallClock: 1, steps.FailUpstream: 3
}  # fmt: skip
PEACEFUL = 0.3  # share of scripts without faults
SUDDEN = 0.4  # share of faults that follow the last step closely
MOMENTS = (0.01, 0.05, 0.5)  # s at most after that step
# Faults that then affect the newest connection or client.
NEWEST = (steps.CutConnection, steps.HangConnection, steps.StopReading)
STOPPED = (steps.SendChatMessage, steps.StartRun)
STOPPED_SOON = 0.1  # share of those that are stopped soon
TOO_LATE = 640.0  # s after which a code is used after its expiry
GATEWAY_STEPS = 24  # of phones on the gateway, in a gateway script
OTHER_STEPS = 12  # at most, in a gateway script, with those that pair two devices
GATEWAY_FAULTS = 0.2  # share of the gateway's steps that a fault follows closely
LIFETIMES = (0.0, 0.0, 20.0, 60.0, 300.0, 3600.0)  # s that sessions live; 0: never ends, or the default


def generate_script(seed: int) -> Script:
    """Return the script of a seed. In its first seconds two devices pair."""
    rng, mine = Random(f"script {seed}"), swarm_config(seed, KINDS, ALWAYS)
    peaceful = rng.random() < PEACEFUL
    good, bad = mine.weights(WEIGHTS), mine.weights(FAULT_WEIGHTS)
    pace = mine.pace
    drawn = [
        steps.RegisterCode.of(0.5, 0, 0, 0.0),
        steps.RegisterCode.of(0.6, 0, rng.randrange(6), rng.choice(LIFETIMES)),
        steps.PairDevice.of(1.0, 0, 0),
        steps.PairDevice.of(1.1, 1, 1),
    ]
    at, codes = PAIRED, 2
    for _ in range(rng.randint(pace.fewest, pace.most)):
        pause = rng.uniform(5.0, 700.0) if rng.random() < pace.rests else rng.choice(pace.pauses)
        at = round(at + rng.random() * pause, 3)
        faulty = not peaceful and rng.random() < pace.faulty
        kinds = bad if faulty else good
        kind = rng.choices(list(kinds), list(kinds.values()))[0]
        who, variety, amount = rng.choice(mine.people), rng.choice(mine.varieties), _amount(kind, rng)
        step = kind.of(at, who, variety, amount)
        if faulty and rng.random() < SUDDEN:  # the fault affects the last step
            when = max(PAIRED, round(drawn[-1].at + rng.choice(MOMENTS) * rng.random(), 3))
            step = kind.of(when, -1 if kind in NEWEST else who, variety, amount)
        drawn.append(step)
        if kind in STOPPED and rng.random() < STOPPED_SOON:
            when = round(at + rng.choice(MOMENTS) * rng.random(), 3)
            drawn += [steps.StopRun.of(when)] * rng.choice((1, 1, 2))
        if kind is steps.RegisterCode:  # a registered code is used
            soon = rng.choice((0.2, 0.2, 1.0, 1.0, 1.0, TOO_LATE if pace.rests else 1.0))
            code = -1 if soon < TOO_LATE and rng.random() < 0.5 else codes
            drawn.append(steps.PairDevice.of(round(at + soon, 3), rng.choice(mine.people), code))
            codes += 1
    drawn += background_scenarios(seed, mine, drawn)
    drawn += optional_scenarios(seed, drawn)
    return Script(seed, tuple(sorted((step for step in drawn if mine.has(type(step))), key=lambda step: step.at)))


def generate_gateway_script(seed: int) -> Script:
    """Return a shorter script of a seed: phones on the app's standard connection, and few other steps.

    A fault follows some of the phones' steps closely. The other steps are the first of `generate_script`.
    """
    rng, at = Random(f"gateway script {seed}"), PAIRED + 1.0
    drawn = [step for step in generate_script(seed).steps if not isinstance(step, steps.ChatOnGateway)][:OTHER_STEPS]
    for _ in range(GATEWAY_STEPS):
        at += rng.random() * rng.choice((0.1, 1.0, 4.0))
        drawn.append(steps.ChatOnGateway.of(round(at, 3), rng.randrange(64), rng.randrange(64), 0.0))
        if rng.random() < GATEWAY_FAULTS:
            kind = rng.choices(list(FAULT_WEIGHTS), list(FAULT_WEIGHTS.values()))[0]
            when = round(at + rng.choice(MOMENTS) * rng.random(), 3)
            drawn.append(
                kind.of(when, -1 if kind in NEWEST else rng.randrange(64), rng.randrange(64), _amount(kind, rng))
            )
    return Script(seed, tuple(sorted(drawn, key=lambda step: step.at)))


def _amount(kind: type[steps.Step], rng: Random) -> float:
    if kind in (steps.RegisterCode, steps.ExtendSession):
        return rng.choice(LIFETIMES)
    if kind is steps.UploadMedia:
        return float(rng.choice((1, 200, 5_000, 30_000)))
    if kind is steps.SendChatMessage:
        return round(rng.choice((0.0, 0.0, 0.5, 3.0)) * rng.random(), 3)
    if kind is steps.RequestCompletion:
        return round(3.0 * rng.random() ** 2, 3)
    if kind is steps.StartRun:
        return round(rng.choice((2.0, 15.0, 40.0, 280.0)) * rng.random(), 3)
    if kind is steps.SetNoise:
        return round(rng.choice((0.0, 0.5, 2.0, 5.0)), 3)
    if kind is steps.SetWallClock:
        return round(rng.choice((-1.0, 1.0)) * rng.choice((2.0, 40.0, 3600.0)) * rng.random(), 3)
    if kind in (steps.StopReading, steps.ReadChatSlowly):
        return round(rng.choice((2.0, 15.0, 40.0, 200.0, 200.0)) * rng.random(), 3)
    if kind in (steps.StopProgram, steps.KillProgram):
        return round(rng.uniform(0.1, 8.0), 3)
    return round(rng.choice((2.0, 15.0, 40.0)) * rng.random(), 3)
