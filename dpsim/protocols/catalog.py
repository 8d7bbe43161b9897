"""The closed list of what a shard may be asked."""

from typing import Final

from dpsim.protocols.collect import CollectRequest

REQUESTS: Final = frozenset({CollectRequest})
