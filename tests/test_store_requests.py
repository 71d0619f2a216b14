from svc_proto.commands import Query
from svc_proto.facts import OperationId
from svc_proto.store_requests import DeleteSession, LoadSessions, SaveSession

ONE = OperationId(1)


def test_each_request_names_the_type_of_its_answer() -> None:
    assert Query(ONE, LoadSessions()).accepts(())
    assert not Query(ONE, LoadSessions()).accepts(None)
    assert Query(ONE, SaveSession("h", {})).accepts(None)
    assert not Query(ONE, SaveSession("h", {})).accepts(1)
    assert Query(ONE, DeleteSession("h")).accepts(None)
