from svc_proto.cli.errors import CliError
from svc_proto.cli.one_shot_service import INTERRUPTED, OneShotService, announce_progress
from svc_proto.commands import Abort, Exit, Notify, Ready
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.facts import Started, Stopping
from tests.cli.harness import OneShotHarness
from tests.support.playbook import CH, Playbook, accepted, counting_entropy


def slow(engine: Engine) -> Flow[str]:
    announce_progress(engine, "dozing")
    yield from sleep(engine, 2.5)
    return "rested"


def refuse(engine: Engine) -> Flow[str]:
    yield from sleep(engine, 0.1)
    raise CliError("no", code=2)


def crash(engine: Engine) -> Flow[str]:
    yield from sleep(engine, 0.1)
    raise RuntimeError("a secret")


def test_the_result() -> None:
    world = OneShotHarness(slow)
    assert world.run() == "rested"
    assert world.told == [Notify("doing", {"text": "dozing"})]


def test_watched_service_reports_each_second() -> None:
    world = OneShotHarness(OneShotService(slow, watched=True))
    assert world.run() == "rested"
    assert world.told[1:] == [Notify("waiting", {"seconds": 1}), Notify("waiting", {"seconds": 2})]


def test_a_problem() -> None:
    assert OneShotHarness(refuse).fails() == Exit(2, "no")


def test_bug_is_reported_by_reference_only() -> None:
    assert OneShotHarness(crash).fails() == Exit(70, "internal error, reference bug-1")


def test_ctrl_c() -> None:
    book = Playbook(Engine(OneShotService(slow), entropy=counting_entropy()))
    book >> Started() << [Ready(), Notify("doing", {"text": "dozing"})]
    book >> accepted() << [Abort(CH)]
    book >> Stopping(2.0) << [Exit(INTERRUPTED)]
