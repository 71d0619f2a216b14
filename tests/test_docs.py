"""The documents match the code: code blocks, steps of the contract, links, the picture of access."""

import re
from pathlib import Path

import pytest

from fuzz.simulation.access_matrix import CHANNEL_ACCESS, CLIENT_KINDS, IN, RELAY_ACCESS
from runtimes.files.env_file import parse_env_file
from runtimes.loops import threads_loop
from svc_proto import boundary
from svc_proto.api.config import parse_api_config
from svc_proto.dashboard.config import parse_dashboard_config
from svc_proto.relay_config import parse_relay_config
from tests.support.cli_page import PAGE as CLI_PAGE
from tests.support.cli_page import text as cli_text
from tests.support.environment_variables import PAGE as VARIABLES
from tests.support.environment_variables import documented, unknown
from tests.support.limits_page import PAGE as LIMITS_PAGE
from tests.support.limits_page import text as limits_text

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs/howto/run-on-your-own-loop.md").read_text()
(LOOP,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


# of docs/explanation/security-model.md: the callers and routes of `fuzz/simulation/access_matrix.py` in each box
PICTURE = {
    "pages": "lan_page local_page",
    "remote": "stranger other_user proxy revoked",
    "public": "every caller",
    "socket": "every caller but pages",
    "local_door": "programs of this host; this host, or a session with notifications",
    "devices": "this host, or a session",
    "session": "a session; an authenticated client",
    "granted": "this host, or a session with notifications; a session with files; a session with manage; "
    "a session with notifications; "
    "a session with bridge; a session with bridge, but no page's; a session with voice; "
    "a session with voice, but no page's; a session with chat; a session with terminal; a session with tui",
}


def test_the_loop_of_the_documentation_is_the_one_that_is_tested() -> None:
    assert LOOP in Path(threads_loop.__file__).read_text()


def test_the_steps_of_the_documentation_are_the_contract() -> None:
    def steps(text: str) -> list[str]:
        return re.findall(r"^\d\. .*(?:\n   .*)*", text, re.MULTILINE)

    assert steps(GUIDE) == steps(boundary.__doc__ or "")
    assert len(steps(GUIDE)) == 6


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, in the form of GitHub."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_of_the_documents_has_a_target() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for path, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page.read_text()):
            target = page.parent / path if path else page
            assert target.exists(), f"{page.name} links to {path}"
            assert not anchor or anchor in anchors(target), f"{page.name} links to {path}#{anchor}"


def test_the_readme_names_the_security_page() -> None:
    text = (ROOT / "README.md").read_text()
    assert "(docs/explanation/security-model.md)" in text.partition("\n## Who decides\n")[2].partition("\n## ")[0]
    pages = [(ROOT / f"docs/explanation/{name}.md").read_text() for name in ("security-model", "local-access")]
    sections = [section for page in pages for section in re.findall(r"^## (.*)$", page, re.MULTILINE)]
    assert {"Trust by client", "Consequences of disclosure", "Report a vulnerability", "Behind a proxy"} <= {*sections}


def test_the_access_picture_equals_the_access_matrix() -> None:
    (picture,) = re.findall(
        r"```mermaid\n(.*?)```", (ROOT / "docs/explanation/security-model.md").read_text(), re.DOTALL
    )
    drawn = {
        (caller, listener)
        for who, listeners in re.findall(r"^    (\w+) --> ([\w &]+)$", picture, re.MULTILINE)
        for caller in PICTURE.get(who, who).split()
        for box in listeners.split(" & ")
        for listener in PICTURE.get(box, box).split("; ")
        if caller in CLIENT_KINDS
    }
    told = {
        (caller, listener)
        for listener, (met, _) in (*RELAY_ACCESS.items(), *CHANNEL_ACCESS.items())
        for caller, what in zip(CLIENT_KINDS, met.split(), strict=True)
        if what == IN
    }
    assert drawn == told


def test_each_variable_of_the_environment_page_is_read_by_the_product() -> None:
    assert unknown() == set()
    assert len(documented()) > 100


def test_the_page_of_the_command_line_is_the_help_of_the_programs() -> None:
    assert CLI_PAGE.read_text() == cli_text(), "python -m tests.support.cli_page"


def test_the_page_of_limits_is_their_source() -> None:
    assert LIMITS_PAGE.read_text() == limits_text(), "python -m tests.support.limits_page"


LENGTHS = {"docs/howto": 80, "docs/tutorials": 150, "docs/explanation": 200, "docs/adr": 60}  # lines


@pytest.mark.parametrize("folder", LENGTHS)
def test_a_page_has_one_subject_and_few_lines(folder: str) -> None:
    pages = [page for page in (ROOT / folder).rglob("*.md") if page.name != "README.md"]
    assert pages
    assert [page.name for page in pages if page.read_text().count("\n") > LENGTHS[folder]] == []


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"])
def test_a_page_of_the_root_is_short(name: str) -> None:
    assert (ROOT / name).read_text().count("\n") <= 150


def settings_blocks() -> list[tuple[str, dict[str, str]]]:
    """Return the blocks of settings in the how-tos: the name of the page, and the variables."""
    blocks = [
        (page.name, parse_env_file(block))
        for page in sorted((ROOT / "docs/howto").rglob("*.md"))
        for block in re.findall(r"```sh\n((?:[A-Z_]+=.*\n)+)```", page.read_text())
    ]
    return [(name, {key: value.replace("...", "x" * 16) for key, value in block.items()}) for name, block in blocks]


@pytest.mark.parametrize(("page", "block"), settings_blocks())
def test_the_servers_accept_the_settings_of_the_how_tos(page: str, block: dict[str, str]) -> None:
    assert block.keys() <= {*re.findall(r"[A-Z][A-Z0-9_]+", VARIABLES.read_text())}, page
    rest = {"SVC_DATABASE_URL": "postgresql://svc@db.lan/svc", "API_SERVER_KEY": "x" * 16}
    rest |= {"SVC_CLUSTER_URL": "redis://redis.lan"} | block
    for config in (parse_relay_config, parse_api_config, parse_dashboard_config):
        config(rest)


def test_settings_are_found_in_the_how_tos() -> None:
    assert {"cluster.md", "proxies.md", "tls.md"} <= {page for page, _ in settings_blocks()}
