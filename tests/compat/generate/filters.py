"""Random filters, sorts and projections."""

from bson import Binary, Int64, Regex

from compat.generate.values import Values

TYPES = ["double", "string", "object", "array", "bool", "null", "int", "long", "decimal", "number", "date", "objectId", "regex", 2, 16, -1,
    127, 18.0]


class Filters(Values):
    def filter(self, depth: int = 2) -> dict:
        clauses = {}
        for _ in range(self.pick(1, 1, 1, 2, 3)):
            if depth and self.chance(0.2):
                clauses[self.pick("$and", "$or", "$nor")] = self.some(lambda: self.filter(depth - 1), 1, 3)
            elif self.chance(0.07):
                clauses["$expr"] = self.expression(2)
            else:
                clauses[self.path()] = self.condition(depth)
        return clauses

    def condition(self, depth: int):
        if self.chance(0.3):
            return self.value(1)
        return dict(self.operator(depth) for _ in range(self.pick(1, 1, 2)))

    def operator(self, depth: int):
        name = self.pick(
            "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$type", "$regex", "$mod", "$size", "$all",
            "$elemMatch", "$not", "$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear",
        )
        return name, self.operand(name, depth)

    def operand(self, name: str, depth: int):
        r = self.random
        if name == "$all" and depth and self.chance(0.3):
            return self.some(lambda: {"$elemMatch": self.condition(0) if self.chance(0.3) else self.filter(0)}, 1, 2)
        if name in ("$in", "$nin", "$all"):
            return self.some(lambda: self.pick(self.value(1), self.scalar(), self.number()), 0, 4)
        if name == "$exists":
            return self.pick(True, False, 0, 1, None, "x")
        if name == "$type":
            return self.pick(self.pick(*TYPES), [self.pick(*TYPES), self.pick(*TYPES)])
        if name == "$regex":
            return self.pick("a", "^a", "b$", "a|b", Regex("A", "i"), "^.$", "é", "[", "", "(?i)a", "\\d", "^a.*b$", Regex("a.b", "s"))
        if name == "$mod":
            return self.pick([2, 0], [3, 1], [-2, 1], [2.7, 0.5], [0, 1], [Int64(4), Int64(-1)], [2], [2, 1, 0],
                [self.number(), self.number()])
        if name == "$size":
            return self.pick(0, 1, 2, 2.0, -1, 1.5, Int64(3), "x")
        if name.startswith("$bits"):
            return self.pick(1, 3, [0], [1, 5], Binary(b"\x03"), 0, [], [70], 2.0, -1, Binary(b"ab"), Int64(2**40), [r.randint(-1, 70)])
        if name == "$elemMatch":
            return self.filter(max(depth - 1, 0)) if self.chance(0.5) else dict([self.operator(max(depth - 1, 0))])
        if name == "$not":
            return self.pick(Regex("a"), dict(self.operator(depth - 1) for _ in range(self.pick(1,
                2)))) if depth else {"$gt": self.scalar()}
        return self.value(1)

    # --- sorts and projections

    def sort(self) -> dict:
        return {self.path(): self.pick(1, -1) for _ in range(self.pick(1, 1, 2, 3))}

    def full_sort(self) -> dict:
        """One that leaves nothing open."""
        return {**{self.plain_path(): self.pick(1, -1) for _ in range(self.pick(0, 1, 2))}, "_id": self.pick(1, -1)}

    def projection(self) -> dict:
        spec, kind = {}, self.pick("in", "in", "out", "any")
        for _ in range(self.pick(1, 2, 3)):
            path = self.pick(self.path(), self.path(), self.path(), "_id")
            if self.chance(0.07):
                path += ".$"
            spec[path] = self.projected(kind)
        if self.chance(0.2):
            spec["_id"] = self.pick(0, 1)
        return spec

    def projected(self, kind: str):
        r = self.random
        plain = {"in": (1, True), "out": (0, False), "any": (0, 1)}[kind]
        if self.chance(0.6):
            return self.pick(*plain)
        return self.pick(
            self.pick(*plain), "$" + self.plain_path(), "text",
                {"$slice": self.pick(r.randint(-3, 3), [r.randint(-3, 3), r.randint(-1, 3)])},
            {"$elemMatch": self.filter(0)}, {self.name(): self.pick(*plain)}, {"$literal": self.value(1)}, {self.name(): "$" + self.name()},
            self.expression(1), [1, "$" + self.name()],
        )
