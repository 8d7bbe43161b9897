"""Rounds for tests: one oracle on one attribute of generated users."""

from dpsim.evaluation.truth import true_histograms
from dpsim.protocols.collect import CollectRequest, Item
from dpsim.protocols.participation import EVERYBODY


def asking(source, oracle, participation=EVERYBODY, round_id=0):
    """A round about the first attribute."""
    item = Item((source.schema.attributes[0],), oracle)
    return CollectRequest("demo", round_id, "frequencies", (item,), participation=participation)


def true_frequencies(source, names):
    """The shares of every code among all users."""
    counts = true_histograms(source, names)
    return {name: count / max(1, source.n) for name, count in counts.items()}
