"""Every error crosses a process border as it is."""

import importlib
import pickle
import pkgutil
import typing
from fractions import Fraction

import pytest

import dpsim
from dpsim.core.errors import DpsimError
from dpsim.core.privacy import PrivacyLoss

SAMPLES = {str: "a text", int: 3, float: 2.5, PrivacyLoss: PrivacyLoss(Fraction(1, 14))}


def error_classes():
    for module in pkgutil.walk_packages(dpsim.__path__, "dpsim."):
        # Importing Ray takes a second and is left to its own tests.
        if "ray" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, waiting = [], [DpsimError]
    while waiting:
        kind = waiting.pop()
        waiting.extend(kind.__subclasses__())
        if kind.__module__.startswith("dpsim.") and kind not in found:
            found.append(kind)
    return sorted(found, key=lambda kind: kind.__name__)


def sample(kind):
    hints = typing.get_type_hints(kind.__init__) if "__init__" in vars(kind) else {"text": str}
    hints.pop("return", None)
    return kind(*(SAMPLES[hint] for hint in hints.values()))


CLASSES = error_classes()


def test_the_errors_were_found():
    names = {kind.__name__ for kind in CLASSES}
    assert names >= {
        "InputError", "BudgetExceededError", "PlanConflictError", "DataChangedError",
        "LedgerFileError", "CheckpointError", "ReplayMismatchError", "IncompleteRoundError",
        "ShardError",
    }  # fmt: skip


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_survives_pickling_with_its_text_and_facts(kind):
    error = sample(kind)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
    assert copy.args == error.args


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_reads_as_a_sentence(kind):
    text = str(sample(kind))
    assert text
    assert "object at" not in text
    assert not text.startswith(("(", "'"))
