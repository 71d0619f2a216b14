from svc_proto.api.openapi.operations import API_DOC as API
from svc_proto.openapi.profile_operations import PROFILE_OPERATIONS
from svc_proto.relay.openapi.operations import API_DOC as RELAY


def test_both_servers_describe_the_routes() -> None:
    for document in (API, RELAY):
        labels = {*document.by_label}
        assert labels >= set(PROFILE_OPERATIONS)
