"""The tests, laid out like the source: `svc_proto/wire/sse.py` is tested by `tests/wire/test_sse.py`."""
