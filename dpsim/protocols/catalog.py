"""The closed list of what a shard may be asked."""

from typing import Final

from dpsim.protocols.collect import CollectRequest
from dpsim.protocols.histogram import HistogramRequest
from dpsim.protocols.reports import ReportRequest

REQUESTS: Final = frozenset({CollectRequest, HistogramRequest, ReportRequest})
EXACT_REQUESTS: Final = frozenset({HistogramRequest})
"""Answered only for users who entrust their records to a curator."""
