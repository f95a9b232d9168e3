"""Dates as people write them, and what `$dateFromString` makes of them."""

import datetime
from itertools import product

from compat.case import commands, expressions
from compat.cases.values import numbered

WRITTEN = [
    "2017-07-06T12:35:37Z", "2017-7-6 12:35:37.513", "2017/7/6 12:35", "2017/07/06/", "20170706-123537", "20170706T123537", "20170706 123537",
    "20170706123537", "20170706t1235", "2017-07-06T123537Z", "2017-07-06 12.35.37", "July 6th, 2017 12:35:37", "July 6, 2017, 12:35",
    "Jul 6 2017 12:35:37 BST", "6 July 2017 noon", "6th July 2017 midnight", "July 2017", "2017 Jul", "2017", "2017-07", "2017-7", "201707",
    "July 6", "6 July", "7/6/2017", "7/6/17", "7/6/70", "7/6", "07/06/2017 5pm", "7/6/2017 5:30 pm", "7/6/2017 5:30PM", "7/6/2017 12:30am",
    "6-7-2017", "6-Jul-2017", "06-Jul-17", "6.7.2017", "17-07-06", "2017-Jul-06", "Jul-06-2017", "2017W27", "2017-W27-4", "2017W274",
    "Thu, 06 Jul 2017 12:35:37 GMT", "Thursday, 06-Jul-17 12:35:37 UTC", "Thu Jul  6 12:35:37 2017", "Thu Jul 6 2017 12:35:37 GMT+0200",
    "Fri, 06 Jul 2017", "Wed 6 Jul 2017", "2017-07-06T12:35:37EST", "2017-07-06T12:35:37 PDT", "2017-07-06T12:35:37 A", "2017-07-06T12:35 y",
    "2017-07-06T12:35:37 Europe/Paris", "2017-07-06T12:35:37+02", "2017-07-06T12:35:37 +2:30", "2017-07-06T12:35:37 GMT+2", "2017-07-06T12",
    "2017-07-06T", "2017-07-06 12", "2017-07-06 noon", "noon 2017-07-06", "12:35:37 July 6 2017", "2017-07-06T12:35:60", "2017-07-06T24:00",
    "2017-07-06T12:60", " 2017-07-06 ", "2017-07-06\t12:35", "2017-07-06,12:35", "2017-07-06Z", "2017-07-06+02:00", "-0001-01-01", "+2017-07-06",
    "0000-01-01", "2017-00-01", "2017-02-31", "2017-13-01", "2017-07-32", "31/12/2017", "@1499344537", "@-5", "@1499344537.5", "1499344537",
    "foo", "2017-07-06 foo", "July", "Thursday", "6", "12:35", "5pm", "2nd July 2017", "sept 5 2017", "Sep. 5, 2017", "5. September 2017", "",
]
PATTERNS = [("%Y", "20"), ("%G", "2020"), ("%G", "20"), ("%Y-%m-%d", "20-02-29"), ("%Y-%m-%dT%H:%M:%S.%LZ", "2020-02-29T12:34:56.789123Z"),
    ("%Y-%m-%dT%H:%M:%S", "2020-02-29T12:34:60"), ("%Y-%m-%dT%H:%M:%S.%L", "2020-02-29T12:34:56.7")]

# Pieces that are put together in all ways.
DAYS = ["2015-04-25", "2015-4-5", "2015/4/5", "25.04.2015", "25-4-2015", "25.04.15", "10.04.15", "5-4-15", "15-04-25", "4/25/15", "4/25", "25 Apr 2015",
    "25th April 2015", "Apr 25, 2015", "Apr-25-2015", "25-Apr-15", "2015-Apr-25", "25/Apr/2015", "Apr 25", "25 Apr", "April 2015", "2015 April", "2015-04",
    "20150425", "2015015", "2015.115", "2015-W17", "2015W176", "2015:04:25", "25 IV 2015", "IV 25 2015", "2015", "-2015-04-25", "April", "Sat", "saturday",
    "2/30/2015", "2015-13-01", "2015-04-00", "@1429978301", "@-5.5", "@5.", "1960-01-01", "April-25-2015", ""]
CLOCKS = ["", " 16:11", " 16:11:41.123456789", "T6:1:1", " 16.11.41", "-16.11.41", " 1611", "T161141", " T16", "t1611", ":16:11:41 +0200", " 4 pm", " 4:11:41 p.m.",
    " 4:11:41:5 PM", " 12am", " 16:11:60", " 24:00", " noon", " midnight", " back of 7", " 16h11", " 16:11 16:12", " 1611 2016", "_16:11"]
OFFSETS = ["Z", "UTC", "(UTC)", "(CEST)", "+02:00", "+2", "-0530", "-5:30", "+02:00:00", "+020000", "GMT+2", "gmt+2", "UTC+2", "EST", "aest", "PST8PDT", "AMT", "Zulu",
    "Europe/Paris", "A", "J", "y", "+25", "+0260", "foo", "Z Z", "(+02:00)", "x\ny"]
DISTANCES = ["+1 day", "-1 week", "+2 weeks", "--3 days", "next month", "last year", "tomorrow", "yesterday", "now", "today", "-90 minutes", "+3 sec", "+500 ms", "+1 fortnight",
    "Sunday", "next friday", "last sun", "third tue", "this week", "next week", "sat next week", "1 month ago", "first day of", "last day of next month",
    "+1 weekday", "-3 weekdays", "+12 weekdays", "first monday of", "last friday of", "2 sun", "eighth day", "+1 year 2 months", "weekday", "ago"]
TEXTS = [
    *map("".join, product(DAYS, CLOCKS)), *("2015-04-25T16:11:41" + blank + offset for blank, offset in product(("", " "), OFFSETS)),
    *(day + " " + distance for day, distance in product(("2015-04-25 16:11", "2015-01-31", "1960-02-29 1611", "@1429978301"), DISTANCES)),
    *(distance + " 2015-04-26 16:11" for distance in DISTANCES),
    "2015-04-25\n", "\n2015-04-25", "2015-04-25\r\n", "2015-04-25\nx", "2015-04-25 %", "2015年4月25日", "2015-04-25\x00", "1960-01-01 00:00:00.1239",
    "1960-01-01T00:00:00.1239Z", "0001-01-01", "9999-12-31T23:59:59.999Z", "10000-01-01", "2015-04-25T16:11:41.Z", "2015-02-29T00:00:00Z", "null", "NaN",
]

BLOCKS = [
    commands("dates in text", numbered(TEXTS), {"aggregate": "c", "pipeline": [{"$sort": {"_id": 1}},
        {"$project": {"d": {"$convert": {"input": "$v", "to": "date", "onError": "no date"}}, "text": "$v"}}], "cursor": {"batchSize": 10000}}),
    expressions("dates in text", *({"$toDate": text} for text in (
        "2015-04-25 %% $$", "2015-02-30 24:00", "2015-04-25 Europe/Paris", "2015-04-25 foo", "2015-04-25 12:00 UTC UTC", "2015-04-25 16:11 16:12", "@5.",
        "2015-04-25 2015-04-26"))),
    expressions("expression $dateFromString", *({"$dateFromString": {"dateString": text, **more}} for text in WRITTEN
        for more in ({}, {"onError": "bad"}))),
    expressions("expression $dateFromString", *({"$dateFromString": {"dateString": text, "timezone": "Europe/Paris"}} for text in WRITTEN
        # The character between date and time is parsed as the sign of an offset.
        if text != "20170706-123537")),
    expressions("expression $dateFromString", *({"$dateFromString": {"dateString": text, "format": pattern}} for pattern, text in PATTERNS)),
    expressions("expression $toDate", *({"$toDate": text} for text in WRITTEN)),
    expressions("expression $dateToString", {"$dateToString": {"date": datetime.datetime(2017, 7, 6), "timezone": "Europe/Paris"}}),
]
