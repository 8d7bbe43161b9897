"""Reports know the channels that made them."""

from fractions import Fraction

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.mechanisms.grr import GRR
from dpsim.synthesis.split_reports import SplitReports
from dpsim.synthesis.table import CodeTable


def test_the_losses_of_all_attributes_add_up_and_a_constant_costs_nothing():
    table = CodeTable((2, 1, 3), np.zeros((3, 4), np.uint8))
    reports = SplitReports(table, (GRR(2, "1/3"), GRR(1, 1), GRR(3, "2/3")))
    assert reports.epsilon == 1
    assert reports.channels_of((2, 0)) == (GRR(3, Fraction(2, 3)), GRR(2, Fraction(1, 3)))


def test_channels_of_other_domains_are_refused():
    table = CodeTable((2, 3), np.zeros((2, 4), np.uint8))
    for channels in ((GRR(2, 1), GRR(4, 1)), (GRR(2, 1),)):
        with pytest.raises(InputError, match="channels must have"):
            SplitReports(table, channels)


def test_codes_outside_the_domain_are_counted_and_never_echoed():
    table = CodeTable((2, 3), np.array([[0, 1, 1], [2, 77, 99]], np.uint8))
    with pytest.raises(InputError, match=r"^2 of 3 codes lie outside 0\.\.2$"):
        SplitReports(table, (GRR(2, 1), GRR(3, 1)))
