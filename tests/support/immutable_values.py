"""pytest plugin, loaded before the core: its values refuse changes at run time too."""

from svc_proto.basics.fast_frozen import enforce_immutability

enforce_immutability()
