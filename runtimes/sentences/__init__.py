"""Parser of plain sentences in five languages, by hassil, the sentence parser of Home Assistant's Assist."""

from runtimes.sentences.parser import HassilParser

__all__ = ["HassilParser"]
