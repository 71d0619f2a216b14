from svc_proto.openapi.operation_doc import AccessDoc, OperationDoc


def test_defaults_of_an_operation() -> None:
    says = OperationDoc("Something")
    assert (says.answer, says.status, says.body) == (None, 200, None)
    assert (
        says.query,
        says.headers,
        says.other_responses,
        says.error_responses,
        says.details,
        says.events,
        says.client_messages,
        says.server_messages,
    ) == ({}, {}, {}, {}, "", {}, {}, {})
    assert says == OperationDoc("Something", None, 200)
    assert AccessDoc("For every caller.").schemes == ()
