"""The checks of the repository itself, see tests/tidy/checks.py."""

import pytest

from tidy import records
from tidy.checks import CHECKS


@pytest.mark.parametrize("name", CHECKS)
def test_tidy(name):
    assert not CHECKS[name]()


def test_a_record_only_falls():
    numbers = {"long": {"a": 11, "b": 10, "c": 3}}
    higher, lower = records.compare(numbers, {"long": {"a": 10, "b": 10, "c": 20}})
    assert [line.split(":")[0] for line in higher] == ["a"]
    assert [line.split(":")[0] for line in lower] == ["c"]
