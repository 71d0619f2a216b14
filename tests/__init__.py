"""The tests; those of the core are laid out like it: `tests/wire/test_sse.py` tests `svc_proto/wire/sse.py`."""
