from svc_proto.cli.health_checks import CHECKS
from tests.conformance.doctor_faults import FAULTS
from tests.conformance.doctor_healthy import HEALTHY


def test_the_suite_has_30_faults_and_10_healthy_hosts() -> None:
    codes = {code for fault in FAULTS for code in fault.codes.split()}
    assert codes <= {check.code for check in CHECKS}
    assert len(codes) >= 30
    assert len(HEALTHY) >= 10
