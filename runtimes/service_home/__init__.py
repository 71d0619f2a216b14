"""The home folder of a service: log file, running servers."""
