"""The dashboard: a web page, and the calls to relay and API server that the page needs."""
