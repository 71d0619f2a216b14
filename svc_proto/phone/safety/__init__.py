"""Safety gates of the phone (spec "Bridge safety gates"), which check each bridge command before its execution."""
