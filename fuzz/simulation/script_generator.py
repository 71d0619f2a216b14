"""Script of a seed: its steps and faults, by its swarm configuration."""

from random import Random

from fuzz.simulation.background_scenarios import background_scenarios
from fuzz.simulation.optional_scenarios import optional_scenarios
from fuzz.simulation.script import PAIRED, Script
from fuzz.simulation.swarm import swarm_config
from fuzz.steps import (
    AdvanceWallClock,
    AnswerForeignCommand,
    AskPhoneUser,
    ChangeFile,
    ChatOnGateway,
    CutConnection,
    DegradeDisk,
    DeleteChat,
    DisconnectSocket,
    DropAnswer,
    EndWaitingSession,
    ExtendSession,
    FailUpstream,
    FetchMedia,
    FillDisk,
    GuessCredentials,
    HangConnection,
    IgnoreClose,
    InspectServer,
    KillProgram,
    LeaveEarly,
    ListSessions,
    PairDevice,
    PartitionHost,
    PostNotification,
    ReadChatSlowly,
    ReconnectSession,
    RefuseChatRecords,
    RefuseSessionRecord,
    RegisterCode,
    RenewGrants,
    ReplacePhoneSocket,
    ReportStatus,
    RequestCompletion,
    RevokeSession,
    SendChatMessage,
    SendCommand,
    SendGarbage,
    SetNoise,
    SetWallClock,
    ShareFile,
    StartRun,
    Step,
    StopProgram,
    StopReading,
    StopRun,
    TryRoutes,
    TypeInTerminal,
    UploadMedia,
    UseGateway,
)

ALWAYS: tuple[type[Step], ...] = (RegisterCode, PairDevice)  # in every script
# In the order in which a swarm draws the kinds.
KINDS: tuple[type[Step], ...] = (
    RegisterCode, PairDevice, ReconnectSession, DisconnectSocket, SendCommand, RevokeSession, ExtendSession,
    ListSessions, UploadMedia, FetchMedia, InspectServer, PostNotification, ReportStatus, GuessCredentials, SendGarbage,
    TryRoutes, AnswerForeignCommand, TypeInTerminal, SendChatMessage, ReadChatSlowly, StartRun, StopRun,
    RequestCompletion, DeleteChat, UseGateway, ReplacePhoneSocket, EndWaitingSession, RenewGrants, ShareFile,
    ChangeFile, IgnoreClose, LeaveEarly, AskPhoneUser, CutConnection, HangConnection, PartitionHost, StopReading,
    SetNoise, StopProgram, KillProgram, FillDisk, SetWallClock, RefuseSessionRecord, AdvanceWallClock, FailUpstream,
    DropAnswer, RefuseChatRecords, DegradeDisk
)  # fmt: skip
WEIGHTS: dict[type[Step], int] = {
    RegisterCode: 7, PairDevice: 12, ReconnectSession: 6, DisconnectSocket: 3, SendCommand: 26, RevokeSession: 3,
    ExtendSession: 5, ListSessions: 4, UploadMedia: 6, FetchMedia: 9, InspectServer: 7, PostNotification: 3,
    ReportStatus: 2, GuessCredentials: 5, SendGarbage: 3, TryRoutes: 3, AnswerForeignCommand: 4, TypeInTerminal: 8,
    SendChatMessage: 10, ReadChatSlowly: 2, StartRun: 3, StopRun: 2, RequestCompletion: 3, DeleteChat: 1
}  # fmt: skip
FAULT_WEIGHTS: dict[type[Step], int] = {
    CutConnection: 6, HangConnection: 3, PartitionHost: 2, StopReading: 4, SetNoise: 3, StopProgram: 1, KillProgram: 2,
    FillDisk: 1, SetWallClock: 1, FailUpstream: 3
}  # fmt: skip
PEACEFUL = 0.3  # share of scripts without faults
SUDDEN = 0.4  # share of faults that follow the last step closely
MOMENTS = (0.01, 0.05, 0.5)  # s at most after that step
NEWEST = (CutConnection, HangConnection, StopReading)  # faults that then affect the newest connection or client
STOPPED = (SendChatMessage, StartRun)
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
    steps = [
        RegisterCode.of(0.5, 0, 0, 0.0),
        RegisterCode.of(0.6, 0, rng.randrange(6), rng.choice(LIFETIMES)),
        PairDevice.of(1.0, 0, 0),
        PairDevice.of(1.1, 1, 1),
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
            when = max(PAIRED, round(steps[-1].at + rng.choice(MOMENTS) * rng.random(), 3))
            step = kind.of(when, -1 if kind in NEWEST else who, variety, amount)
        steps.append(step)
        if kind in STOPPED and rng.random() < STOPPED_SOON:
            when = round(at + rng.choice(MOMENTS) * rng.random(), 3)
            steps += [StopRun.of(when)] * rng.choice((1, 1, 2))
        if kind is RegisterCode:  # a registered code is used
            soon = rng.choice((0.2, 0.2, 1.0, 1.0, 1.0, TOO_LATE if pace.rests else 1.0))
            code = -1 if soon < TOO_LATE and rng.random() < 0.5 else codes
            steps.append(PairDevice.of(round(at + soon, 3), rng.choice(mine.people), code))
            codes += 1
    steps += background_scenarios(seed, mine, steps)
    steps += optional_scenarios(seed, steps)
    return Script(seed, tuple(sorted((step for step in steps if mine.has(type(step))), key=lambda step: step.at)))


def generate_gateway_script(seed: int) -> Script:
    """Return a shorter script of a seed: phones on the app's standard connection, and few other steps.

    A fault follows some of the phones' steps closely. The other steps are the first of `generate_script`.
    """
    rng, at = Random(f"gateway script {seed}"), PAIRED + 1.0
    steps = [step for step in generate_script(seed).steps if not isinstance(step, ChatOnGateway)][:OTHER_STEPS]
    for _ in range(GATEWAY_STEPS):
        at += rng.random() * rng.choice((0.1, 1.0, 4.0))
        steps.append(ChatOnGateway.of(round(at, 3), rng.randrange(64), rng.randrange(64), 0.0))
        if rng.random() < GATEWAY_FAULTS:
            kind = rng.choices(list(FAULT_WEIGHTS), list(FAULT_WEIGHTS.values()))[0]
            when = round(at + rng.choice(MOMENTS) * rng.random(), 3)
            steps.append(
                kind.of(when, -1 if kind in NEWEST else rng.randrange(64), rng.randrange(64), _amount(kind, rng))
            )
    return Script(seed, tuple(sorted(steps, key=lambda step: step.at)))


def _amount(kind: type[Step], rng: Random) -> float:
    if kind in (RegisterCode, ExtendSession):
        return rng.choice(LIFETIMES)
    if kind is UploadMedia:
        return float(rng.choice((1, 200, 5_000, 30_000)))
    if kind is SendChatMessage:
        return round(rng.choice((0.0, 0.0, 0.5, 3.0)) * rng.random(), 3)
    if kind is RequestCompletion:
        return round(3.0 * rng.random() ** 2, 3)
    if kind is StartRun:
        return round(rng.choice((2.0, 15.0, 40.0, 280.0)) * rng.random(), 3)
    if kind is SetNoise:
        return round(rng.choice((0.0, 0.5, 2.0, 5.0)), 3)
    if kind is SetWallClock:
        return round(rng.choice((-1.0, 1.0)) * rng.choice((2.0, 40.0, 3600.0)) * rng.random(), 3)
    if kind in (StopReading, ReadChatSlowly):
        return round(rng.choice((2.0, 15.0, 40.0, 200.0, 200.0)) * rng.random(), 3)
    if kind in (StopProgram, KillProgram):
        return round(rng.uniform(0.1, 8.0), 3)
    return round(rng.choice((2.0, 15.0, 40.0)) * rng.random(), 3)
