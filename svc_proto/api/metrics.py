"""Metrics of the API beside those that every server has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.basics.metrics import MetricFamily, counter, gauge

if TYPE_CHECKING:
    from svc_proto.api.runs.run_manager import RunManager

__all__ = ["api_metrics"]


def api_metrics(runs: RunManager) -> list[MetricFamily]:
    """Return metrics of live turns, totals of ended ones, and the number of text pieces of both."""
    usage = runs.usage
    tokens = {"input": usage.input_tokens, "output": usage.output_tokens}
    return [
        gauge("svc_runs", "Turns that are not over, by what they are at.", runs.states(), "state"),
        counter("svc_turns", "Turns that are over, by how they ended.", runs.outcomes, "outcome"),
        runs.durations.family(
            "svc_turn_duration_seconds", "From the order of a turn to its end, its wait in line included."
        ),
        counter("svc_model_calls", "Requests to the model of turns that are over.", runs.model_calls),
        counter("svc_tokens", "Tokens of turns that are over, where the model's answers say.", tokens, "direction"),
        counter("svc_deltas", "Pieces of text that the agent has said.", runs.deltas),
    ]
