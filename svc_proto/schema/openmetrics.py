"""Parser for a server's `/metrics`: its samples by name, as `runtimes.host.metrics_text` writes them.

It reads samples without time stamps and exemplars, as this system's servers write them. Comments and lines without a
finite number at their end are ignored.
"""

import re
from collections.abc import Collection
from math import isfinite

__all__ = ["MetricSamples"]

_LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


class MetricSamples:
    """The samples of a server's metrics that one text has, by name and label."""

    __slots__ = ("_samples",)

    def __init__(self, text: str) -> None:
        samples: dict[str, list[tuple[str, float]]] = {}
        for line in text.splitlines():
            what, _, value = line.rpartition(" ")
            name, _, labels = what.partition("{")
            if name[:1] not in ("", "#"):
                number = _number(value)
                if number is not None:
                    samples.setdefault(name, []).append((labels, number))
        self._samples = samples

    def total(self, name: str, **only: Collection[str]) -> float | None:
        """Return the sum of all samples of a name; None if the name is unknown.

        With `label=` only samples with one of these label values count; 0.0 if there are none.
        """
        found = self._samples.get(name)
        if found is None:
            return None
        return sum((value for labels, value in found if not only or _has(labels, only)), 0.0)

    def by(self, name: str, label: str) -> dict[str, float]:
        """Return the sums of a name's samples for each value of a label; samples without the label do not count."""
        sums: dict[str, float] = {}
        for labels, value in self._samples.get(name, ()):
            of = _labels(labels).get(label)
            if of is not None:
                sums[of] = sums.get(of, 0.0) + value
        return sums


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _has(labels: str, only: dict[str, Collection[str]]) -> bool:
    found = _labels(labels)
    return all(found.get(name) in values for name, values in only.items())


def _labels(text: str) -> dict[str, str]:
    return {name: _ESCAPED.sub(_unescaped, value) for name, value in _LABEL.findall(text)}


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
