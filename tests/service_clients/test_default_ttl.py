import pytest

from svc_proto.machines.candidate_selection import Candidate
from svc_proto.service_clients.default_ttl import default_ttl
from tests.support.tables import read_table


@pytest.mark.parametrize("row", read_table("tests/service_clients/default_ttl.tsv"), ids=lambda row: row["url"])
def test_default_is_a_week_over_plain_ws(row: dict[str, str]) -> None:
    seconds = int(row["seconds"]) if row["seconds"] else None
    assert default_ttl(Candidate(row["role"], 0, row["url"])) == seconds
