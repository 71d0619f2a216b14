import pytest

from svc_proto.basics.errors import Refused
from svc_proto.machines.oauth_tokens import MAX_TOKEN_PAIRS, REFRESH_GRACE, OAuthTokenPair, OAuthTokens


def pair(number: int) -> OAuthTokenPair:
    return OAuthTokenPair(access=f"a{number}", access_until=3_600.0, refresh=f"r{number}")


FIRST = OAuthTokens(client="c", pairs=(pair(0),))


def test_used_tokens_are_accepted_in_the_grace_in_bounded_number() -> None:
    assert FIRST.accepts_refresh("r0", 9.0)
    assert not FIRST.accepts_refresh("r1", 9.0)
    once = FIRST.replaced("r0", pair(1), 10.0)
    again = once.replaced("r0", pair(2), 30.0)
    for tokens in (once, again):
        assert tokens.accepts_refresh("r0", 9.9 + REFRESH_GRACE)
        assert not tokens.accepts_refresh("r0", 10.0 + REFRESH_GRACE)  # the second use does not extend it
    assert [again.accepts_refresh(token, 1e9) for token in ("r1", "r2")] == [True, True]
    later = again.replaced("r1", pair(3), 10.0 + REFRESH_GRACE)
    assert [found.refresh for found in later.pairs] == ["r3", "r2", "r1"]
    tokens = FIRST.replaced("r0", pair(1), 10.0)
    assert [tokens.access_until(token) for token in ("a0", "a1", "a2")] == [10.0 + REFRESH_GRACE, 3_600.0, 0.0]
    assert FIRST.replaced("r0", pair(1), 3_590.0).access_until("a0") == 3_600.0
    tokens = FIRST
    for number in range(1, 2 * MAX_TOKEN_PAIRS):
        tokens = tokens.replaced("r0", pair(number), 10.0)
    assert len(tokens.pairs) == MAX_TOKEN_PAIRS
    assert tokens.pairs[0] == pair(2 * MAX_TOKEN_PAIRS - 1)


def test_stored_form() -> None:
    tokens = FIRST.replaced("r0", pair(1), 10.0)
    assert OAuthTokens.read(tokens.to_record(), "tokens") == tokens
    old = {"client": "c", "access": "a0", "access_until": 3_600.0, "refresh": "r0"}  # without a grace
    assert OAuthTokens.read(old, "tokens") == FIRST
    for wrong in ({**old, "pairs": 7}, {"client": "c", "pairs": [{"access": "a"}]}, {**old, "access": 7}):
        with pytest.raises(Refused):
            OAuthTokens.read(wrong, "tokens")
