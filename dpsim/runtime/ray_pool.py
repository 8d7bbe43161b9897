"""Pure functions as Ray tasks: bounded, in order, repeated where a worker dies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import ray
from ray import exceptions as rex

from dpsim.runtime.ray_errors import fatal
from dpsim.runtime.ray_session import ray_session

SharedT = TypeVar("SharedT")
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

_IN_FLIGHT = 2
"""Tasks per worker: the next one waits where the last one runs."""


def _run(function: Callable[[Any, Any], Any], shared: Any, item: Any) -> Any:
    return function(shared, item)


_RUN = ray.remote(num_cpus=1, max_retries=-1)(_run)


class RayPool:
    """Tasks on the processors of a cluster; what they share is sent once per node."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers

    @classmethod
    @contextmanager
    def open(cls, workers: int) -> Iterator[Self]:
        """A pool in a cluster of its own, for computations without a fleet."""
        with ray_session(0, processors=workers):
            yield cls(workers)

    @property
    def workers(self) -> int:
        """The cluster's processors, or fewer if so told."""
        return self._workers or max(1, int(ray.cluster_resources().get("CPU", 1)))

    def map(
        self,
        function: Callable[[SharedT, ItemT], ResultT],
        shared: SharedT,
        items: Sequence[ItemT],
    ) -> Iterator[ResultT]:
        """The results in the items' order."""
        reference = ray.put(shared)
        most = self.workers * _IN_FLIGHT
        flying: deque[Any] = deque()
        for item in items:
            if len(flying) >= most:
                yield _result(flying.popleft())
            flying.append(_RUN.remote(function, reference, item))
        while flying:
            yield _result(flying.popleft())


def _result(reference: Any) -> Any:
    try:
        return ray.get(reference)
    except rex.RayError as error:
        raise fatal(error) from None
