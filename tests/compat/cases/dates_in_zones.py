"""$dateTrunc, $dateDiff, $dateAdd and $dateSubtract in zones whose clocks are put forward and back, or that once were off by seconds."""

import datetime

from compat.case import expressions

MOMENTS = [
    datetime.datetime.fromisoformat(text)
    for text in (
        "2024-02-29T23:59:59.999", "1969-12-31T23:59:59.999", "1900-01-01", "0001-01-01", "2021-03-14T07:30", "2021-11-07T05:30:15.001", "1950-06-15T12:34:56.789", "1883-11-18T17:00", "2021-01-03T00:00:00.001",
    )
]  # fmt: skip
ZONES = ["America/New_York", "Europe/London", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", "Europe/Moscow", "+05:30"]
UNITS = ["day", "hour", "minute", "second", "millisecond"]

BLOCKS = [
    expressions("dates in zones: $dateTrunc", *({"$dateTrunc": {"date": date, "unit": unit, "binSize": size, "timezone": zone}} for date in MOMENTS for zone in ZONES for unit in UNITS for size in (1, 7))),
    expressions("dates in zones: $dateDiff", *({"$dateDiff": {"startDate": date, "endDate": other, "unit": unit, "timezone": zone}} for zone in ZONES for unit in UNITS[1:] for date, other in zip(MOMENTS, MOMENTS[2:] + MOMENTS[:2]))),
    expressions("dates in zones: $dateAdd", *({name: {"startDate": date, "unit": unit, "amount": -25, "timezone": zone}} for name in ("$dateAdd", "$dateSubtract") for date in MOMENTS for zone in ZONES for unit in UNITS[:2])),
]  # fmt: skip
