"""`certificate` is made as it is for the runtimes."""

from tests.runtimes.conftest import certificate as certificate
