import pytest

from svc_proto.basics.entropy import sha256_hex
from svc_proto.machines.paired_session import DeviceInfo, PairedSession
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.machines.pairing_codes import PairingMeta
from tests.machines.fixed_inputs import WALL, at, source


def minted(keys: PairingApiKeys, entropy_from: int = 0, code: str = "Q7M2ZK") -> tuple[str, str]:
    """Create a key and register a code with its hash at second 0; return the key and its hash."""
    key, key_hash = keys.new_key(lambda n: bytes(range(entropy_from, entropy_from + n)))
    keys.codes.register(code, at(0), PairingMeta(key_hash=key_hash))
    return key, key_hash


def paired(keys: PairingApiKeys, key_hash: str, *, ttl: float = 1000.0, chat: float | None = None) -> PairedSession:
    preset = None if chat is None else {"chat": chat}
    device = DeviceInfo(name="Tablet")
    return keys.sessions.create(at(5), source(), ttl=ttl, preset=preset, device=device, key_hash=key_hash)[1]


def test_keys_are_stored_and_restored_as_hashes() -> None:
    keys = PairingApiKeys()
    key, key_hash = minted(keys)
    assert len(key) == 25
    assert key_hash == sha256_hex(key)
    assert key not in repr((keys.codes.consume("Q7M2ZK", at(1)), keys))
    assert minted(keys, 1)[0] != key
    before = PairingApiKeys()
    key, key_hash = minted(before)
    record = paired(before, key_hash).to_record()
    assert key not in repr(record)
    alive, buried, late = PairingApiKeys(), PairingApiKeys(), PairingApiKeys()
    alive.sessions.restore(record, at(10))
    buried.sessions.remember_revoked(PairedSession.from_record(record))
    late.sessions.restore(record, at(1005))
    assert [keys.accepts(key, at(10)) for keys in (alive, buried, late)] == [key_hash, None, None]


def test_key_is_valid_until_its_code_ends() -> None:
    keys = PairingApiKeys()
    key, key_hash = minted(keys)
    assert keys.accepts(key, at(0)) == keys.accepts(key, at(599.9)) == key_hash
    assert keys.accepts(key, at(600)) is None
    keys.codes.purge(at(600))
    assert keys.accepts(key, at(1)) is None
    keys = PairingApiKeys()
    first, _ = minted(keys)
    second, second_hash = minted(keys, 1)
    assert (keys.accepts(first, at(1)), keys.accepts(second, at(1))) == (None, second_hash)
    keys.codes.consume("Q7M2ZK", at(1))
    assert keys.accepts(second, at(1)) is None  # and no session was created


@pytest.mark.parametrize("other", ["", "sk-wrong", sha256_hex(""), "\xff"])
def test_other_keys_are_refused(other: str) -> None:
    keys = PairingApiKeys()
    key, key_hash = minted(keys)
    keys.codes.register("AAAAAA", at(0), PairingMeta())  # its invite has no key of its own
    paired(keys, "")
    for wrong in (other, key[:-1], f"{key}x", key_hash):
        assert keys.accepts(wrong, at(1)) is None


def test_session_owns_the_key_until_it_ends() -> None:
    keys = PairingApiKeys()
    key, key_hash = minted(keys)
    meta = keys.codes.consume("Q7M2ZK", at(5))
    assert meta is not None
    session = paired(keys, meta.key_hash)
    assert keys.accepts(key, at(700)) == keys.accepts(key, at(1004.9)) == key_hash
    assert keys.accepts(key, at(1005)) is None  # without a timer
    keys.sessions.expire_due(at(1005))
    assert keys.sessions.find_by_api_key(key_hash) is None
    assert keys.accepts(key, at(6)) is None
    assert (session.device_name, session.to_record()["key_hash"]) == ("Tablet", key_hash)  # the name of the session
    keys = PairingApiKeys()
    (key, key_hash), (other, other_hash) = minted(keys), minted(keys, 1, "AAAAAA")
    keys.codes.consume("Q7M2ZK", at(5))
    session = paired(keys, key_hash)
    keys.sessions.revoke(session, at(6))
    assert (keys.accepts(key, at(6)), keys.accepts(other, at(6))) == (None, other_hash)
    assert keys.sessions.find_by_api_key(key_hash) is None


def test_key_is_valid_as_long_as_the_chat_grant() -> None:
    keys = PairingApiKeys()
    key, key_hash = minted(keys)
    session = paired(keys, key_hash, chat=100.0)
    assert keys.accepts(key, at(104)) == key_hash
    assert keys.accepts(key, at(105)) is None  # and its unused code does not extend the key
    keys.sessions.patch(session, at(106), ttl=None, grants={"chat": 50.0}, policy=None)
    assert (keys.accepts(key, at(155)), keys.accepts(key, at(156))) == (key_hash, None)
    keys.sessions.patch(session, at(157), ttl=None, grants={"chat": None}, policy=None)
    assert keys.accepts(key, at(157)) is None
    assert not keys.is_valid(key_hash, at(157))  # nor may work that the key started continue
    assert session.is_active(WALL + 157)
