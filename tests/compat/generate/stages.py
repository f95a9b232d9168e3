"""Random stages that compare documents with one another, or with those of another collection."""

from bson import DatetimeMS

from compat.generate.pipelines import Pipelines

NARROW = {"$match": {"n": {"$gte": -10, "$lte": 30}}}
WINDOW_NUMBERS = ("$sum", "$avg", "$stdDevPop", "$stdDevSamp")
WINDOW_VALUES = ("$min", "$max", "$first", "$last", "$push", "$addToSet")


class Stages(Pipelines):
    def stage(self, inner: bool = False) -> dict:
        if self.chance(0.8):
            return super().stage(inner)
        name = self.pick("window", "window", "densify", "fill", "graph", "schema", "joined", "union_of")
        if inner and name in ("graph", "joined", "union_of", "densify"):
            name = "window"
        return getattr(self, name)()

    def pipeline(self) -> list:
        pipeline = super().pipeline()
        # Values for $densify should be close together.
        return [one for stage in pipeline for one in ([NARROW, stage] if "$densify" in stage and self.chance(0.9) else [stage])]

    # --- windows

    def window(self) -> dict:
        spec = {"output": {self.pick("w", "w", "a.w", "n"): self.windowed() for _ in range(self.pick(1, 1, 2))}}
        if self.chance(0.6):
            spec["partitionBy"] = self.pick("$" + self.plain_path(), {"$type": "$n"}, self.expression(1))
        if self.chance(0.9):
            spec["sortBy"] = self.pick({"n": 1}, {"d": 1}, self.full_sort(), self.full_sort(), {"n": -1, "_id": 1})
        return {"$setWindowFields": spec}

    def windowed(self) -> dict:
        r = self.random
        name = self.pick(*WINDOW_NUMBERS, *WINDOW_VALUES, "$count", "$rank", "$denseRank", "$documentNumber", "$shift", "$expMovingAvg",
            "$linearFill", "$locf", "$firstN", "$maxN", "$top", "$bottomN", "$covariancePop", "$covarianceSamp", "$derivative", "$integral")
        if name in ("$rank", "$denseRank", "$documentNumber"):
            return {name: {}}
        if name == "$shift":
            return {name: {"output": self.expression(1), "by": r.randint(-2, 2), **self.pick({}, {"default": self.pick("none", None, 5)})}}
        if name == "$expMovingAvg":
            return {name: {"input": self.pick("$n", "$l"), **self.pick({"N": 2}, {"alpha": 0.5}, {"alpha": 1.5})}}
        if name in ("$linearFill", "$locf"):
            return {name: self.pick("$n", "$" + self.plain_path())}
        if name in ("$firstN", "$maxN"):
            function = {name: {"input": self.expression(1), "n": self.pick(1, 2)}}
        elif name in ("$top", "$bottomN"):
            function = {name: {"sortBy": {"n": 1, "_id": -1}, "output": self.expression(1), **({"n": 2} if name == "$bottomN" else {})}}
        elif name.startswith("$cov"):
            function = {name: ["$n", self.expression(1, "n")]}
        elif name in ("$derivative", "$integral"):
            function = {name: {"input": "$n", **self.pick({}, {"unit": self.pick("day", "hour", "month")})}}
        else:
            function = {name: {} if name == "$count" else self.expression(1, "n" if name in WINDOW_NUMBERS else "x")}
        if self.chance(0.7):
            function["window"] = self.bounds()
        return function

    def bounds(self) -> dict:
        low, high = sorted((self.random.randint(-3, 3), self.random.randint(-3, 3)))
        low, high = self.pick(low, "unbounded", low), self.pick(high, "current", "unbounded")
        return self.pick({"documents": [low, high]}, {"documents": [low, high]}, {"range": [low, high]},
            {"range": [low, high], "unit": self.pick("day", "month", "year")})

    # --- gaps

    def densify(self) -> dict:
        if self.chance(0.3):
            bounds = self.pick([DatetimeMS(-2_300_000_000_000), DatetimeMS(1_609_459_199_999)], "full", "partition")
            unit = self.pick("year", "quarter") if isinstance(bounds, list) else "year"
            spec = {"field": "d", "range": {"step": self.pick(1, 3), "unit": unit, "bounds": bounds}}
        else:
            spec = {"field": "n", "range": {"step": self.pick(1, 2, 0.5, 5), "bounds": self.pick("full", "partition", [-10, 4], [-12.5, 3])}}
        if self.chance(0.5) or spec["range"]["bounds"] == "partition":
            spec["partitionByFields"] = self.pick(["a"], ["a", "b"], ["c.a"], ["s"])
        return {"$densify": spec}

    def fill(self) -> dict:
        methods = [{"method": "locf"}, {"method": "linear"}, {"value": self.expression(1)}]
        spec = {"output": {self.pick("n", "a", "d", "c.a"): self.pick(*methods) for _ in range(self.pick(1, 2))}, "sortBy": self.full_sort()}
        if self.chance(0.4):
            spec.update(self.pick({"partitionBy": "$a"}, {"partitionByFields": ["b"]}, {"partitionBy": {"x": "$s"}}))
        return {"$fill": spec}

    # --- other collections

    def graph(self) -> dict:
        spec = {"from": self.pick("other", "c", "c"), "startWith": self.pick("$n", "$l", "$a", self.expression(1)),
            "connectFromField": self.pick("l", "n", "a", self.plain_path()), "connectToField": self.pick("_id", "_id", "n", self.plain_path()),
            "as": "g"}
        if self.chance(0.5):
            spec["maxDepth"] = self.pick(0, 1, 2)
        if self.chance(0.4):
            spec["depthField"] = "depth"
        if self.chance(0.3):
            spec["restrictSearchWithMatch"] = self.filter(0)
        return {"$graphLookup": spec}

    def joined(self) -> dict:
        """`$lookup` with variables in several places of its pipeline."""
        variable = self.pick("$$v", "$$w")
        stages = [self.pick({"$match": {"$expr": {self.pick("$eq", "$gt", "$in", "$ne"): ["$" + self.plain_path(), variable]}}},
            {"$addFields": {"k": variable}}, {"$match": {"$expr": {"$and": [{"$gte": ["$n", "$$v"]}, self.expression(1, "b")]}}},
            {"$project": {"k": {"$concatArrays": ["$l", [variable]]}}}, {"$match": self.filter(0)})]
        spec = {"from": self.pick("other", "other", "c"), "let": {"v": self.expression(1), "w": "$" + self.plain_path()},
            "pipeline": [*stages, {"$sort": {"_id": 1}}, *self.pick([], [{"$limit": 2}], [self.window()])], "as": "j"}
        if self.chance(0.3):
            spec.update(localField=self.pick("n", "l", "a"), foreignField=self.pick("n", "l", "a", "_id"))
        return {"$lookup": spec}

    def union_of(self) -> dict:
        return {"$unionWith": {"coll": self.pick("other", "c"), "pipeline": [{"$match": self.filter(0)},
            {"$addFields": {"a": self.expression(1)}}]}}

    def written(self) -> list:
        """A pipeline that ends with a write."""
        into = self.pick("other", "other", "new", "c")
        if self.chance(0.2):
            return [*self.some(lambda: Pipelines.stage(self, True), 0, 2), {"$sort": {"_id": 1}}, {"$out": into}]
        spec = {"into": into}
        if self.chance(0.7):
            spec["whenMatched"] = self.pick("replace", "keepExisting", "merge", "fail", [{"$set": {"x": "$$new.n", "a": "$a"}}],
                [{"$addFields": {"y": "$$v"}}])
        if "$$v" in str(spec):
            spec["let"] = {"v": self.expression(1)}
        if self.chance(0.5):
            spec["whenNotMatched"] = self.pick("insert", "discard", "fail")
        changes = self.some(lambda: self.pick({"$addFields": {self.plain_path(): self.expression(1)}}, {"$unset": self.name()},
            {"$match": self.filter(0)}, {"$addFields": {"_id": self.pick("$n", {"$add": ["$_id", 1]}, "$s")}}), 0, 2)
        return [{"$sort": {"_id": 1}}, *changes, {"$merge": spec}]

    # --- schemas

    def schema(self) -> dict:
        return {"$match": {"$jsonSchema": self.json_schema(2)}}

    def json_schema(self, depth: int) -> dict:
        result = {}
        for _ in range(self.pick(1, 1, 2, 3)):
            result.update(self.keyword(depth))
        return result

    def keyword(self, depth: int) -> dict:
        r = self.random
        options = [
            lambda: {"bsonType": self.pick("int", "string", "object", "array", "number", "double", "date", "bool", ["null", "decimal"])},
            lambda: {"required": self.some(self.name, 1, 2)}, lambda: {"type": self.pick("number", "string", "object", "array", ["boolean", "null"])},
            lambda: {"minimum": self.number(), **self.pick({}, {"exclusiveMinimum": True})}, lambda: {"maximum": self.number()},
            lambda: {"minLength": r.randint(0, 3)}, lambda: {"maxLength": r.randint(0, 3)}, lambda: {"pattern": self.pick("a", "^b", ".é")},
            lambda: {"minItems": r.randint(0, 3)}, lambda: {"maxItems": r.randint(0, 3)}, lambda: {"uniqueItems": self.chance(0.8)},
            lambda: {"minProperties": r.randint(0, 6)}, lambda: {"maxProperties": r.randint(0, 6)}, lambda: {"multipleOf": self.pick(1, 2, 0.5)},
            lambda: {"enum": self.some(lambda: self.value(1), 1, 3)},
        ]
        if depth:
            inner = lambda: self.json_schema(depth - 1)
            options += [
                lambda: {"properties": {self.name(): inner() for _ in range(self.pick(1, 2))}}, lambda: {"not": inner()},
                lambda: {self.pick("allOf", "anyOf", "oneOf"): [inner(), inner()]}, lambda: {"items": self.pick(inner(), [inner(), inner()])},
                lambda: {"additionalItems": self.pick(False, inner()), "items": [inner()]},
                lambda: {"additionalProperties": self.pick(False, inner()), "properties": {self.name(): {}, "_id": {}}},
                lambda: {"patternProperties": {self.pick("^[a-c]$", "s"): inner()}},
                lambda: {"dependencies": {self.name(): self.pick([self.name()], inner())}},
                lambda: {"properties": {self.name(): inner()}}, lambda: {"properties": {self.name(): inner()}},
            ]
        return self.pick(*options)()
