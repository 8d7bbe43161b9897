"""Names for help and suggestions, known without loading what they name."""

from __future__ import annotations

from difflib import get_close_matches

COMMANDS = {
    "demo": "The main job on generated data, in a minute.",
    "run": "Run one method on one table, with one budget.",
    "resume": "Finish a run that was stopped.",
    "explain": "What a method does, guarantees and costs.",
    "reproduce": "Compute a published table anew.",
    "audit": "Test that mechanisms keep their promise.",
    "data": "Propose a schema, check a table, make one.",
    "doctor": "Check Python, Ray, memory, disk and rights.",
}


def suggestion(word: str, known: tuple[str, ...]) -> str:
    """`` Did you mean 'grr'?`` if one of the known names is near, else nothing."""
    near = get_close_matches(word, known, 1, 0.5)
    return f" Did you mean {near[0]!r}?" if near else ""
