"""What a model says in a turn, drawn beforehand, and what follows from it: rows, tokens, and what it is given."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from attrs import define, field

from fuzz.audit import Audit
from fuzz.part import Round, asking

__all__ = ["NOBODY", "NO_OBJECT", "Said", "Tale", "Use", "drawn", "for_model", "heard_of"]

GAP = "\n\n"  # between the texts of two answers of the model
NOBODY = "somebody has to allow this call, and nobody can be asked from here, so it was not made."
NO_OBJECT = "the arguments are not a JSON object"
NO_SKILLS = '{"skills":[],"count":0}'
Said: TypeAlias = dict[str, Any]


@define(eq=False)
class Use:
    """A tool that the model uses, and what comes of it."""

    name: str
    given: Any
    output: str
    failed: bool = False
    id: str = ""

    @property
    def arguments(self) -> str:
        """As the model writes them."""
        return self.given if isinstance(self.given, str) else json.dumps(self.given)

    @property
    def args(self) -> Said:
        """As they are understood."""
        return {} if isinstance(self.given, str) else dict(self.given)

    @property
    def text(self) -> str:
        """What the model is told of the result."""
        return f"error: {self.output}" if self.failed else self.output


@define(eq=False)
class Tale:
    """A turn as it has to be told."""

    word: str
    rounds: list[Round]
    uses: list[Use]  # one for each round but the last
    end: str  # stop, length or error
    history: list[Said] = field(factory=list)  # that the model is given
    system: str = ""
    model: str = ""

    @property
    def question(self) -> str:
        """What is asked."""
        return asking(self.word, *self.rounds)

    @property
    def texts(self) -> list[str]:
        """The words of each round."""
        return ["".join(f"{word} " for word in each.text.split(" ")) if each.text else "" for each in self.rounds]

    @property
    def content(self) -> str:
        """All that is said."""
        return GAP.join(text for text in self.texts if text)

    @property
    def thoughts(self) -> list[str]:
        """The thoughts of each round."""
        return ["".join(f"{word} " for word in each.think.split(" ")) if each.think else "" for each in self.rounds]

    @property
    def usage(self) -> tuple[int, int]:
        """Tokens in, and out."""
        told = [each.usage for each in self.rounds if each.usage is not None and each.status == 200]
        return sum(each[0] for each in told), sum(each[1] for each in told)

    @property
    def tokens(self) -> Said:
        """The same, by name."""
        asked, said = self.usage
        return {"input_tokens": asked, "output_tokens": said, "total_tokens": asked + said}

    @property
    def completed(self) -> bool:
        """Whether all was said."""
        return self.end == "stop"

    @property
    def rows(self) -> list[Said]:
        """What is stored: the question, calls with their results, and the answer."""
        rows: list[Said] = [{"role": "user", "content": self.question}]
        for use, text, thought in zip(self.uses, self.texts, self.thoughts, strict=False):
            call = {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": use.arguments}}
            row = {"role": "assistant", "content": text, "finish_reason": "tool_calls", "tool_calls": [call]}
            rows += [row | ({"reasoning": thought} if thought else {})]
            rows += [{"role": "tool", "content": use.text, "tool_call_id": use.id, "tool_name": use.name}]
        text, thought = self.texts[-1], self.thoughts[-1]
        if text or self.end != "error":
            last = {"role": "assistant", "content": text, "finish_reason": self.end, "usage": self.tokens}
            rows.append(last | ({"reasoning": thought} if thought else {}))
        return rows

    @property
    def heard(self) -> list[Said]:
        """The same as a model has to be given it afterwards."""
        return [row for row in map(for_model, self.rows) if row["content"] or "tool_calls" in row]

    def names(self, calls: str) -> list[str]:
        """The events of tools in a turn: what begins, and how it ends."""
        told: list[str] = []
        for use in self.uses:
            told += ["tool.started", *(["memory.updated"] if use.name == "memory" and not use.failed else [])]
            told += [calls if use.failed else "tool.completed"]
        return told


def for_model(row: Said) -> Said:
    """A row in the form of chat completions; arguments that are no JSON would be refused by some servers."""
    kept: Said = {name: row[name] for name in ("role", "content", "tool_calls", "tool_call_id") if name in row}
    if "tool_calls" in kept:
        kept["tool_calls"] = [_mended(call) for call in kept["tool_calls"]]
    return kept


def _mended(call: Said) -> Said:
    function = call["function"]
    return call if function["arguments"] != "{" else {**call, "function": {**function, "arguments": "{}"}}


def drawn(audit: Audit, history: list[Said], *, asks: bool = False) -> Tale:
    """A turn, from nothing but words to calls, failures and ends that are no ends. `asks`: somebody can be."""
    rng = audit.rng
    rounds, uses = list[Round](), list[Use]()
    earlier = [call for row in history for call in row.get("tool_calls", ())]
    read = any(call["function"]["name"].startswith("no_") for call in earlier)
    for _ in range(audit.pick((0, 0, 1, 1, 2))):
        use = _use(audit)
        if read and use.name == "memory" and use.given["action"] == "add":  # who has read anything has to ask
            use = Use("skills_list", {}, NO_SKILLS) if asks else Use("memory", use.given, NOBODY, failed=True)
        read = read or use.name.startswith("no_")
        uses.append(use)
        rounds.append(
            Round(
                text=audit.pick(("", audit.word(), f"{audit.word()} so")),
                think=audit.pick(("", "", audit.word())),
                calls=[[use.name, use.given]],
                usage=audit.pick((None, [rng.randint(1, 99), rng.randint(1, 9)])),
            )
        )
    usage = audit.pick((None, [rng.randint(1, 99), rng.randint(1, 9)]))
    text = audit.pick((audit.word(), f"{audit.word()}\u00e4\u2028 <b> {audit.word()}", ""))
    think = audit.pick(("", "", f"{audit.word()} hm"))
    last, end = audit.pick(
        (
            *([(Round(text=text, think=think, usage=usage), "stop")] * 5),
            (Round(text=text, usage=usage, finish="length"), "length"),
            (Round(text=text, finish="content_filter"), "length" if text else "error"),
            (Round(status=audit.pick((400, 404))), "error"),
        )
    )
    tale = Tale(audit.word(), [*rounds, last], uses, end)
    tale.system = f"Be {audit.word()}." if audit.chance(0.4) else ""
    tale.history = history
    taken = {call["id"] for row in tale.history for call in row.get("tool_calls", ())}
    for number, use in enumerate(uses):
        use.id = "" if f"call_{number}_0" in taken else f"call_{number}_0"
    return tale


def _use(audit: Audit) -> Use:
    word = audit.word()
    if audit.chance(0.3):
        return Use("memory", {"action": "add", "content": word}, "")
    uses = (
        Use("skills_list", {}, NO_SKILLS),
        Use("skills_list", {"category": word}, NO_SKILLS),
        Use(f"no_{word}", {"a": word, audit.pick(("b", "token")): 5}, f"there is no tool 'no_{word}'", failed=True),
        Use("skill_view", {}, "the argument name is missing", failed=True),
        Use("memory", {"action": word}, "the argument action must be one of add, replace, remove", failed=True),
        Use("skills_list", "{", NO_OBJECT, failed=True),
    )
    return audit.rng.choice(uses)


def heard_of(tales: list[Tale]) -> list[Said]:
    """What a model has to be given of these turns."""
    return [row for tale in tales for row in tale.heard]
