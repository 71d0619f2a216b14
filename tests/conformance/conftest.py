"""The fixture `certificate`, as for the runtimes."""

from tests.runtimes.conftest import certificate as certificate
