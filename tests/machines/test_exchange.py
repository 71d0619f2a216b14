from svc_proto.machines.exchange import EXCHANGE_TABLE, ExchangeState, ExchangeTrigger


def test_every_exchange_can_end() -> None:
    for state in ExchangeState:
        assert EXCHANGE_TABLE[state, ExchangeTrigger.LOST] is ExchangeState.DONE
