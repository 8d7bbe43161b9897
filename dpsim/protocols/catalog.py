"""The closed list of what a shard may be asked."""

from typing import Final

from dpsim.protocols.frequency import FrequencyRequest

REQUESTS: Final = frozenset({FrequencyRequest})
