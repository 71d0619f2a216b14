import json
from functools import partial

import pytest

from svc_proto.commands import ReadConfig, WriteConfig
from svc_proto.facts import Done, Failed, Failure, FailureKind
from svc_proto.service_clients import phone_screen_endpoint
from tests.service_clients.test_local_secret import ONE, asking

URL = "http://127.0.0.1:41233"
ENDPOINT = phone_screen_endpoint.PhoneScreenEndpoint(URL, "5ec4e7")


@pytest.mark.parametrize("problem", [None, Failure(FailureKind.NO_SPACE)])
def test_endpoint_is_published_and_withdrawn(problem: Failure | None) -> None:
    book, owner = asking(partial(phone_screen_endpoint.publish_phone_screen, url=URL))
    (order,) = book.drain_commands()
    assert isinstance(order, WriteConfig)
    said = json.loads(order.text)
    assert (order.name, said["url"], len(said["secret"])) == (phone_screen_endpoint.PHONE_SCREEN_FILE, URL, 64)
    book >> (Done(ONE, None) if problem is None else Failed(ONE, problem)) << []
    assert owner.told == [(phone_screen_endpoint.PhoneScreenEndpoint(URL, said["secret"]), problem)]
    assert said["secret"] not in repr(owner.told)
    book, _ = asking(phone_screen_endpoint.withdraw_phone_screen)
    assert book.drain_commands() == [WriteConfig(ONE, phone_screen_endpoint.PHONE_SCREEN_FILE, "")]


@pytest.mark.parametrize(
    ("found", "listener"),
    [
        ('{"url": "http://127.0.0.1:41233", "secret": "5ec4e7"}', ENDPOINT),
        ("", None),
        ("[]", None),
        ('{"url": "http://127.0.0.1:41233", "secret": ""}', None),
        ('{"url": "http://192.0.2.1:41233", "secret": "5ec4e7"}', None),
        (Failure(FailureKind.NOT_FOUND), None),
    ],
)
def test_endpoint_is_found(found: str | Failure, listener: phone_screen_endpoint.PhoneScreenEndpoint | None) -> None:
    book, owner = asking(phone_screen_endpoint.find_phone_screen)
    (order,) = book.drain_commands()
    assert order == ReadConfig(ONE, phone_screen_endpoint.PHONE_SCREEN_FILE)
    book >> (Failed(ONE, found) if isinstance(found, Failure) else Done(ONE, found)) << []
    assert owner.told == [listener]
