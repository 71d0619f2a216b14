"""Comparison of an object with a port: a protocol of the members that other modules use."""


def missing_members(port: type, given: object) -> list[str]:
    """Return the public members of a port that an object lacks; assert that the port has public members."""
    members = {name for kind in port.__mro__[:-2] for name in (*vars(kind).get("__annotations__", ()), *vars(kind))}
    public = {name for name in members if not name.startswith("_")}
    assert public
    return sorted(name for name in public if not hasattr(given, name))
