from svc_proto.openapi.operation_doc import AccessDoc, OperationDoc


def test_operations_without_members_share_no_state() -> None:
    assert OperationDoc("Something") == OperationDoc("Something", None, 200, query={}, events={})
    assert AccessDoc("For every caller.").schemes == ()
