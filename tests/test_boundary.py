from svc_proto.boundary import Core
from svc_proto.engine.core import Engine
from tests.engine.toy_service import ToyService
from tests.support.playbook import START, counting_entropy


def test_an_engine_is_a_core() -> None:
    core: Core = Engine(ToyService(), entropy=counting_entropy())
    assert core.handle(None, START) == []
    assert core.next_deadline() is None
