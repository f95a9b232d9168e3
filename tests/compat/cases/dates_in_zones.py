"""$dateTrunc, $dateDiff, $dateAdd and $dateSubtract in zones whose clocks are put forward and back,
or that once were off by seconds."""

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

# Hours that clocks show twice, or leave out.
TWICE = [("America/New_York", 2021, 11, 7), ("America/New_York", 2021, 3, 14), ("Europe/London", 1971, 10, 31), ("Australia/Lord_Howe", 2021, 4, 4), ("Australia/Lord_Howe", 2021, 10, 3), ("Europe/Moscow", 2014, 10, 26), ("America/St_Johns", 2009, 11, 1), ("Pacific/Apia", 2011, 12, 30)]
TIMES = [(hour, minute) for hour in range(4) for minute in (0, 30)]

BLOCKS += [
    expressions("dates in zones: hours shown twice", *(
        expression
        for zone, year, month, day in TWICE
        for hour, minute in TIMES
        for noon in [datetime.datetime(year, month, day, 6 + hour, minute)]
        for expression in (
            {"$dateFromParts": {"year": year, "month": month, "day": day, "hour": hour, "minute": minute, "timezone": zone}},
            {"$dateFromString": {"dateString": f"{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:00", "timezone": zone}},
            {"$dateAdd": {"startDate": noon - datetime.timedelta(days=1), "unit": "day", "amount": 1, "timezone": zone}},
            {"$dateAdd": {"startDate": noon + datetime.timedelta(days=1), "unit": "day", "amount": -1, "timezone": zone}},
            {"$dateTrunc": {"date": noon, "unit": "month", "timezone": zone}}))),
]  # fmt: skip
