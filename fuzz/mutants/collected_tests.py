"""Test process that collects all tests once, and runs each trial of a mutant in a fork with changed functions.

Only tests that call a changed function run. Some changes, such as those of a class body, need a fresh process.
"""

import gc
import inspect
import multiprocessing
import os
import re
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from contextlib import suppress
from functools import _lru_cache_wrapper
from itertools import chain, zip_longest
from multiprocessing.connection import Connection, wait
from pathlib import Path
from queue import SimpleQueue
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from attrs import evolve, frozen

from fuzz.mutants.source_tree import SourceTree
from fuzz.mutants.trial_process import (
    FORKSERVER,
    OPTIONS,
    FailsWithoutMutantError,
    FirstFailurePlugin,
    TrialRequest,
    begin,
)

Place = tuple[str, str, int]  # of a function: file, qualified name, line
Lineage = list[tuple[CodeType, CodeType]]  # a code object and its replacement, after those that contain it
UNABLE = "it does not show"
SURVEY = 1800.0  # s for a file


class NeedsFreshProcessError(Exception):
    """The mutant needs a fresh process; `request` names the remaining tests that may fail."""

    def __init__(self, request: TrialRequest) -> None:
        super().__init__(request.module)
        self.request = request


@frozen
class _Survey:
    """Survey of the tests of one file: the tests by called function, and the tests that failed."""

    tests: Sequence[int]
    calls: Mapping[Place, Sequence[int]]  # the tests that call a function
    failed: AbstractSet[int]  # failed without a mutant, so they prove nothing


@frozen
class _Try:
    """Request to run some of the collected tests in a fork, with a mutant or for a survey."""

    tests: Sequence[int]
    limit: float  # s
    module: str = ""
    text: bytes | None = None  # None: survey the tests


class CollectedTests:
    """Client of a process that has collected all tests; up to `jobs` trials run at once."""

    def __init__(self, tree: SourceTree, scratch: str, jobs: int) -> None:
        pipes = [FORKSERVER.Pipe() for _ in range(jobs)]
        FORKSERVER.Process(target=_collect, args=(tree, scratch, [theirs for _, theirs in pipes])).start()
        for _, theirs in pipes:
            theirs.close()
        self._tree = tree
        self._connections = [ours for ours, _ in pipes]
        try:
            names: list[tuple[Path, str]] = self._connections[0].recv()
        except EOFError:
            raise FailsWithoutMutantError("the tests cannot be collected") from None
        self._free = SimpleQueue[Connection]()
        for connection in self._connections:
            self._free.put(connection)
        self._names = [name for _, name in names]
        self._files = defaultdict[Path, list[int]](list)
        for number, (path, _) in enumerate(names):
            self._files[path].append(number)
        self._surveys: dict[Path, Future[_Survey]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connections; each serving process ends with its connection."""
        for connection in self._connections:
            connection.close()

    def run_trial(self, request: TrialRequest) -> str | None:
        """Run the tests of a request that call a changed function, in a fork with the mutant.

        Return the name of a failing test or how the fork ended; None if all tests pass.
        Raise `NeedsFreshProcessError` if a fork is not enough.
        """
        assert request.text is not None
        changes = _changes(self._tree.path(request.module), request.text)
        asked = list(self._asked(request, {_place(lineage[-1][0]) for lineage in changes}))
        answer = self._send(_Try(asked, request.limit, request.module, request.text))
        assert not isinstance(answer, _Survey)
        if answer == UNABLE:
            raise NeedsFreshProcessError(self._left(request))
        return answer

    def _left(self, request: TrialRequest) -> TrialRequest:
        users = {str(path) for path in self._tree.users(request.module)}
        named = re.compile(rf"\b{request.module.rpartition('.')[2]}\b")
        left: dict[str, set[int]] = {}
        for file, survey in self._surveyed(request).items():
            calls = [numbers for place, numbers in survey.calls.items() if place[0] in users]
            is_about = file in self._tree.rule_tests() or named.search(file.read_text())
            tests = set(survey.tests) if is_about else set(chain.from_iterable(calls))
            if tests := tests - survey.failed:
                left[str(file.relative_to(self._tree.root))] = tests
        names = {self._names[test] for test in chain.from_iterable(left.values())}
        return evolve(request, tests=list(left), words=(), only=names)

    def _asked(self, request: TrialRequest, places: Iterable[Place]) -> Iterator[int]:
        for survey in self._surveyed(request).values():
            yield from sorted({number for place in places for number in survey.calls.get(place, ())} - survey.failed)

    def _surveyed(self, request: TrialRequest) -> dict[Path, _Survey]:
        paths = [self._tree.root / test for test in request.tests]
        files = [file for path in paths for file in self._files if file.is_relative_to(path)]
        for file in files:
            with self._lock:
                survey = Future[_Survey]()
                mine = self._surveys.setdefault(file, survey) is survey
            if mine:
                survey.set_result(self._survey([each for each in self._files[file] if self._is_asked(each, request)]))
        return {file: self._surveys[file].result() for file in files}

    def _is_asked(self, test: int, request: TrialRequest) -> bool:
        return not request.words or any(word in self._names[test] for word in request.words)

    def _survey(self, tests: Sequence[int]) -> _Survey:
        answer = self._send(_Try(tests, SURVEY))
        survey = answer if isinstance(answer, _Survey) else _Survey(tests, {}, set(tests))
        for name in sorted(self._names[test] for test in survey.failed):
            print(f"fails without a mutant, too: {name}", file=sys.stderr, flush=True)
        return survey

    def _send(self, order: _Try) -> _Survey | str | None:
        connection = self._free.get()
        try:
            connection.send(order)
            answer: _Survey | str | None = connection.recv()
        finally:
            self._free.put(connection)
        return answer


def _collect(tree: SourceTree, scratch: str, connections: Sequence[Connection]) -> None:
    begin(tree, scratch)
    host = _ServerPlugin(tree, connections)
    paths = [str(path.relative_to(tree.root)) for path in tree.tests()]
    sys.settrace(host.on_call)
    patient = f"--timeout={SURVEY}"  # tests take longer during the survey
    # Forks would share captured files.
    pytest.main([*OPTIONS, "--capture=sys", patient, *paths], [host, host.notes])


class _ServerPlugin:
    """Pytest plugin that serves trials instead of running all tests."""

    def __init__(self, tree: SourceTree, connections: Sequence[Connection]) -> None:
        self.notes = FirstFailurePlugin()
        self._tree = tree
        self._connections = connections
        self._called = set[CodeType]()
        self._early = self._called  # called before the first test
        self._shared = set[CodeType]()  # called by fixtures that several tests share
        self._functions = defaultdict[CodeType, list[FunctionType]](list)
        self._caches: list[Any] = []

    def on_call(self, frame: FrameType, event: str, _: object) -> None:
        self._called.add(frame.f_code)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Send the names of the collected tests instead of running them, and fork one server for each open pipe."""
        sys.settrace(None)
        gc.unfreeze()  # so that `get_objects` sees all objects
        for each in gc.get_objects():
            if type(each) is FunctionType:
                self._functions[each.__code__].append(each)
            elif type(each) is _lru_cache_wrapper:
                self._caches.append(each)
        gc.freeze()
        self._connections[0].send([(item.path, item.nodeid) for item in session.items])
        for connection in self._connections:
            if not os.fork():
                for other in self._connections:
                    if other is not connection:
                        other.close()
                with suppress(EOFError, BrokenPipeError):
                    while True:
                        self._serve(session, connection)
                os._exit(0)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """Record the calls of a shared fixture for all tests of its file."""
        before = self._called
        self._called = set()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self._shared |= self._called
            self._called |= before

    def _serve(self, session: pytest.Session, connection: Connection) -> None:
        """Execute one order in a fork, killed after its answer, at the limit, or when the client disconnects."""
        order: _Try = connection.recv()
        ours, theirs = multiprocessing.Pipe(duplex=False)
        child = os.fork()
        if not child:
            try:
                theirs.send(self._survey(session, order) if order.text is None else self._try(session, order))
            finally:
                os._exit(0)
        theirs.close()
        ready = wait([ours, connection], order.limit)
        try:
            answer = ours.recv() if ours in ready else "the time limit"
        except EOFError:
            answer = "the end of the process"
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        ours.close()
        connection.send(answer)

    def _run(self, session: pytest.Session, tests: Sequence[int]) -> Iterator[int]:
        for number, following in zip_longest(tests, tests[1:]):
            item = session.items[number]
            after = None if following is None else session.items[following]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            yield number

    def _survey(self, session: pytest.Session, order: _Try) -> _Survey:
        calls = defaultdict[Place, set[int]](set)
        failed = set[int]()
        self._called = set()
        threading.settrace(self.on_call)
        sys.settrace(self.on_call)
        for number in self._run(session, order.tests):
            called, self._called = self._called, set()
            for code in called:
                calls[_place(code)].add(number)
            for cache in self._caches:
                cache.cache_clear()
            if self.notes.failed:
                failed.add(number)
                self.notes.failed = ""
        sys.settrace(None)
        for code in self._shared:
            calls[_place(code)].update(order.tests)
        inside = f"{self._tree.root / self._tree.package}{os.sep}"
        ours = {place: sorted(numbers) for place, numbers in calls.items() if place[0].startswith(inside)}
        return _Survey(order.tests, ours, failed)

    def _try(self, session: pytest.Session, order: _Try) -> str | None:
        assert order.text is not None
        whole = self._change(order.module, order.text)
        for _ in self._run(session, order.tests):
            if self.notes.failed:
                return self.notes.failed
        return None if whole else UNABLE

    def _change(self, module: str, text: bytes) -> bool:
        """Install the mutant's code in the existing functions; return whether the mutant needs no other change."""
        whole = f"{self._tree.package}.{module}" in sys.modules
        for lineage in _changes(self._tree.path(module), text):
            changed, _ = lineage[-1]
            there = [(function, after) for before, after in lineage for function in self._functions[before]]
            for function, after in there:
                if function.__code__.co_freevars == after.co_freevars:
                    function.__code__ = after
                else:
                    whole = False
            makes = not changed.co_flags & inspect.CO_OPTIMIZED  # a module or a class
            whole = whole and bool(there) and not makes and changed not in self._early
        return whole


def _changes(path: Path, text: bytes) -> list[Lineage]:
    old, new = (compile(each, str(path), "exec", dont_inherit=True) for each in (path.read_bytes(), text))
    return list(_changed([(old, new)]))


def _changed(lineage: Lineage) -> Iterator[Lineage]:
    old, new = lineage[-1]
    if _bare(old) != _bare(new):
        yield lineage
    # With another number of inner code objects, the pairs are unknown.
    if len(_inner(old)) == len(_inner(new)):
        for pair in zip(_inner(old), _inner(new), strict=True):
            yield from _changed([*lineage, pair])


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _bare(code: CodeType) -> CodeType:
    """Return the code object without inner code objects and positions."""
    consts = tuple(None if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_consts=consts, co_firstlineno=1, co_linetable=b"")


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno
