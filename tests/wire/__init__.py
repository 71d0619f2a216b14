"""Tests of `svc_proto.wire`."""
