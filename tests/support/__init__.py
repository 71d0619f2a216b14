"""Support code shared by packages of tests: drivers, harnesses, checks of texts, and generators of reference pages."""
