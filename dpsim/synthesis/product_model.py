"""Independent attributes: the model that margins alone make."""

from __future__ import annotations

from collections.abc import Sequence

from dpsim.core.arrays import Frequencies
from dpsim.synthesis.bayes_net import BayesNet, NetworkModel
from dpsim.synthesis.group_reports import GroupReports, require_groups
from dpsim.synthesis.margins import (
    pooled_margins,
    posterior_margin,
    projected_margin,
    require_margins,
)


def product_of(margins: Sequence[Frequencies]) -> NetworkModel:
    """The law under which attributes with these margins are independent."""
    net = BayesNet(tuple(range(len(margins))), tuple(() for _ in margins))
    return NetworkModel(net, tuple(margins))


def fit_product(reports: Sequence[GroupReports], sizes: tuple[int, ...]) -> NetworkModel:
    """Independent attributes, each by the posterior mean of its margin."""
    require_groups(reports, sizes)
    margins = require_margins(pooled_margins(reports, sizes))
    return product_of([posterior_margin(margin) for margin in margins])


def project_product(reports: Sequence[GroupReports], sizes: tuple[int, ...]) -> NetworkModel:
    """Independent attributes, each by the distribution nearest to its estimated margin."""
    require_groups(reports, sizes)
    margins = require_margins(pooled_margins(reports, sizes))
    return product_of([projected_margin(margin) for margin in margins])
