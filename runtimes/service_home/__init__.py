"""The home folder of a service: its location, `.env`, log files, and registry of running servers."""
