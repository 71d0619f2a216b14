"""Programs that embed parts of this project and use only names that docs/reference/public-names.md lists."""
