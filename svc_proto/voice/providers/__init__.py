"""Speech providers, a small file for each: requests are built, responses and events parsed."""
