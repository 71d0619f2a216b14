import pytest

from svc_proto.basics.moment import Moment
from svc_proto.phone.safety.master_toggle import MASTER_TABLE, MasterState, MasterToggle, MasterTrigger
from tests.machines.specified_tables import check_table

NOW = Moment(100.0, 1_800_000_000.0)
DEFAULT = 30 * 60.0


def armed(minutes: int = 30) -> MasterToggle:
    master = MasterToggle(idle_minutes=minutes)
    assert master.turn_on(NOW, accessible=True)
    return master


def test_the_table_is_the_specification() -> None:
    check_table(
        MASTER_TABLE,
        MasterState,
        MasterTrigger,
        [  # spec "Bridge (Device Control, sideload build)", its rows and its note
            ("Off", (MasterTrigger.TURN_ON,), "Armed"),
            ("Armed", (MasterTrigger.COMMAND,), "Armed"),
            ("Armed", (MasterTrigger.IDLE,), "Off"),
            ("Armed", (MasterTrigger.TURN_OFF,), "Off"),
            ("Armed", (MasterTrigger.PROCESS_DEATH,), "Off"),
            ("Off", (MasterTrigger.COMMAND,), "Off"),
            ("Off", (MasterTrigger.TURN_ON_INACCESSIBLE,), "Off"),
        ],
    )


def test_toggle_turns_off_after_an_interval_without_commands() -> None:
    master = armed()
    assert master.next_deadline() == NOW.mono + DEFAULT
    assert not master.advance(NOW.at(NOW.mono + DEFAULT - 0.001))
    assert master.advance(NOW.at(NOW.mono + DEFAULT))
    assert master.state is MasterState.OFF
    assert not master.advance(NOW.at(NOW.mono + DEFAULT))
    reasons = [master.turned_off_by]
    assert master.turn_on(NOW, accessible=True)
    reasons.append(master.turned_off_by)
    assert master.turn_off()
    reasons.append(master.turned_off_by)
    assert reasons == [MasterTrigger.IDLE, None, MasterTrigger.TURN_OFF]
    master = armed()
    master.command(NOW.at(500.0))
    assert master.turn_on(NOW.at(900.0), accessible=True)
    assert master.next_deadline() == 500.0 + DEFAULT


@pytest.mark.parametrize(("asked", "kept"), [(-1, 5), (0, 5), (4, 5), (5, 5), (30, 30), (120, 120), (121, 120)])
def test_the_interval_is_clamped(asked: int, kept: int) -> None:
    master = MasterToggle(idle_minutes=asked)
    assert master.idle_minutes == kept
    assert master.turn_on(NOW, accessible=True)
    assert master.next_deadline() == NOW.mono + kept * 60
