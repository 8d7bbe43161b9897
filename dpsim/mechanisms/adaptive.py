"""The better of two frequency oracles, chosen by the domain and ε alone."""

from __future__ import annotations

from decimal import localcontext
from typing import Literal

from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.mechanisms.atoms import exp_of
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.interfaces import FrequencyOracle
from dpsim.mechanisms.unary import OUE

Rule = Literal["f0", "average"]


def adaptive(domain_size: int, epsilon: object, rule: Rule = "f0") -> FrequencyOracle:
    """GRR for small domains, OUE for large ones: whichever has the smaller variance.

    ``f0`` compares the variances of a code that nobody holds: GRR if k < 3e^ε + 2. ``average``
    compares their means over all codes, and so counts the noise on the codes that are held::

        GRR: (k-2+e) / (e-1)² + (k-2) / (k(e-1))     OUE: 4e / (e-1)² + 1/k     (e for e^ε)

    The data have no part in the choice: it costs nothing, and is part of the plan.
    """
    k, loss = require_at_least(1, domain_size=domain_size), require_epsilon(epsilon)
    with localcontext(prec=60):
        e = exp_of(loss)
        if rule == "f0":
            is_small = k < 3 * e + 2
        else:
            is_small = k * (k - 2 + e) + (k - 2) * (e - 1) < 4 * e * k + (e - 1) ** 2
    return GRR(k, loss) if is_small else OUE(k, loss)
