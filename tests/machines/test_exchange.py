from __future__ import annotations

import pytest

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.machines.exchange import EXCHANGE_TABLE, ExchangeState, ExchangeTrigger
from svc_proto.machines.transitions import step

S, T = ExchangeState, ExchangeTrigger


def test_state_table() -> None:
    expected = {
        (S.READING, T.ASK): S.ADMITTING,
        (S.ADMITTING, T.ADMIT): S.READING,
        (S.READING, T.BODY_END): S.RUNNING,
        (S.READING, T.STREAM): S.STREAMING,
        (S.READING, T.ANSWER): S.DRAINING,
        (S.STREAMING, T.BODY_END): S.RUNNING,
        (S.STREAMING, T.ANSWER): S.DRAINING,
        (S.STREAMING, T.SEND): S.DUPLEX,
        (S.DUPLEX, T.BODY_END): S.SENDING,
        (S.DUPLEX, T.ANSWER): S.DRAINING,
        (S.RUNNING, T.SEND): S.SENDING,
        (S.RUNNING, T.ANSWER): S.DONE,
        (S.SENDING, T.ANSWER): S.DONE,
        (S.DRAINING, T.BODY_END): S.DONE,
        **{(state, T.LOST): S.DONE for state in S},
    }
    for state in S:
        for trigger in T:
            if (state, trigger) in expected:
                assert step(EXCHANGE_TABLE, state, trigger) is expected[state, trigger]
            else:
                with pytest.raises(LocalProtocolError):
                    step(EXCHANGE_TABLE, state, trigger)
