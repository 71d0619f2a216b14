"""Programs that use parts of this project elsewhere, and nothing but what docs/embedding/README.md calls stable."""
