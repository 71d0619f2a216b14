"""Programs that embed parts of this project and use only names that docs/tutorials/embed-a-core.md lists."""
