"""Bodies of Device Control: input that their types accept, compared with the relay's checks."""

import pytest
from jsonschema import Draft202012Validator

from svc_proto.basics.errors import Refused
from svc_proto.relay.openapi.device_control_types import ARGUMENTS, QUERIES
from svc_proto.schema.device_control_routes import DEVICE_CONTROL, check_arguments
from svc_proto.schema.json_schema import SchemaComponents, inline_schema_of
from tests.schema.test_device_control_arguments import BAD, GOOD

BODIES = [arguments for *_, arguments in GOOD] + [arguments for *_, arguments, _ in BAD]
WIDER = ("/tap", "/long_press", "/describe_node", "/swipe", "/scroll", "/share_media", "/send_mms")
"""Routes whose types cannot express which members belong together, and so accept more than the checks."""


def test_every_command_with_arguments_has_a_type() -> None:
    typed = {("POST", path) for path in ARGUMENTS} | {("GET", path) for path in QUERIES}
    assert typed == {key for key, row in DEVICE_CONTROL.items() if row.rules}


@pytest.mark.parametrize("path", ARGUMENTS)
def test_types_accept_the_same_input_as_the_checks(path: str) -> None:
    parts = SchemaComponents()
    validator = Draft202012Validator(inline_schema_of(ARGUMENTS[path], parts))
    assert parts.schemas == {}
    for body in BODIES:
        try:
            check_arguments("POST", path, body)
            taken = True
        except Refused:
            taken = False
        fits = validator.is_valid(body)
        assert fits or not taken, body
        assert taken or not fits or path in WIDER, body
