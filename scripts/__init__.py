"""Programs for maintainers of this project, such as the release build and the check of the language."""
