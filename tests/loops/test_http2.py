"""Tests of HTTP/2: concurrent streams, a file and its ranges."""

from tests.loops.clients import HttpClient
from tests.loops.environment import Environment, bearer
from tests.support.http_codec import Response

PER_CONNECTION = (b"date", b"connection")


def client2(world: Environment) -> HttpClient:
    return HttpClient(world.connect(), world.authority(), world.entropy, http2=True)


def plainly(answer: Response) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, fields and body of a response, without the fields that differ between connections."""
    return answer.status, [field for field in answer.headers if field[0] not in PER_CONNECTION], answer.body


def test_many_at_the_same_time(served: Environment) -> None:
    client = client2(served)
    asked = [client.begin("GET", "/health") for _ in range(90)]
    assert {each.finish().status for each in reversed(asked)} == {200}
    client.wire.close()


def test_a_file_and_its_ranges(relayed: Environment) -> None:
    phone = relayed.pair(surface="android")
    data = bytes(range(256)) * 3000
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n'
    headers = {**bearer(phone.token), "content-type": "multipart/form-data; boundary=b"}
    client = client2(relayed)
    stored = client.request("POST", "/media/upload", headers=headers, body=head + data + b"\r\n--b--\r\n")
    assert stored.status == 200, stored
    path = f"/media/{stored.json['token']}"
    whole = client.request("GET", path, headers=bearer(phone.token))
    assert (whole.status, whole.body) == (200, data)
    part = client.request("GET", path, headers={**bearer(phone.token), "range": "bytes=1000-300999"})
    assert (part.status, part.body) == (206, data[1000:301_000])
    old = relayed.client().request("GET", path, headers=bearer(phone.token))
    assert plainly(whole) == plainly(old)
