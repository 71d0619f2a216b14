"""Suite of `svc doctor` on real hosts: planted faults are reported by their codes, healthy hosts have no problem."""

import tempfile
from pathlib import Path

from tests.conformance.doctor_faults import FAULTS
from tests.conformance.doctor_healthy import HEALTHY
from tests.conformance.doctor_host import hosts
from tests.conformance.result import Result


def doctor() -> Result:
    """Plant each fault on a host and compare the reported codes, then run `svc doctor` on healthy hosts."""
    result = Result("doctor")
    with tempfile.TemporaryDirectory(prefix="doctor-") as base, hosts(Path(base)) as factory:
        for fault in FAULTS:
            host = factory.host(fault.setup)
            fault.inject(host)
            report = host.doctor()
            wanted = frozenset(fault.codes.split())
            seen = "" if report.codes == wanted else f"{sorted(report.codes)}, not {sorted(wanted)}: {report.output}"
            result.note(fault.name, seen or None)
            fault.undo(host)
        for healthy in HEALTHY:
            host = factory.host(healthy.setup)
            healthy.prepare(host)
            report = host.doctor()
            well = report.status == 0 and not report.codes
            alarm = f"status {report.status}, {sorted(report.codes)}: {report.output}"
            result.note(f"healthy: {healthy.name}", None if well else alarm)
    return result
