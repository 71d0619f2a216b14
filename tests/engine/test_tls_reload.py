from svc_proto.commands import Cancel, Exit, Level, Log, ReloadTls, TlsReloaded
from svc_proto.engine.core import Engine
from svc_proto.engine.tls_reload import RELOAD_TIMEOUT
from svc_proto.facts import Done, Failed, Failure, FailureKind, OperationId, Reloading, Stopping
from tests.engine.toy_service import ToyService
from tests.support.playbook import Playbook, counting_entropy

FIRST, SECOND = OperationId(1), OperationId(2)
KEPT = "certificate not reloaded: the one before stays"
NEW = Log(Level.INFO, "certificate reloaded", {"pin": "sha256/a"})


def book_of() -> Playbook:
    return Playbook(Engine(ToyService(), entropy=counting_entropy()))


def test_certificates_are_read_again() -> None:
    book = book_of()
    book >> Reloading() << [ReloadTls(FIRST)]
    book >> Done(FIRST, TlsReloaded(())) << []  # there are none
    assert book.logs == []
    book >> Reloading() << [ReloadTls(SECOND)]
    book >> Done(SECOND, TlsReloaded(("sha256/a",))) << []
    assert book.logs == [NEW]
    book >> Reloading() << [ReloadTls(OperationId(3))]


def test_unusable_certificates_are_logged() -> None:
    book = book_of()
    book >> Reloading() << [ReloadTls(FIRST)]
    book >> Failed(FIRST, Failure(FailureKind.TLS, "cannot use a with b: KEY_VALUES_MISMATCH")) << []
    book >> Reloading() << [ReloadTls(SECOND)]
    book >> Failed(SECOND, Failure(FailureKind.UNSUPPORTED)) << []
    problems = ["cannot use a with b: KEY_VALUES_MISMATCH", "unsupported"]
    assert book.logs == [Log(Level.ERROR, KEPT, {"problem": problem}) for problem in problems]


def test_files_that_do_not_come() -> None:
    book = book_of()
    book >> Reloading() << [ReloadTls(FIRST)]
    book.after(RELOAD_TIMEOUT) << [Cancel(FIRST)]
    assert book.logs == [Log(Level.ERROR, KEPT, {"problem": "no answer in time"})]
    book >> Failed(FIRST, Failure(FailureKind.CANCELLED)) << []
    book >> Reloading() << [ReloadTls(SECOND)]


def test_requests_during_a_reload_cause_one_more() -> None:
    book = book_of()
    book >> Reloading() << [ReloadTls(FIRST)]
    for _ in range(3):
        book >> Reloading() << []
    book >> Done(FIRST, TlsReloaded(("sha256/a",))) << [ReloadTls(SECOND)]
    book >> Done(SECOND, TlsReloaded(("sha256/a",))) << []
    assert book.logs == [NEW, NEW]


def test_no_reload_while_stopping() -> None:
    book = book_of()
    book >> Stopping(5.0) << [Exit(0)]
    book = book_of()
    book >> Reloading() << [ReloadTls(FIRST)]
    book >> Stopping(5.0) << []
    book >> Reloading() << []
    book >> Done(FIRST, TlsReloaded(("sha256/a",))) << [Exit(0)]
