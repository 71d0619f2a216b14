"""The dashboard: a web page, and the routes that the page and the phone's app need."""
