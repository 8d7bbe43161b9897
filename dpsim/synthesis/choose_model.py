"""One way in: the model of a table for the reports at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.synthesis.bayes_net import BayesNet
from dpsim.synthesis.group_reports import GroupReports, require_groups
from dpsim.synthesis.likely_classes import fit_classes
from dpsim.synthesis.posterior import CLASSES, fit_posterior
from dpsim.synthesis.product_model import fit_product, project_product
from dpsim.synthesis.table import TableModel
from dpsim.synthesis.tree_model import fit_network, fit_tree

ModelChoice = Literal["auto", "product", "projected", "tree", "network", "classes", "posterior"]


def fit_model(
    reports: Sequence[GroupReports],
    sizes: tuple[int, ...],
    noise: CentralNoise,
    choice: ModelChoice = "auto",
    net: BayesNet | None = None,
    classes: int = CLASSES,
) -> TableModel:
    """A law of whole records from reports about groups; it costs no further privacy.

    ========== =====================================================================
    product    independent attributes, posterior means of their margins
    projected  the same by projection: the method as first described
    tree       a tree of pairs with signal
    network    the given network, which its groups must hold
    classes    the likeliest mixture, its number of classes by AIC
    posterior  a mixture of ``classes``, averaged over its posterior
    auto       posterior where a group tells about several attributes, else product
    ========== =====================================================================

    The choice looks at the groups alone. ``posterior`` errs least where attributes depend on
    each other, and about as little as ``product`` where they do not.
    """
    if choice not in get_args(ModelChoice):
        known = ", ".join(get_args(ModelChoice))
        raise InputError(f"no model {choice!r}; there are: {known}")
    if (net is None) == (choice == "network"):
        raise InputError("a network is given exactly where the model is 'network'")
    require_groups(reports, sizes)
    if choice == "auto":
        joint = any(len(group.attributes) > 1 and group.n for group in reports)
        choice = "posterior" if joint else "product"
    if net is not None:
        return fit_network(reports, sizes, net)
    if choice == "classes":
        return fit_classes(reports, sizes, noise).model
    if choice == "posterior":
        return fit_posterior(reports, sizes, noise, classes)
    plain = {"product": fit_product, "projected": project_product, "tree": fit_tree}
    return plain[choice](reports, sizes)
