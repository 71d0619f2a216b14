"""Rows of docs/reference/limits.md for each limit, and of docs/spec/differences.md for limits of routes' inputs."""

import re
from importlib import import_module

import attrs

from svc_proto.dashboard.config import parse_dashboard_config
from svc_proto.dashboard.relay_proxy import PREFIXES
from svc_proto.dashboard.service import Dashboard
from svc_proto.wire import DEFAULT_LIMITS, Limits
from tests.support.limits_page import PAGE, ROOT, constant_limits

DIFFERENCES = (ROOT / "docs/spec/differences.md").read_text()
ROWS = PAGE.read_text().splitlines()


def test_each_field_of_limits_has_a_row() -> None:
    for field in attrs.fields(Limits):
        (row,) = [row for row in ROWS if row.startswith(f"| `{field.name}` | ")]
        value, meaning = row.split(" | ", 2)[1:]
        assert value == f"{getattr(DEFAULT_LIMITS, field.name):,}"
        assert len(meaning.removesuffix(" |")) > 2, f"{field.name} needs a comment in svc_proto/wire/limits.py"


def test_each_limit_has_a_row_with_its_meaning() -> None:
    limits = constant_limits()
    unexplained = [limit for limit in limits if not limit.meaning]
    assert unexplained == [], "each limit needs a comment: what is limited, and what happens at the limit"
    assert [limit for limit in limits if limit.row() not in ROWS] == [], "python -m tests.support.limits_page"


def test_every_package_with_limits_is_walked() -> None:
    limits = constant_limits()
    assert len(limits) > 350
    assert {"svc_proto/api", "svc_proto/relay", "svc_proto/voice", "runtimes", "clients"} <= {
        limit.package for limit in limits
    }


CITED = re.findall(r"\| `([a-z_.0-9]+)\.([A-Z_]+)` = ([0-9,._]+) \|$", DIFFERENCES, re.MULTILINE)


def test_rows_of_the_differences_have_the_values_of_their_constants() -> None:
    for module, name, value in CITED:
        assert getattr(import_module(f"svc_proto.{module}"), name) == int(value.replace(",", "")), (module, name)


def test_each_limit_in_the_differences_cites_its_constant() -> None:
    section = DIFFERENCES.partition("## Limits that clients meet\n")[2].partition("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("| ")][1:]
    assert len(rows) == len(CITED) > 20


INPUT_MODULES = ("api.routes.", "api.chat.", "api.content", "api.completion_options", "api.service", "relay.routes.")


def test_each_limit_of_an_input_of_a_route_has_a_row_in_the_differences() -> None:
    limits = {
        f"{limit.package.removeprefix('svc_proto/')}.{limit.module}.{limit.name}": limit.value
        for limit in constant_limits()
    }
    inputs = {name: value for name, value in limits.items() if name.startswith(INPUT_MODULES)}
    assert len(inputs) > 20
    assert [name for name, value in inputs.items() if f"`{name}` = {value:,} |" not in DIFFERENCES] == []


def test_the_row_of_the_dashboard_names_the_calls_beyond_the_requirement() -> None:
    required = {"GET /overview", "GET /sessions", "GET /bridge-activity", "GET /media", "DELETE /sessions/{prefix}"}
    routes = Dashboard(parse_dashboard_config({}), {}, limits=DEFAULT_LIMITS).router.routes
    prefix = PREFIXES[0]
    calls = {
        f"{route.method} {route.pattern.removeprefix(prefix)}" for route in routes if route.pattern.startswith(prefix)
    }
    more = calls - required - {"GET /push"}
    (row,) = [row for row in DIFFERENCES.splitlines() if row.startswith("| R1.13: ")]
    assert set(re.findall(r"`([A-Z]+ /[^`]*)`", row)) == more
    assert len(calls) == 14
