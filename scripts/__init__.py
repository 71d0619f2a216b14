"""Programs for maintainers of this project: lock files, release build and its smoke test, check of the language."""
