"""Tool with which the agent asks its user in the middle of a turn: yes, no, or an answer in words."""

from attrs import evolve

from svc_proto.agent.tools.tool import Arguments, Tool, Toolset, schema
from svc_proto.agent.turn_consent import CallConsent
from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow

__all__ = ["ASK_USER", "YES", "owner_question"]

ASK_USER = "ask_user"

MAX_QUESTION = 500  # characters of a question
YES, NO = "The user answered yes.", "The user answered no, or did not answer in time."
IN_WORDS = "The user answered: "
NOT_HERE = (
    "The user cannot be asked in the middle of this turn.",
    "End your answer with the question; the user answers with the next message.",
)


def owner_question() -> Toolset:
    """Return the toolset of the tool `ask_user`."""
    tool = Tool(
        name=ASK_USER,
        description="Ask the user yes or no, and wait. The user may answer in words.",
        parameters=schema(("question",), question={"type": "string"}),
        run=_run_without_consent,
        with_consent=_with_consent,
        reads_foreign_content=False,
        group="people",
    )
    return Toolset(name="user", label="User", description="Asks the user in the middle of a task", tools=(tool,))


def _with_consent(consent: CallConsent) -> Tool:
    def run(arguments: Arguments) -> Flow[str]:
        answer = yield from consent.ask(str(arguments["question"])[:MAX_QUESTION])
        if answer is None:
            raise ToolError(*NOT_HERE)
        return {"once": YES, "deny": NO}.get(answer) or f"{IN_WORDS}{answer}"

    return evolve(owner_question().tools[0], run=run)


def _run_without_consent(arguments: Arguments) -> Flow[str]:
    yield from ()
    raise ToolError(*NOT_HERE)
