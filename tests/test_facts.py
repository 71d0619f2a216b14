"""Facts are values: immutable, comparable, and each is in the union that runtimes send."""

from typing import get_args

from svc_proto import facts
from svc_proto.facts import Address, Fact, FailureKind


def test_the_union_holds_every_fact() -> None:
    values = {Address, FailureKind, facts.Failure}
    public = {getattr(facts, name) for name in facts.__all__ if isinstance(getattr(facts, name), type)}
    assert set(get_args(Fact)) == public - values
