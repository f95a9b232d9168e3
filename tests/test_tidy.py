"""The checks of the repository itself, see tests/tidy/checks.py."""

import pytest

from tidy import records
from tidy.checks import CHECKS


@pytest.mark.parametrize("name", CHECKS)
def test_tidy(name):
    assert not CHECKS[name]()


def test_a_record_only_falls():
    numbers = {"a": {"long": 11}, "b": {"long": 10}, "c": {"long": 3}, "new": {"long": 1}}
    higher, lower = records.compare(numbers, {"a": {"long": 10}, "b": {"long": 10}, "c": {"long": 20}})
    assert [line.split(":")[0] for line in higher] == ["a", "new"]
    assert [line.split(":")[0] for line in lower] == ["c"]
