"""Dates as people write them, and what `$dateFromString` makes of them."""

import datetime

from compat.case import expressions

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

BLOCKS = [
    expressions("expression $dateFromString", *({"$dateFromString": {"dateString": text, **more}} for text in WRITTEN
        for more in ({}, {"onError": "bad"}))),
    expressions("expression $dateFromString", *({"$dateFromString": {"dateString": text, "timezone": "Europe/Paris"}} for text in WRITTEN
        # What stands between date and time is taken for the sign of an offset.
        if text != "20170706-123537")),
    expressions("expression $dateFromString", *({"$dateFromString": {"dateString": text, "format": pattern}} for pattern, text in PATTERNS)),
    expressions("expression $toDate", *({"$toDate": text} for text in WRITTEN)),
    expressions("expression $dateToString", {"$dateToString": {"date": datetime.datetime(2017, 7, 6), "timezone": "Europe/Paris"}}),
]
