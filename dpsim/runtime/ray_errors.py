"""Ray's errors in our words: losses that pass, our own errors, and bugs."""

from __future__ import annotations

from collections.abc import Iterable

from ray import exceptions as rex

from dpsim.core.errors import DpsimError, ResourceError

_LOSSES = (
    rex.ActorUnavailableError,
    rex.ActorDiedError,
    rex.NodeDiedError,
    rex.WorkerCrashedError,
    rex.ObjectLostError,
    rex.GetTimeoutError,
    rex.OutOfMemoryError,
)


def _chain(error: BaseException) -> Iterable[BaseException]:
    """The error and what it wraps: a lost argument arrives inside a task's error."""
    yield error
    cause = getattr(error, "cause", None)
    if isinstance(cause, BaseException):
        yield cause


def loss_of(error: BaseException) -> str | None:
    """The name of a loss that may pass, or None for a failure that will not."""
    for item in _chain(error):
        if isinstance(item, _LOSSES) and not getattr(item, "actor_init_failed", False):
            return name_of(item)
    return None


def fatal(error: BaseException) -> BaseException:
    """Our own error as it was raised in the actor; Ray's in one sentence; a bug as it is."""
    for item in reversed(list(_chain(error))):
        if isinstance(item, DpsimError) and not isinstance(item, rex.RayError):
            return item
    is_bug = isinstance(error, rex.RayTaskError)
    return error if is_bug else ResourceError(f"Ray stopped the round: {name_of(error)}")


def name_of(error: BaseException) -> str:
    """The kind of an error: all that may be said of one that is not ours."""
    return type(error).__name__
