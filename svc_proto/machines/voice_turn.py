"""The life of a spoken turn (wire terminal-voice 6.6); `svc_proto.machines.broker` moves along it.

| state      | trigger | next       |
|------------|---------|------------|
| idle       | HEAR    | hearing    | the person has finished an utterance
| idle       | ASK     | answering  | a text turn
| idle       | SETTLE  | settling   | a run in the background has answered, and it is quiet
| idle       | RENDER  | rendering  | an answer is to be heard again
| idle       | END     | idle       | a cancel with nothing to cancel
| hearing    | HEAR    | hearing    | one more utterance before the first was transcribed
| hearing    | ASK     | answering  | it is transcribed, or was not within 10 s: ONE response is asked for
| hearing    | END     | idle       | given up
| answering  | HEAR    | hearing    | the person speaks up
| answering  | ASK     | answering  | the same, by text
| answering  | CONSULT | consulted  | the provider called a small function and was answered
| answering  | WORK    | working    | it called the run function; or its answer beside a run is over
| answering  | SETTLE  | settling   | its answer is over, and a run has finished meanwhile
| answering  | END     | idle       | its answer is over
| consulted  | HEAR    | hearing    |
| consulted  | ASK     | answering  | what was said is played: ask for a response
| consulted  | END     | idle       |
| working    | HEAR    | hearing    | the person says something beside the run
| working    | ASK     | answering  | the same, by text; or that the run goes on in the background is to be said
| working    | SETTLE  | settling   | the run has finished
| working    | END     | idle       | it was stopped, or failed, or goes on in the background
| settling   | HEAR    | hearing    | the answer lands on the screen
| settling   | ASK     | answering  | the same
| settling   | DELIVER | delivering | what was said is played: the provider is asked to speak the answer
| settling   | END     | idle       |
| delivering | HEAR    | hearing    | the answer lands on the screen
| delivering | ASK     | answering  | the same
| delivering | RENDER  | rendering  | the provider said something else, or nothing
| delivering | END     | idle       |
| rendering  | HEAR    | hearing    |
| rendering  | ASK     | answering  |
| rendering  | END     | idle       |

"""

from __future__ import annotations

from enum import Enum

from svc_proto.machines.table import Table

__all__ = ["TURN_TABLE", "TurnState", "TurnTrigger"]


class TurnState(Enum):
    """Where the conversation is."""

    IDLE = "idle"
    HEARING = "hearing"
    ANSWERING = "answering"
    CONSULTED = "consulted"
    WORKING = "working"
    SETTLING = "settling"
    DELIVERING = "delivering"
    RENDERING = "rendering"


class TurnTrigger(Enum):
    """What moves it."""

    HEAR = "hear"
    ASK = "ask"
    CONSULT = "consult"
    WORK = "work"
    SETTLE = "settle"
    DELIVER = "deliver"
    RENDER = "render"
    END = "end"


_S, _T = TurnState, TurnTrigger
TURN_TABLE: Table[TurnState, TurnTrigger] = {
    (_S.IDLE, _T.HEAR): _S.HEARING,
    (_S.IDLE, _T.ASK): _S.ANSWERING,
    (_S.IDLE, _T.SETTLE): _S.SETTLING,
    (_S.IDLE, _T.RENDER): _S.RENDERING,
    (_S.IDLE, _T.END): _S.IDLE,
    (_S.HEARING, _T.HEAR): _S.HEARING,
    (_S.HEARING, _T.ASK): _S.ANSWERING,
    (_S.HEARING, _T.END): _S.IDLE,
    (_S.ANSWERING, _T.HEAR): _S.HEARING,
    (_S.ANSWERING, _T.ASK): _S.ANSWERING,
    (_S.ANSWERING, _T.CONSULT): _S.CONSULTED,
    (_S.ANSWERING, _T.WORK): _S.WORKING,
    (_S.ANSWERING, _T.SETTLE): _S.SETTLING,
    (_S.ANSWERING, _T.END): _S.IDLE,
    (_S.CONSULTED, _T.HEAR): _S.HEARING,
    (_S.CONSULTED, _T.ASK): _S.ANSWERING,
    (_S.CONSULTED, _T.END): _S.IDLE,
    (_S.WORKING, _T.HEAR): _S.HEARING,
    (_S.WORKING, _T.ASK): _S.ANSWERING,
    (_S.WORKING, _T.SETTLE): _S.SETTLING,
    (_S.WORKING, _T.END): _S.IDLE,
    (_S.SETTLING, _T.HEAR): _S.HEARING,
    (_S.SETTLING, _T.ASK): _S.ANSWERING,
    (_S.SETTLING, _T.DELIVER): _S.DELIVERING,
    (_S.SETTLING, _T.END): _S.IDLE,
    (_S.DELIVERING, _T.HEAR): _S.HEARING,
    (_S.DELIVERING, _T.ASK): _S.ANSWERING,
    (_S.DELIVERING, _T.RENDER): _S.RENDERING,
    (_S.DELIVERING, _T.END): _S.IDLE,
    (_S.RENDERING, _T.HEAR): _S.HEARING,
    (_S.RENDERING, _T.ASK): _S.ANSWERING,
    (_S.RENDERING, _T.END): _S.IDLE,
}
