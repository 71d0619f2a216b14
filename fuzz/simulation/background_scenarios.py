"""Optional scenarios beside the ordinary steps of a script, each with its own chance.

Examples are agent gateways, expiring media and disk faults.
"""

from random import Random

from fuzz import steps
from fuzz.simulation.script import PAIRED
from fuzz.simulation.swarm import SwarmConfig

LIFE_WEIGHTS: dict[type[steps.Step], int] = {
    steps.ReplacePhoneSocket: 6, steps.EndWaitingSession: 3, steps.RenewGrants: 4, steps.RefuseSessionRecord: 4,
    steps.IgnoreClose: 4
}  # fmt: skip
STORIES = 3  # scenarios at most, of `LIFE_WEIGHTS`
CLOCKS = 3  # changes at most, near a step that depends on it
JUMPS = (3.0, 40.0, 3_600.0, 72_000.0)  # s at most
TELLING = (steps.RegisterCode, steps.PairDevice, steps.ExtendSession, steps.StopProgram, steps.KillProgram)
OLD = 0.25  # share of scripts with faults that advance the clock by more than a day at the end
A_DAY_AND_A_HALF = 129_600.0  # s
MAX_GATEWAY_STEPS = 4  # steps at most that use an agent gateway
MEDIA_ROUNDS = (0, 1, 2)  # rounds of frequent use of media
WATCHED = 0.8  # share of scripts without such a run
LONG_RUN = 10  # `choice` of one with a long answer
TOOL, SILENT_MODEL, LOST = 3, 8, 9  # `choice` of a chat whose model disconnects after a tool call
SLUGGISH = 2  # `choice` of a disk that is slow
LARGE, FORM = 100_000.0, 1  # bytes of an upload, and `choice` of one that comes as a form
PULLED = 0.2  # share of those rounds in which the relay is killed
CHANGED = 0.7  # share of those rounds in which a file of the host is changed
LOOKS_AGAIN = (2.0, 13.5, 37.5)  # s until a media file is fetched again: somewhat below some lifetimes
# Shares of scripts in which no remote server disconnects; the disk has no fault; the phone needs no confirmation.
KEPT, SOUND, TRUSTED = 0.75, 0.7, 0.75
# Shares of scripts without store faults; without early disconnects; without a stop of a queued run.
SMOOTH, PATIENT, IN_ORDER = 0.7, 0.4, 0.75
ASKING = (
    steps.PairDevice, steps.ExtendSession, steps.RevokeSession, steps.UploadMedia, steps.FetchMedia, steps.SendCommand,
    steps.SendChatMessage, steps.StartRun, steps.RequestCompletion
)  # fmt: skip


def background_scenarios(seed: int, mine: SwarmConfig[type[steps.Step]], others: list[steps.Step]) -> list[steps.Step]:
    """Return the steps of all optional scenarios for a seed and its swarm."""
    drawn = [*_gateways(seed, mine, others), *_lives(seed, others)]
    others = [*others, *drawn]
    drawn += [*_media(seed, others), *_unwatched(seed, others), *_drops(seed, others)]
    drawn += [*_disks(seed, others), *_questions(seed, others)]
    drawn += [*_hiccups(seed, others), *_impatience(seed, others)]
    return [*drawn, *_stopped_in_line(seed, others)]


def _gateways(seed: int, mine: SwarmConfig[type[steps.Step]], others: list[steps.Step]) -> list[steps.Step]:
    """Return steps of devices that use a gateway, some of them several times; an empty list in some scripts."""
    rng = Random(f"gateways {seed}")
    drawn: list[steps.Step] = []
    for _ in range(rng.randint(0, MAX_GATEWAY_STEPS)):
        at, who = rng.choice(others).at + rng.random(), rng.choice(mine.people)
        pauses = [0.0, *(rng.choice((0.1, 3.0, 40.0)) * rng.random() for _ in range(rng.randrange(3)))]
        drawn += [steps.UseGateway.of(round(at + pause, 3), who, rng.randrange(64)) for pause in pauses]
    return drawn


def _lives(seed: int, others: list[steps.Step]) -> list[steps.Step]:
    """Return up to `STORIES` steps of `LIFE_WEIGHTS`; in scripts with faults, perhaps also steps that set the clock."""
    rng = Random(f"lives {seed}")
    peaceful = not any(isinstance(step, steps.Fault) for step in others)
    weights = {
        kind: weight for kind, weight in LIFE_WEIGHTS.items() if not (peaceful and issubclass(kind, steps.Fault))
    }
    drawn: list[steps.Step] = []
    for _ in range(rng.randint(0, STORIES)):
        at = round(rng.choice(others).at + 2.0 + 3.0 * rng.random(), 3)
        kind = rng.choices(list(weights), list(weights.values()))[0]
        drawn.append(kind.of(at, rng.randrange(64), rng.randrange(64), round(rng.random() ** 2 * 3.0, 3)))
    if peaceful:
        return drawn
    telling = [step for step in others if type(step) in TELLING]
    for _ in range(rng.choice((0, 0, 1, CLOCKS))):
        at = rng.choice(telling).at + rng.choice((-0.02, 0.05))
        amount = rng.choice((-1.0, 1.0)) * rng.choice(JUMPS) * rng.random()
        drawn.append(steps.SetWallClock.of(round(at, 3), 0, 0, round(amount, 3)))
    if rng.random() < OLD:
        drawn.append(steps.AdvanceWallClock.of(others[-1].at, 0, 0, A_DAY_AND_A_HALF))
    return drawn


def _media(seed: int, others: list[steps.Step]) -> list[steps.Step]:
    """Return steps that register a few media and fetch one of them; an empty list in some scripts.

    A file may be changed, or more media registered, meanwhile; in scripts with faults, the relay may be killed.
    """
    rng = Random(f"media {seed}")
    faulty = any(isinstance(step, steps.Fault) for step in others)
    drawn: list[steps.Step] = []
    for _ in range(rng.choice(MEDIA_ROUNDS)):
        at, few = rng.choice(others).at, rng.randint(1, 3)
        favourite = rng.randint(1, few)
        kinds: list[type[steps.Step]] = rng.choices((steps.ShareFile, steps.UploadMedia), (2, 1), k=few) + [
            steps.FetchMedia
        ] * rng.randint(1, 3)
        if rng.random() < 0.5:  # more media than the limit
            more = rng.randint(1, 5)
            kinds += [*rng.choices((steps.ShareFile, steps.UploadMedia), (2, 1), k=more), steps.FetchMedia]
        else:
            more = 0
            kinds += [steps.FetchMedia, steps.FetchMedia]
        if rng.random() < CHANGED:  # then fetched again
            kinds[few:few] = [steps.ChangeFile, steps.FetchMedia]
        for place, kind in enumerate(kinds):
            last = place == len(kinds) - 1
            pause = rng.choice(LOOKS_AGAIN) if last and not more else 0.3 + rng.choice((0.5, 4.0)) * rng.random()
            at = round(at + pause, 3)
            who = rng.randrange(64) if kind is steps.ShareFile else -1  # -1 is the newest session
            drawn.append(kind.of(at, who, -favourite - (more if last else 0), 200.0))
        if faulty and rng.random() < PULLED:
            drawn.append(steps.KillProgram.of(round(at + rng.random(), 3), 0, 0, 1.0))
    return drawn


def _unwatched(seed: int, others: list[steps.Step]) -> list[steps.Step]:
    """Return a step that starts a run with a long answer, without a reader for 100 to 200 s; or, by chance, no step."""
    rng = Random(f"unwatched {seed}")
    if rng.random() < WATCHED:
        return []
    at = round(rng.choice(others).at + rng.random(), 3)
    return [steps.StartRun.of(at, 5 * rng.randrange(12), LONG_RUN, round(100.0 + 100.0 * rng.random(), 3))]


def _drops(seed: int, others: list[steps.Step]) -> list[steps.Step]:
    """Return steps that disconnect a model during an answer; an empty list in some scripts."""
    rng = Random(f"drops {seed}")
    if rng.random() < KEPT:
        return []
    chats = [step for step in others if type(step) in (steps.SendChatMessage, steps.StartRun)] or others
    drawn: list[steps.Step] = []
    for _ in range(rng.randint(1, 3)):
        at, amount = rng.choice(chats).at, round(rng.choice((1.0, 6.0, 6.0)) * rng.random(), 3)
        drawn.append(steps.DropAnswer.of(at, amount=amount))
    return drawn


def _disks(seed: int, others: list[steps.Step]) -> list[steps.Step]:
    """Return a disk fault with turns, or with requests for media, at that time; in half of the cases also a kill.

    The list is empty in scripts without faults, and in most of the others, by the share `SOUND`.
    """
    rng = Random(f"disks {seed}")
    if rng.random() < SOUND or not any(isinstance(step, steps.Fault) for step in others):
        return []
    at = max(PAIRED, rng.choice(others).at)
    which, amount = rng.choice((0, 0, 1, 2, 3)), round(2.0 + 8.0 * rng.random(), 3)
    drawn: list[steps.Step] = [steps.DegradeDisk.of(at, 0, which, amount)]
    handlers = (
        (steps.SendChatMessage, steps.StartRun),
        (steps.ShareFile, steps.UploadMedia, steps.FetchMedia),
        (steps.UploadMedia,),
        (steps.UploadMedia, steps.FetchMedia),
    )[which]
    for _ in range(rng.randint(4, 8)):
        kind = rng.choice(handlers)
        if kind is steps.UploadMedia:  # perhaps begun before a disk stalls
            when = at + rng.choice((-0.1, amount)) * rng.random()
            drawn.append(kind.of(round(max(PAIRED, when), 3), -1, FORM, LARGE))
            continue
        manner = rng.choice((0, 1, 2, 3, LOST, LOST))
        drawn.append(kind.of(round(at + amount * rng.random(), 3), rng.randrange(64), manner, 0.0))
    if rng.random() < 0.5:
        drawn.append(steps.KillProgram.of(round(at + amount, 3), rng.randrange(2), 0, 1.0))
    return drawn


def _hiccups(seed: int, others: list[steps.Step]) -> list[steps.Step]:
    """Return steps of answers that take several rows, and of short refusals of the store during them.

    The list is empty in scripts without faults, and in most of the others, by the share `SMOOTH`.
    """
    rng = Random(f"hiccups {seed}")
    if rng.random() < SMOOTH or not any(isinstance(step, steps.Fault) for step in others):
        return []
    drawn: list[steps.Step] = []
    for _ in range(rng.randint(1, 3)):
        at = max(PAIRED, round(rng.choice(others).at + rng.random(), 3))
        pause = rng.choice((0.3, 1.0)) * rng.random()
        drawn.append(
            rng.choice((steps.SendChatMessage, steps.StartRun)).of(at, rng.randrange(64), rng.choice((TOOL, LOST)), 0.0)
        )
        drawn.append(steps.RefuseChatRecords.of(round(at + pause, 3), 0, 0, round(0.02 + rng.random() ** 2, 3)))
    return drawn


def _stopped_in_line(seed: int, others: list[steps.Step]) -> list[steps.Step]:
    """Return a turn of a chat, runs that are queued behind it, and a stop; an empty list in most scripts."""
    rng = Random(f"line {seed}")
    if rng.random() < IN_ORDER:
        return []
    who = 4 * rng.randrange(16) + 1
    at = max(PAIRED, round(rng.choice(others).at + rng.random(), 3))
    drawn: list[steps.Step] = [steps.SendChatMessage.of(at, who, rng.choice((TOOL, SILENT_MODEL)))]
    for _ in range(rng.randint(1, 3)):
        at = round(at + 0.05 + 0.3 * rng.random(), 3)
        drawn.append(steps.StartRun.of(at, who, 0, 1.0))
    return [*drawn, steps.StopRun.of(round(at + 0.1 + rng.random(), 3), rng.randrange(3))]


def _impatience(seed: int, others: list[steps.Step]) -> list[steps.Step]:
    """Return steps of clients that disconnect before their response, at once or during the processing.

    Some of them come with a large upload or, in scripts with faults, a slow disk. The list is empty in some scripts.
    """
    rng = Random(f"impatience {seed}")
    asking = [step for step in others if type(step) in ASKING and step.at > PAIRED]
    if rng.random() < PATIENT or not asking:
        return []
    faulty = any(isinstance(step, steps.Fault) for step in others)
    drawn: list[steps.Step] = []
    for _ in range(rng.randint(1, 6)):
        step = rng.choice(asking)
        if rng.random() < 0.3:  # a large upload takes longer
            step = steps.UploadMedia.of(round(step.at + rng.random(), 3), rng.randrange(64), FORM, LARGE)
            drawn.append(step)
        amount = rng.choice((0.01, 0.01, 0.04, 0.3)) * rng.random()
        if faulty and rng.random() < 0.4:  # a slow disk takes longer
            drawn.append(steps.DegradeDisk.of(step.at - 0.001, 0, SLUGGISH, 0.2))
        drawn.append(steps.LeaveEarly.of(step.at - 0.0005, 0, rng.randrange(2), round(amount, 4)))
    return drawn


def _questions(seed: int, others: list[steps.Step]) -> list[steps.Step]:
    """Return steps of commands that the phone's user must confirm and may answer; an empty list in most scripts."""
    rng = Random(f"questions {seed}")
    if rng.random() < TRUSTED:
        return []
    drawn: list[steps.Step] = []
    for _ in range(rng.randint(1, 4)):
        at, amount = round(rng.choice(others).at + rng.random(), 3), round(0.5 + 12.0 * rng.random(), 3)
        drawn.append(steps.AskPhoneUser.of(at, -1, rng.randrange(64), amount))
    return drawn
