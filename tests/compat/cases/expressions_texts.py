"""String, regular-expression and date expressions."""

from bson import Regex, Timestamp

from compat.case import MISSING, differs, expressions, over_values
from compat.cases.values import BROAD, DATES, NAN, OID, STRINGS, D, L, T

TEXTS = STRINGS + BROAD
PARTS = ("$year", "$month", "$dayOfMonth", "$hour", "$minute", "$second", "$millisecond", "$dayOfYear", "$dayOfWeek", "$week", "$isoWeek", "$isoWeekYear", "$isoDayOfWeek")
ZONES = ("UTC", "GMT", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo", "+05:30", "-0800", "+03", "+14:00", "Z", "utc", "Nowhere/Land", "", "+25:00", 5, None, "$missing")
MOMENTS = [*DATES, T(1_616_893_200_000), T(1_635_642_000_000), T(1_585_357_199_999), OID, Timestamp(1_582_979_696, 1), None, MISSING, "2020-01-01", 5, L(5), {}]
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "decade", "", None, 5, "Day", "days")
FORMATS = (
    "%Y-%m-%d", "%H:%M:%S.%L", "%j", "%u %w", "%V %G %U", "%z %Z", "%%", "", "plain", "%", "%q", "%Y%", "%d/%m/%Y %H.%M", "%B %b", "%Y-%m-%dT%H:%M:%S.%LZ", 5, None, "$missing", "é %Y",
)
DATE_TEXTS = (
    "2020-02-29", "2020-02-29T12:30:15Z", "2020-02-29T12:30:15.123Z", "2020-02-29T12:30:15.123456Z", "2020-02-29T12:30", "2020-02-29 12:30:15", "2020-02-29T12:30:15+02:00", "2020-02-29T12:30:15 Europe/Berlin", "2020-02-30", "2021-02-29",
    "20200229", "2020-060", "2020W093", "2020-W09-6", "Feb 29 2020", "29 February 2020", "02/29/2020", "29.02.2020", "12:30", "today", "now", "tomorrow", "yesterday", "@1582979696", "1582979696", "", " ", "x", "2020", "2020-13-01", "2020-1-1", "0001-01-01", "9999-12-31T23:59:59.999Z",
    "2020-02-29T24:00:00Z", "2020-02-29T25:00:00Z", "2020-02-29T12:30:15z", "2020-02-29t12:30:15Z", "2020-02-29T12:30:15-0500", "2017-07-04T11:56:02Z+3", 5, None, "$missing",
)
FREE_FORMS = "nearly anything that people write is a date to MongoDB; here the usual forms are"
FREE_TEXTS = ("Sat, 29 Feb 2020 12:30:15 GMT", "2020-02-29T12:30:15 EST", "July 4th, 2017")


def date_of(**parts):
    return {"$dateFromParts": parts}


BLOCKS = [
    *(over_values(f"expression {name}", TEXTS, {name: "$v"}) for name in ("$toLower", "$toUpper", "$strLenBytes", "$strLenCP", "$trim")),
    *(over_values(f"expression {name}", TEXTS, {name: {"input": "$v"}}, {name: {"input": "$v", "chars": "ac \t"}}) for name in ("$trim", "$ltrim", "$rtrim")),
    over_values("expression $concat", TEXTS, {"$concat": ["$v"]}, {"$concat": ["<", "$v", ">"]}),
    over_values("expression $split", STRINGS, *({"$split": ["$v", by]} for by in ("a", "b", "X", " ", "", "é", "abc", "zz", None, 1, "$missing"))),
    over_values("expression $split", BROAD, {"$split": ["$v", "a"]}),
    over_values("expression $indexOfBytes", STRINGS, *({"$indexOfBytes": ["$v", *rest]} for rest in (["a"], ["b", 1], ["c", 0, 2], ["", 1], ["a", 100], ["é"], ["b", -1], ["a", 0, -1], ["a", 1.5], [None], [1], ["a", "x"]))),
    over_values("expression $indexOfCP", STRINGS, *({"$indexOfCP": ["$v", *rest]} for rest in (["a"], ["b", 1], ["c", 0, 2], ["", 1], ["a", 100], ["é"], ["b", -1], ["a", 0, -1], ["a", 1.5], [None], [1], ["a", "x"]))),
    over_values("expression $substrBytes", STRINGS, *({"$substrBytes": ["$v", *rest]} for rest in ([0, 2], [1, 2], [0, -1], [1, -5], [2, 100], [100, 1], [-1, 2], [0, 0], [0.5, 1], [1.9, 1.9], [None, 1], ["a", 1], [0, None], [L(1), D("1")]))),
    over_values("expression $substrCP", STRINGS, *({"$substrCP": ["$v", *rest]} for rest in ([0, 2], [1, 2], [0, -1], [2, 100], [100, 1], [-1, 2], [0, 0], [0.5, 1], [1.0, 1.0], [None, 1], ["a", 1], [0, None]))),
    over_values("expression $substr", TEXTS, {"$substr": ["$v", 0, 2]}, {"$substrBytes": ["$v", 0, 2]}, {"$substrCP": ["$v", 0, 2]}),
    over_values("expression $strcasecmp", [(a, b) for a in ("", "abc", "ABC", "abd", "é", "É", 1, None, MISSING, T(0)) for b in ("abc", "", "Z", "é", 1.5, None, True)], {"$strcasecmp": ["$v", "$w"]}),
    over_values("expression $replaceOne $replaceAll", TEXTS, *({name: {"input": "$v", "find": find, "replacement": to}} for name in ("$replaceOne", "$replaceAll") for find, to in (("a", "zz"), ("b", ""), ("", "-"), ("é", "e"), ("aa", "b"), (None, "x"), ("a", None), (1, "x"), ("a", 1)))),
    over_values("expression $regexMatch", TEXTS, *({"$regexMatch": {"input": "$v", "regex": regex}} for regex in ("a", "^a", Regex("A", "i"), "(b)(c)?", "", "é", "\\w", None, 1, "(")), {"$regexMatch": {"input": "$v", "regex": "A", "options": "i"}}),
    over_values("expression $regexFind", TEXTS, *({"$regexFind": {"input": "$v", "regex": regex}} for regex in ("a", "(b)(z)?", "", "é", Regex("B", "i"), "(?<name>b)", "[[:alpha:]]+"))),
    over_values("expression $regexFindAll", TEXTS, *({"$regexFindAll": {"input": "$v", "regex": regex}} for regex in ("a", "(b)(z)?", "", "é", Regex("B", "i"), "[a-z]", "x*", "."))),
    expressions(
        "expression regular forms", *({name: value} for name in ("$regexMatch", "$regexFind", "$regexFindAll") for value in (
            1, {}, {"input": "a"}, {"regex": "a"}, {"input": "a", "regex": "a", "x": 1}, {"input": "a", "regex": "A", "options": "i"}, {"input": "a", "regex": Regex("A", "i"), "options": "i"}, {"input": "a", "regex": Regex("a"), "options": "i"},
            {"input": "a", "regex": "a", "options": "z"}, {"input": "a", "regex": "a", "options": 1}, {"input": "a", "regex": "a", "options": None}, {"input": 1, "regex": "a"}, {"input": "a", "regex": 1}, {"input": None, "regex": None}, {"input": "a", "regex": "a\0"}, {"input": "A b", "regex": "a b", "options": "ix"}, ["a", "b"])),
    ),
    expressions(
        "expression string forms", {"$concat": []}, {"$concat": "a"}, {"$concat": ["a", None]}, {"$concat": [None, 1]}, {"$concat": [1, None]}, {"$concat": ["a", 1]}, {"$concat": ["a", "$missing", 1]}, {"$concat": ["a", ["b"]]}, {"$toLower": []}, {"$toLower": ["A", "B"]}, {"$toUpper": "éa"}, {"$toUpper": 1.5}, {"$toLower": T(0)}, {"$toUpper": Timestamp(5, 1)},
        {"$split": ["a"]}, {"$split": ["a", "b", "c"]}, {"$split": "a"}, {"$substrBytes": ["a"]}, {"$substrCP": ["a", 1]}, {"$substrBytes": ["é", 1, 1]}, {"$substrBytes": ["é", 0, 1]}, {"$strLenCP": None}, {"$strLenBytes": "$missing"}, {"$strLenCP": 1}, {"$strLenCP": []}, {"$strLenCP": ["a", "b"]}, {"$indexOfBytes": ["a"]},
        {"$indexOfCP": ["a", "b", 1, 2, 3]}, {"$indexOfBytes": [None, "a"]}, {"$indexOfBytes": [1, "a"]}, {"$trim": "a"}, {"$trim": {}}, {"$trim": {"input": "a", "x": 1}}, {"$trim": {"chars": "a"}}, {"$trim": {"input": "xax", "chars": ""}}, {"$trim": {"input": "a", "chars": 1}}, {"$trim": {"input": "a", "chars": None}}, {"$trim": {"input": 1}}, {"$trim": {"input": "\u00a0\u2003a\ufeff"}},
        {"$ltrim": {"input": "  a  "}}, {"$rtrim": {"input": "  a  "}}, {"$trim": {"input": "éaé", "chars": "é"}}, {"$replaceAll": {}}, {"$replaceAll": {"input": "a"}}, {"$replaceAll": {"input": "a", "find": "a"}}, {"$replaceAll": 1}, {"$replaceAll": {"input": "a", "find": "a", "replacement": "b", "x": 1}}, {"$replaceOne": {"input": 1, "find": "a", "replacement": "b"}},
        {"$strcasecmp": ["a"]}, {"$strcasecmp": ["a", "b", "c"]}, {"$strcasecmp": ["a", ["b"]]}, {"$toString": 1e10}, {"$toString": 1.0}, {"$toString": 0.1}, {"$toString": 1e-7}, {"$toString": 1e21}, {"$toString": 123456789.123}, {"$toString": D("1.50")}, {"$toString": L(5)}, {"$toString": NAN}, {"$toString": -0.0}, {"$toString": OID}, {"$toString": True},
    ),
    *(over_values(f"expression {name}", MOMENTS, {name: "$v"}, {name: {"date": "$v"}}, {name: {"date": "$v", "timezone": "America/New_York"}}) for name in PARTS),
    over_values("expression $hour with zones", [T(1_585_443_600_000), T(1_603_584_000_000), T(0)], *({"$hour": {"date": "$v", "timezone": zone}} for zone in ZONES), *({"$dateToString": {"date": "$v", "timezone": zone, "format": "%Y-%m-%dT%H:%M:%S%z %Z"}} for zone in ZONES)),
    expressions("expression date part forms", *({name: value} for name in ("$year", "$isoWeek") for value in ([], [T(0)], [T(0), 1], {}, {"date": T(0), "x": 1}, {"timezone": "UTC"}, {"date": T(0), "timezone": ["UTC"]}, T(0), [[T(0)]], {"date": None, "timezone": "Nowhere"}))),
    over_values("expression $dateToString", MOMENTS, {"$dateToString": {"date": "$v"}}, {"$dateToString": {"date": "$v", "format": "%Y-%m-%d %H:%M:%S.%L %j %u %w %V %G %U"}}, {"$dateToString": {"date": "$v", "onNull": "none"}}),
    over_values("expression $dateToString", [T(1_582_979_696_789), None], *({"$dateToString": {"date": "$v", "format": text}} for text in FORMATS)),
    over_values("expression $dateToParts", MOMENTS, {"$dateToParts": {"date": "$v"}}, {"$dateToParts": {"date": "$v", "iso8601": True}}, {"$dateToParts": {"date": "$v", "timezone": "Asia/Kolkata"}}),
    over_values("expression $dateFromString", [0], *({"$dateFromString": {"dateString": text}} for text in DATE_TEXTS), *(differs({"$dateFromString": {"dateString": text}}, FREE_FORMS) for text in FREE_TEXTS)),
    over_values("expression $dateFromString", [0], *({"$dateFromString": {"dateString": "2020-02-29T12:30:15", "timezone": zone}} for zone in ZONES), *({"$dateFromString": {"dateString": text, "format": form}} for text, form in (
        ("29/02/2020", "%d/%m/%Y"), ("2020-02-29", "%d/%m/%Y"), ("2020 060", "%Y %j"), ("6-9-2020", "%u-%V-%G"), ("12:30", "%H:%M"), ("2020-02-29 +0200", "%Y-%m-%d %z"), ("x", "%q"), ("2020-02-29", 5), ("2020-02-29", None), ("2020-02-29 12", "%Y-%m-%d %H"), ("20 02", "%y %m"))),
        {"$dateFromString": {"dateString": "x", "onError": "bad"}}, {"$dateFromString": {"dateString": None, "onNull": "none"}}, {"$dateFromString": {"dateString": 5, "onError": "bad"}}, {"$dateFromString": {}}, {"$dateFromString": 1}, {"$dateFromString": {"dateString": "2020-01-01", "x": 1}}, {"$dateFromString": {"format": "%Y"}},
        {"$dateFromString": {"dateString": "2020-01-01T00:00:00Z", "timezone": "Europe/Berlin"}}),
    over_values(
        "expression $dateFromParts", [0], date_of(year=2020), date_of(year=2020, month=2, day=29, hour=12, minute=30, second=15, millisecond=5), date_of(year=2020, month=13), date_of(year=2020, month=0), date_of(year=2020, day=-5), date_of(year=2020, hour=25), date_of(year=2020, millisecond=-1),
        date_of(year=0), date_of(year=1), date_of(year=9999), date_of(year=10000), date_of(year=2020, month=None), date_of(year=None), date_of(year="2020"), date_of(year=2020.5), date_of(year=2020.0), date_of(year=L(2020)), date_of(month=1), date_of(isoWeekYear=2020), date_of(isoWeekYear=2020, isoWeek=53, isoDayOfWeek=7),
        date_of(isoWeekYear=2020, isoWeek=54), date_of(isoWeekYear=2020, month=2), date_of(year=2020, isoWeek=2), date_of(year=2020, timezone="Europe/Berlin"), date_of(year=2020, timezone="+05:30"), date_of(year=2020, timezone=5), date_of(year=2020, timezone=None), date_of(year=2020, month=40000), date_of(year=2020, x=1), date_of(), {"$dateFromParts": 1},
        date_of(isoWeekYear=2020, isoWeek=-3), date_of(year=2020, second=2**31), date_of(year=2020, month=1, day=32768), date_of(year=2020, minute=-1, timezone="America/New_York"),
    ),
    over_values(
        "expression $dateAdd $dateSubtract", MOMENTS[:14], *({name: {"startDate": "$v", "unit": unit, "amount": amount}} for name in ("$dateAdd", "$dateSubtract") for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond") for amount in (1, -13)),
    ),
    over_values(
        "expression $dateAdd $dateSubtract", [T(1_582_979_696_789)], *({"$dateAdd": {"startDate": "$v", "unit": unit, "amount": 1}} for unit in UNITS), *({"$dateAdd": {"startDate": "$v", "unit": "day", "amount": amount}} for amount in (0, 1.0, 1.5, L(5), D("2"), "a", None, 2**31, L(2**62), NAN)),
        *({"$dateAdd": {"startDate": "$v", "unit": "day", "amount": 30, "timezone": zone}} for zone in ZONES), {"$dateAdd": {}}, {"$dateAdd": 1}, {"$dateAdd": {"startDate": "$v", "unit": "day"}}, {"$dateAdd": {"startDate": "$v", "unit": "day", "amount": 1, "x": 1}}, {"$dateAdd": {"startDate": 5, "unit": "day", "amount": 1}}, {"$dateAdd": {"startDate": None, "unit": "nope", "amount": 1}},
    ),
    over_values("expression $dateDiff", [(a, b) for a in (T(0), T(1_582_979_696_789), T(1_577_836_799_999), T(-2_208_988_800_000), None) for b in (T(1_609_459_200_000), T(1_585_443_600_000), T(951_782_400_000), MISSING)], *({"$dateDiff": {"startDate": "$v", "endDate": "$w", "unit": unit}} for unit in UNITS[:9])),
    over_values("expression $dateDiff", [(T(1_582_979_696_789), T(1_616_893_200_000))], *({"$dateDiff": {"startDate": "$v", "endDate": "$w", "unit": unit}} for unit in UNITS), *({"$dateDiff": {"startDate": "$v", "endDate": "$w", "unit": "week", "startOfWeek": day}} for day in ("monday", "mon", "Sunday", "sat", "x", None, 1)),
                *({"$dateDiff": {"startDate": "$v", "endDate": "$w", "unit": "day", "timezone": zone}} for zone in ZONES), {"$dateDiff": {}}, {"$dateDiff": {"startDate": "a", "endDate": "$w", "unit": "day"}}, {"$dateDiff": {"startDate": "$v", "endDate": 1, "unit": "day"}}, {"$dateDiff": {"startDate": "$v", "endDate": "$w", "unit": "day", "startOfWeek": "x"}}),
    over_values("expression $dateTrunc", MOMENTS[:14], *({"$dateTrunc": {"date": "$v", "unit": unit, "binSize": size}} for unit in UNITS[:9] for size in (1, 7))),
    over_values("expression $dateTrunc", [T(1_582_979_696_789)], *({"$dateTrunc": {"date": "$v", "unit": unit}} for unit in UNITS), *({"$dateTrunc": {"date": "$v", "unit": "day", "binSize": size}} for size in (0, -1, 2.0, 2.5, "a", None, L(5), 2**40)), *({"$dateTrunc": {"date": "$v", "unit": "hour", "timezone": zone}} for zone in ZONES),
                *({"$dateTrunc": {"date": "$v", "unit": "week", "startOfWeek": day, "timezone": "Europe/Berlin"}} for day in ("monday", "TUE", "x", None)), {"$dateTrunc": {}}, {"$dateTrunc": 1}, {"$dateTrunc": {"date": "a", "unit": "day"}}, {"$dateTrunc": {"date": "$v", "unit": "day", "x": 1}}),
    over_values("expression $tsSecond $tsIncrement", [Timestamp(5, 7), Timestamp(2**32 - 1, 2**32 - 1), *BROAD], {"$tsSecond": "$v"}, {"$tsIncrement": "$v"}),
]
