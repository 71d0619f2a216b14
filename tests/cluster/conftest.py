"""A started Redis client, whose connection is not accepted yet."""

import pytest

from svc_proto.cluster.redis_client import RedisClient
from tests.cluster.harness import RedisHarness, started_client


@pytest.fixture
def book() -> RedisHarness[RedisClient]:
    return started_client()
