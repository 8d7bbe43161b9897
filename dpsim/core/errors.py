"""The families of errors that people are meant to read; each has one exit code.

An error keeps its facts as arguments and makes its text in ``__str__``: so it survives the
trip between processes. None of them ever carries a private value.
"""


class DpsimError(Exception):
    """Something that a person can understand and mend: one sentence, no traceback."""


class InputError(DpsimError, ValueError):
    """A parameter, a configuration or an input that is refused before anything happens."""


class BudgetError(DpsimError):
    """A release that the ledger's limit does not allow."""


class ResourceError(DpsimError):
    """The machine or the cluster cannot do it: slots, memory, disk, versions, rights."""


class IncompleteError(DpsimError):
    """The run gave up waiting. Nothing is lost: it can be resumed."""


class IntegrityError(DpsimError):
    """Something differs that must be equal: the data, the plan, a replay, the ledger file."""
