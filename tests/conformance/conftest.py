"""Fixture `certificate` of the runtimes' tests, for the tests of this folder."""

from tests.runtimes.conftest import certificate as certificate
