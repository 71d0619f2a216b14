import pytest

from svc_proto.basics.dotenv import OWN_PREFIXES
from svc_proto.basics.variable_names import MAX_UNKNOWN, VARIABLE_NAMES, find_unknown_variables, unknown_variable_text
from tests.support.environment_variables import documented

INTERNAL = {  # of our own child processes, and older names of the desktop's variables
    "RELAY_WORKER",
    "RELAY_WORKER_INSIDE",
    *(f"HERMES_RELAY_{word}" for word in ("CODE", "PAIR_QR", "TOKEN", "URL")),
}


def test_the_names_are_those_of_the_documentation() -> None:
    named = {name for name in documented() - {"SVC_"} if name.startswith(OWN_PREFIXES)}
    assert named == VARIABLE_NAMES - INTERNAL


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("RELAY_HSOT", "RELAY_HOST"),
        ("RELAY_PROT", "RELAY_PORT"),
        ("API_SERVER_KEYS", "API_SERVER_KEY"),
        ("api_server_key", "API_SERVER_KEY"),
        ("SVC_MODEL_URL", "SVC_MODEL_BASE_URL"),
        ("SVC_DASHBOARD_PASWORD", "SVC_DASHBOARD_PASSWORD"),
        ("RELAY_HQQQ", "RELAY_HOST"),  # as similar as necessary
        ("SVC_X9", ""),
        (f"RELAY_{'X' * 100}", ""),
    ],
)
def test_the_nearest_name(name: str, nearest: str) -> None:
    assert find_unknown_variables(["PATH", "OPENAI_KEY", name, "RELAY_HOST", "_SVC_COMPLETE"]) == {name: nearest}


def test_known_names_are_no_finding() -> None:
    assert find_unknown_variables(VARIABLE_NAMES | {"HOME"}) == {}


def test_the_report_is_limited() -> None:
    assert len(find_unknown_variables(f"RELAY_X{number}" for number in range(MAX_UNKNOWN + 1))) == MAX_UNKNOWN


def test_the_text_names_the_nearest_name() -> None:
    assert unknown_variable_text("RELAY_HSOT", "RELAY_HOST") == (
        "RELAY_HSOT is no variable that is known here: is RELAY_HOST meant?"
    )
    assert unknown_variable_text("SVC_X9", "") == "SVC_X9 is no variable that is known here"
