from collections import Counter
from itertools import islice, repeat, starmap
from random import Random
from uuid import UUID

from svc_proto.basics.entropy import (
    CODE_ALPHABET,
    new_api_key,
    new_code,
    new_media_token,
    new_secret,
    new_uuid,
    secrets_equal,
    sha256_hex,
    uuid_stream,
)


def test_a_uuid_is_random_and_of_version_4() -> None:
    text = new_uuid(Random(1).randbytes)
    assert len(text) == 36
    assert (UUID(text).version, str(UUID(text))) == (4, text)
    assert new_uuid(Random(1).randbytes) == text
    assert new_uuid(Random(2).randbytes) != text


def test_uuids_take_entropy_in_batches() -> None:
    asked: list[int] = []
    random = Random(1).randbytes

    def entropy(n: int) -> bytes:
        asked.append(n)
        return random(n)

    assert list(islice(uuid_stream(entropy), 130)) == list(starmap(new_uuid, repeat((Random(1).randbytes,), 130)))
    assert asked == [1024, 1024, 1024]


def test_a_code_has_six_of_36_symbols() -> None:
    assert CODE_ALPHABET == "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    entropy = Random(1).randbytes
    counts = Counter("".join(new_code(entropy) for _ in range(6_000)))
    assert sorted(counts) == sorted(CODE_ALPHABET)
    assert max(counts.values()) < 1.3 * min(counts.values())


def test_a_code_skips_biased_bytes_and_takes_no_more_than_it_needs() -> None:
    batches = [bytes([252, 255, 253, 254, 0, 35]), bytes([36, 37, 71, 251, 252, 1]), bytes(range(6))]
    assert [new_code(lambda n: batches.pop(0)) for _ in range(2)] == ["A9AB99", "ABCDEF"]


def test_tokens_and_keys_are_url_safe() -> None:
    assert new_media_token(lambda n: b"\xfb\xff" * (n // 2)) == "-__7__v_-__7__v_-__7_w"
    assert new_secret(lambda n: b"\xfb\xff" * (n // 2)) == "-__7__v_" * 5 + "-_8"
    assert new_api_key(lambda n: bytes(range(n))) == "sk-AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
    assert new_api_key(lambda n: bytes(range(n)), 16) == "sk-AAECAwQFBgcICQoLDA0ODw"


def test_secrets_are_hashed_and_compared_also_with_lone_surrogates() -> None:
    assert sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert len(sha256_hex("\ud800")) == 64
    assert secrets_equal("a\ud800", "a\ud800")
    assert not secrets_equal("a", "b")
    assert not secrets_equal("a", "ä")
