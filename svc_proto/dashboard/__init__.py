"""The dashboard: a page in the browser, and the few calls of the relay and the API server that it is made of."""
