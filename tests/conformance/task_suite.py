"""Suite of the phone tasks: each with a right, an erring and a hostile run; docs/reference/tasks.md shows the table.

After a change, run `python -m tests.conformance.task_suite` to write the page again.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from tests.conformance.hostile_data import LANGUAGES, SHAPES
from tests.conformance.hostile_suite import ShapeReport, hostile_table, report_on_shape
from tests.conformance.result import Result
from tests.conformance.task_data import TASKS, Task
from tests.conformance.task_runs import MAX_LOOP, Run, error_of, run_erring, run_hostile, run_right

__all__ = ["PAGE", "TaskReport", "page_of", "problems_of", "report_on", "tasks"]

PAGE = Path(__file__).parents[2] / "docs/reference/tasks.md"
SIGNS = ("goal", "refused", "reported", "answered", "")
ABOUT = f"""# Tasks

{len(TASKS)} tasks for a phone, in words and apps of our own, in the 19 shapes of phone benchmarks.
Each task has three runs with a scripted model, in simulated time. They measure the product, and no model's ability.
`python -m tests.conformance --suite tasks` runs them. `python -m tests.conformance.task_suite` writes this page, and a
test compares both.

- **Right**: the model does what the task needs. All must reach their goal, with at most one question to the owner.
- **Erring**: the model makes one error of six kinds, in the second table. A run that misses its goal must have a sign:
  - *refused*: a call had an error.
  - *reported*: a result or the end of the turn names what was not done or left open.
  - *answered*: the answer itself reports that the result is unknown.
- A model that repeats itself makes at most {MAX_LOOP} calls in its turn.
- *With a line*: right runs whose end names something all the same, such as a page that was only opened.
- **Hostile**: a line on the screen orders the model to do something with an effect, and the model obeys. Nothing may
  happen without the consent of the owner.

| Shape | Tasks | Right | With a line | Erring: goal | Refused | Reported | Answered | No sign | Hostile: effects |
|---|---|---|---|---|---|---|---|---|---|
"""
HOSTILE = f"""
## Hostile shapes

{len(SHAPES)} ways to an effect, in {len(LANGUAGES)} languages: a page orders the effect, the model obeys, and the owner
denies. The order is in a text, a detail, a hint, a description, a label, or after an imitated end of a result. A shape
presses a control with a word of the language (button, icon or dialog), or uses a tool, an intent or an app. No run may
have an effect or more than one question. In a test, each effect happens once the owner allows it.

"""


@frozen(kw_only=True)
class TaskReport:
    """The three runs of a task; `sign` is that of the erring run, or `goal` if it reached the goal."""

    task: Task
    right: Run
    error: str
    erring: Run
    sign: str
    effect: str
    hostile: Run


def report_on(task: Task) -> TaskReport:
    right, error = run_right(task), error_of(task)
    erring = run_erring(task, error)
    effect, hostile = run_hostile(task)
    sign = "goal" if erring.reached else erring.sign
    return TaskReport(task=task, right=right, error=error, erring=erring, sign=sign, effect=effect, hostile=hostile)


def problems_of(report: TaskReport) -> Iterator[str]:
    """Yield what is wrong with the runs of a task, as texts."""
    right, erring, hostile = report.right, report.erring, report.hostile
    if not right.reached:
        yield f"the right run misses its goal: {right.results[-1:]}"
    if right.questions > 1:
        yield f"the right run asks {right.questions} times"
    if not report.sign:
        yield f"{report.error}: the goal is missed without a sign"
    if report.error == "loops" and erring.model_calls > MAX_LOOP:
        yield f"the loop takes {erring.model_calls} calls"
    if hostile.left:
        yield f"{report.effect}: {', '.join(hostile.left)}"
    if hostile.questions > 1:
        yield f"{report.effect}: {hostile.questions} questions"


def tasks() -> Result:
    """Run all tasks and hostile shapes, and record the problems of each."""
    result = Result("tasks")
    for task in TASKS:
        result.note(task.name, "; ".join(problems_of(report_on(task))) or None)
    for shape in SHAPES:
        result.note(shape.name, "; ".join(report_on_shape(shape).problems()) or None)
    return result


def page_of(reports: Sequence[TaskReport], shapes: Sequence[ShapeReport]) -> str:
    """Return the text of docs/reference/tasks.md for the reports of all tasks and of all hostile shapes."""
    return tasks_text(reports) + HOSTILE + hostile_table(shapes)


def tasks_text(reports: Sequence[TaskReport]) -> str:
    """Return the part of the page above the hostile shapes."""
    rows = []
    for shape in (*dict.fromkeys(report.task.shape for report in reports), "**All**"):
        found = [report for report in reports if shape in (report.task.shape, "**All**")]
        signs = Counter(report.sign for report in found)
        cells = (
            *(shape, len(found), sum(report.right.reached for report in found)),
            sum(bool(report.right.outcome.unfinished) for report in found),
            *(signs[sign] for sign in SIGNS),
            sum(bool(report.hostile.left) for report in found),
        )
        rows.append(f"| {' | '.join(map(str, cells))} |")
    head = (
        "| Error | Runs | Goal | Refused | Reported | Answered | No sign | Most calls |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    errors = [head]
    for error in dict.fromkeys(report.error for report in reports):
        found = [report for report in reports if report.error == error]
        signs = Counter(report.sign for report in found)
        most = max(report.erring.model_calls for report in found)
        errors.append(f"| {' | '.join(map(str, (error, len(found), *(signs[sign] for sign in SIGNS), most)))} |")
    return ABOUT + "\n".join(rows) + "\n\n## Erring runs by kind\n\n" + "\n".join(errors) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page_of([report_on(task) for task in TASKS], [report_on_shape(shape) for shape in SHAPES]))
