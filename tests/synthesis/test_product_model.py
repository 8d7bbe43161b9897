"""Independent attributes from reports."""

import numpy as np

from dpsim.mechanisms.grr import GRR
from dpsim.synthesis.group_reports import GroupReports
from dpsim.synthesis.margins import Margin, pooled_margins, posterior_margin
from dpsim.synthesis.product_model import fit_product, product_of, project_product

ONE = GroupReports((0,), GRR(4, 1), 100, np.array([10, 25, 28, 37]))
TWO = GroupReports((1, 2), GRR(6, 1), 90, np.array([30, 20, 10, 10, 10, 10]))
SIZES = (4, 2, 3, 1)


def test_a_product_has_its_margins_and_nothing_else():
    model = product_of([np.array([0.2, 0.8]), np.array([0.5, 0.3, 0.2])])
    np.testing.assert_allclose(model.marginal((1, 0)), np.outer([0.5, 0.3, 0.2], [0.2, 0.8]))


def test_products_take_each_attributes_pooled_margin():
    margins = pooled_margins([ONE, TWO], SIZES)
    fitted = fit_product([ONE, TWO], SIZES)
    assert fitted.sizes == SIZES
    for attribute, margin in enumerate(margins):
        assert isinstance(margin, Margin)
        found = fitted.marginal((attribute,))
        np.testing.assert_allclose(found, posterior_margin(margin))


def test_projected_margins_are_the_nearest_distributions():
    """Section 3.2: the inverse (-.082791, .25, .349837, .482953) and its projection."""
    tally = np.array([15, 25, 28, 32])
    reports = [GroupReports((0,), GRR(4, 1), 100, tally)]
    found = project_product(reports, (4,)).marginal((0,))
    np.testing.assert_allclose(found, [0, 0.222403, 0.322240, 0.455357], atol=1e-6)
