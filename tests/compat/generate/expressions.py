"""Random expressions, mostly with arguments of the types that their operators want."""

from compat.generate.filters import Filters

# Operators and their arguments: n number, i small integer, s string, l array, d date, o object, x
# anything; a star repeats.
OPERATORS = {
    "n": """abs:n ceil:n floor:n sqrt:n exp:n ln:n log10:n trunc:n trunc:ni round:n round:ni add:n* add:nn multiply:n* subtract:nn divide:nn mod:nn
        pow:ni log:nn size:l strLenBytes:s strLenCP:s cmp:xx indexOfCP:ss indexOfBytes:ss indexOfArray:lx strcasecmp:ss bsonSize:o binarySize:s
        sum:l avg:l max:l min:l sum:n* avg:n* max:n* min:n* stdDevPop:l stdDevSamp:l toInt:n toDouble:n toLong:n toDecimal:n toDouble:s
        toInt:s toLong:d toDecimal:s year:d month:d dayOfMonth:d hour:d minute:d second:d millisecond:d dayOfYear:d dayOfWeek:d week:d isoWeek:d
        isoWeekYear:d isoDayOfWeek:d sin:n cos:n asin:n acos:n atan:n atan2:nn tan:n sinh:n tanh:n degreesToRadians:n radiansToDegrees:n
        arrayElemAt:li first:l last:l subtract:dd ifNull:nn cond:xnn tsSecond:x""",
    "s": """concat:s* concat:ss toLower:s toUpper:s substrBytes:sii substrCP:sii toString:n toString:d toString:x type:x arrayElemAt:li ifNull:ss
        cond:xss toLower:x toUpper:n substr:sii""",
    "l": """concatArrays:l* concatArrays:ll reverseArray:l slice:li slice:lii split:ss setUnion:l* setDifference:ll setIntersection:ll range:iii range:ii
        objectToArray:o ifNull:ll cond:xll""",
    "b": """eq:xx ne:xx gt:xx gte:xx lt:xx lte:xx and:x* or:x* not:x in:xl isArray:x isNumber:x allElementsTrue:l anyElementTrue:l setEquals:ll
        setIsSubset:ll toBool:x eq:nn gt:nn lt:ss gte:dd""",
    "o": "mergeObjects:oo mergeObjects:o* arrayToObject:l ifNull:oo",
    "d": "toDate:n toDate:s toDate:d add:dn subtract:dn ifNull:dd toDate:x",
}
OPERATORS = {kind: [entry.split(":") for entry in text.split()] for kind, text in OPERATORS.items()}
FIELD_OF = {"n": "n", "s": "s", "l": "l", "d": "d", "o": "o", "i": "n"}
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "+05:30", "-0800", "Asia/Kolkata", "Nowhere/Land")
FORMATS = ("%Y-%m-%d %H:%M:%S.%L", "%j %u %V %G %w %U", "%z %Z", "%d/%m/%Y", "%%", "%q", "%Y-%m-%dT%H:%M:%S.%LZ")


class Expressions(Filters):
    def expression(self, depth: int = 2, kind: str = "x"):
        if self.chance(0.12):
            kind = "x"
        if not depth or self.chance(0.25):
            return self.leaf(kind)
        if self.chance(0.2):
            return self.form(depth - 1, kind)
        return self.call(depth, kind)

    def call(self, depth: int, kind: str) -> dict:
        group = {"x": self.pick("n", "s", "l", "b", "o", "d"), "i": "n"}.get(kind, kind)
        name, kinds = self.pick(*OPERATORS[group])
        if kinds.endswith("*"):
            kinds = kinds[0] * self.random.randint(0, 4)
        arguments = [self.expression(depth - 1, wanted) for wanted in kinds]
        if len(arguments) == 1 and not isinstance(arguments[0], list) and self.chance(0.6):
            return {f"${name}": arguments[0]}
        if self.chance(0.02):
            arguments = arguments[:-1] or [1, 2]
        return {f"${name}": arguments}

    def leaf(self, kind: str):
        if kind in FIELD_OF and self.chance(0.6):
            return "$" + FIELD_OF[kind]
        if kind == "i":
            return self.random.randint(-3, 4)
        if kind == "x" or self.chance(0.15):
            return self.pick(
                "$" + self.name(), "$" + self.plain_path(), "$" + self.plain_path(), {"$literal": self.value(1)}, self.number(), "$$ROOT",
                    None, "$$REMOVE",
                "x" + self.text(),
            )
        make = {"n": self.number, "s": lambda: self.text() or "x", "l": self.numbers, "d": self.date,
            "o": lambda: {"$literal": self.object()}, "b": lambda: self.chance(0.5)}
        return make[kind]()

    def form(self, depth: int, kind: str):
        """Operators whose arguments have names."""
        e = lambda wanted="x": self.expression(depth, wanted)
        r = self.random
        any_kind = [
            lambda: {"$let": {"vars": {"v": e()}, "in": self.inner("$$v", depth)}},
            lambda: {"$switch": {"branches": [{"case": e("b"), "then": e(kind)} for _ in range(r.randint(1, 2))],
                **({"default": e(kind)} if self.chance(0.8) else {})}},
            lambda: {"$reduce": {"input": e("l"), "initialValue": e(kind),
                "in": {self.pick("$add", "$concat", "$eq", "$max", "$concatArrays"): ["$$value", "$$this"]}}},
            lambda: {"$getField": {"field": self.name(), "input": e("o")}},
            lambda: {"$convert": {"input": e(),
                "to": self.pick("int", "long", "double", "decimal", "string", "bool", "date", "objectId", 1, 16, "nope"),
                                  **({"onError": "bad"} if self.chance(0.7) else {}), **({"onNull": "none"} if self.chance(0.5) else {})}},
            lambda: {"$arrayElemAt": [e("l"), e("i")]},
            lambda: {"x": e(), "y": e(kind)},
            lambda: [e(), e(kind)],
        ]
        own = {
            "l": [
                lambda: {"$map": {"input": e("l"), "in": self.inner("$$this", depth)}},
                lambda: {"$filter": {"input": e("l"), "cond": self.inner("$$this", depth),
                    **({"limit": r.randint(-1, 3)} if self.chance(0.2) else {})}},
                lambda: {"$zip": {"inputs": [e("l"), e("l")],
                    **self.pick({}, {"useLongestLength": True}, {"useLongestLength": True, "defaults": [0, e()]})}},
                lambda: {"$sortArray": {"input": e("l"), "sortBy": self.pick(1, -1, {"a": 1}, {"b": -1, "a": 1}, 0)}},
                lambda: {self.pick("$firstN", "$lastN", "$maxN", "$minN"): {"n": self.pick(1, 2, 3, 0, "$n"), "input": e("l")}},
                lambda: {"$regexFindAll": {"input": e("s"), "regex": self.pick("[ab]", "(a)(b)?", "")}},
            ],
            "s": [
                lambda: {self.pick("$trim", "$ltrim", "$rtrim"): {"input": e("s"),
                    **self.pick({}, {"chars": self.pick("a", "ab", "é", " .")})}},
                lambda: {self.pick("$replaceOne", "$replaceAll"): {"input": e("s"), "find": self.pick("a", "b", "", "é"),
                    "replacement": e("s")}},
                lambda: {"$dateToString": {"date": e("d"), **self.pick({}, {"format": self.pick(*FORMATS)}),
                    **self.pick({}, {"timezone": self.pick(*ZONES)}), **self.pick({}, {"onNull": "none"})}},
            ],
            "b": [lambda: {"$regexMatch": {"input": e("s"), "regex": self.pick("a", "^A", "é$"),
                **self.pick({}, {"options": self.pick("i", "x", "q")})}}],
            "o": [
                lambda: {"$setField": {"field": self.name(), "input": e("o"), "value": e()}},
                lambda: {"$unsetField": {"field": self.name(), "input": e("o")}},
                lambda: {"$dateToParts": {"date": e("d"), **self.pick({}, {"iso8601": True}),
                    **self.pick({}, {"timezone": self.pick(*ZONES)})}},
                lambda: {"$regexFind": {"input": e("s"), "regex": self.pick("a", "(b)|(é)", "(?<n>a)")}},
                lambda: {"$mergeObjects": [e("o"), {"q": e()}]},
            ],
            "d": [
                lambda: {self.pick("$dateAdd", "$dateSubtract"): {"startDate": e("d"), "unit": self.pick(*UNITS),
                    "amount": r.randint(-20, 20), **self.pick({}, {"timezone": self.pick(*ZONES)})}},
                lambda: {"$dateTrunc": {"date": e("d"), "unit": self.pick(*UNITS), **self.pick({}, {"binSize": r.randint(1, 5)}),
                    **self.pick({}, {"timezone": self.pick(*ZONES)}), **self.pick({}, {"startOfWeek": self.pick("monday", "sun", "x")})}},
                lambda: {"$dateFromParts": {"year": r.randint(1990, 2030), "month": r.randint(-5, 20), "day": r.randint(-40, 70),
                    **self.pick({}, {"hour": e("i")}), **self.pick({}, {"timezone": self.pick(*ZONES)})}},
                lambda: {"$dateFromParts": {"isoWeekYear": r.randint(1990, 2030), "isoWeek": r.randint(0, 60),
                    "isoDayOfWeek": r.randint(0, 9)}},
                lambda: {"$dateFromString": {"dateString": self.pick("2020-02-29", "2020-02-29T12:30:00Z", "nonsense", "2021-1-1", e("s")),
                    **self.pick({}, {"onError": "bad"}), **self.pick({}, {"onNull": None})}},
            ],
            "n": [
                lambda: {"$dateDiff": {"startDate": e("d"), "endDate": e("d"), "unit": self.pick(*UNITS),
                    **self.pick({}, {"timezone": self.pick(*ZONES)}), **self.pick({}, {"startOfWeek": "monday"})}},
                lambda: {self.pick("$year", "$hour", "$dayOfWeek", "$week", "$isoWeek"): {"date": e("d"), "timezone": self.pick(*ZONES)}},
            ],
        }
        chosen = own.get(kind) or own[self.pick(*own)]
        return self.pick(*any_kind)() if self.chance(0.4) else self.pick(*chosen)()

    def inner(self, variable: str, depth: int):
        return self.pick(
            variable, {"$add": [variable, 1]}, {"$eq": [variable, self.expression(0)]}, {"$type": variable}, variable + "." + self.name(),
            {"$gt": [variable, self.scalar()]}, {"$concat": [variable, "!"]}, {"$multiply": [variable, self.expression(0, "n")]},
                self.expression(depth),
        )
