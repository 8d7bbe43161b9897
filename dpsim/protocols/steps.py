"""The closed list of what a host may run. Apart from the requests: shards need no kernels."""

from typing import Final

from dpsim.protocols.dp2pub_local import PublishLocal
from dpsim.protocols.dp2pub_notes import NotesClusters, PublishNotesPram, PublishReports
from dpsim.protocols.dp2pub_partition import FitPartition
from dpsim.protocols.dp2pub_trusted import PublishTrusted
from dpsim.protocols.mwem import HostMWEM, TryMWEM
from dpsim.protocols.mwem_local import FitLocalCounts
from dpsim.protocols.mwem_marginals import HostMarginals
from dpsim.protocols.privbayes import PublishPrivBayes

STEPS: Final[frozenset[type]] = frozenset(
    {
        FitLocalCounts,
        FitPartition,
        HostMWEM,
        HostMarginals,
        NotesClusters,
        PublishLocal,
        PublishNotesPram,
        PublishPrivBayes,
        PublishReports,
        PublishTrusted,
        TryMWEM,
    }
)
