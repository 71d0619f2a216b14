"""Every test that takes `runtime` runs on each loop; `certificate` is made as it is for the runtimes."""

from tests.runtimes.conftest import certificate as certificate
from tests.runtimes.conftest import runtime as runtime
