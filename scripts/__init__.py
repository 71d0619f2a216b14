"""Programs for maintainers of this project: `make lock`, `make release`."""
