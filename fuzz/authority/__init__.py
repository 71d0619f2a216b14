"""Random worlds of authority: principals, grants, approvals, runs and nodes, compared with a model of them."""
