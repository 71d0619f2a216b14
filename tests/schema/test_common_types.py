import json

from svc_proto.schema.common_types import RpcMessageJson
from svc_proto.schema.json_rpc import RpcError, write_error, write_notification, write_request, write_result


def test_written_messages_have_the_members_of_their_types() -> None:
    messages = (
        write_result(1, {}),
        write_error(RpcError(1, "no"), 1),
        write_notification("n", {}),
        write_request(1, "m", {}),
    )
    for message in messages:
        assert RpcMessageJson.__required_keys__ <= json.loads(message).keys() <= {*RpcMessageJson.__annotations__}
