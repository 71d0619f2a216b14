"""Programs for those who maintain this project: `make lock`, `make release`."""
