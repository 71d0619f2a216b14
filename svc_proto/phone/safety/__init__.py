"""The phone's own safety (spec "Bridge safety gates"): what stands between a bridge command and the device."""
