"""Simulation of whole deployments: deterministic for a seed."""
