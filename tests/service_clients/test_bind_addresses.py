from svc_proto.service_clients.bind_addresses import LOCAL_HOSTS, WILDCARD_ADDRESSES, bracket_ipv6


def test_hosts_in_urls() -> None:
    assert (bracket_ipv6("::1"), bracket_ipv6("192.0.2.7"), bracket_ipv6("box")) == ("[::1]", "192.0.2.7", "box")


def test_each_wildcard_address_is_local() -> None:
    assert set(WILDCARD_ADDRESSES) < set(LOCAL_HOSTS)
    assert set(WILDCARD_ADDRESSES.values()) < set(LOCAL_HOSTS)
