"""Random pipelines."""

from compat.generate.expressions import Expressions
from compat.generate.values import MIXED

GRANULARITIES = ("R5", "R10", "R20", "R40", "R80", "1-2-5", "E6", "E12", "E24", "E48", "E96", "E192", "POWERSOF2")

# Stages whose results depend on the order that they find, and stages that leave none.
PICKY = ("$limit", "$skip", "$group", "$bucketAuto", "$facet", "$bucket", "$lookup", "$unwind", "$setWindowFields", "$fill", "$graphLookup", "$merge")
OPEN = ("$group", "$sortByCount", "$unionWith", "$densify")


def depends_on_open_order(pipeline: list) -> bool:
    """Returns whether a stage selects documents by an order that an earlier one does not define."""
    opened = False
    for stage in pipeline:
        name = next(iter(stage))
        if name == "$facet" and any(depends_on_open_order(inner) for inner in stage["$facet"].values()):
            return True
        if name == "$sort":
            opened = opened and "_id" not in stage["$sort"]
        if opened and name in PICKY or opened and name == "$sort":
            return True
        opened |= name in OPEN
    return False


class Pipelines(Expressions):
    def pipeline(self) -> list:
        while True:
            pipeline = self.some(self.stage, 1, 4)
            if not depends_on_open_order(pipeline):
                return pipeline

    def stage(self, inner: bool = False) -> dict:
        r = self.random
        name = self.pick(
            "match", "match", "project", "project", "group", "group", "unwind", "unwind", "sort", "limit", "skip", "fields", "fields",
                "unset", "root",
            "count", "bucket", "bucket_auto", "sort_by_count", "redact", "lookup", "union", "facet",
        )
        if inner and name in ("facet", "lookup", "union"):
            name = "project"
        simple = {
            "match": lambda: {"$match": self.filter(1)},
            "sort": lambda: {"$sort": self.full_sort()},
            "limit": lambda: {"$limit": r.randint(1, 5)},
            "skip": lambda: {"$skip": r.randint(0, 3)},
            "fields": lambda: {self.pick("$addFields", "$set"): {self.plain_path(): self.expression(2) for _ in range(self.pick(1, 2))}},
            "unset": lambda: {"$unset": self.pick(self.plain_path(), [self.plain_path(), self.plain_path()])},
            "count": lambda: {"$count": "n"},
            "sort_by_count": lambda: {"$sortByCount": "$" + self.plain_path()},
            "facet": lambda: {"$facet": {name: self.some(lambda: self.stage(inner=True), 0, 2) for name in self.pick(["p"], ["p", "q"])}},
        }
        return simple[name]() if name in simple else getattr(self, name)()

    def project(self) -> dict:
        names = r_names = [self.pick(self.name(), self.plain_path(), "_id") for _ in range(self.random.randint(1, 3))]
        if self.chance(0.3):
            return {"$project": {name: self.pick(0, False) for name in r_names}}
        return {"$project": {name: self.pick(1, True,
            1) if self.chance(0.5) else (0 if name == "_id" else self.expression(2)) for name in names}}

    def accumulator(self) -> dict:
        name = self.pick(
            "$sum", "$avg", "$min", "$max", "$first", "$last", "$push", "$count", "$stdDevPop", "$stdDevSamp", "$mergeObjects", "$firstN",
                "$lastN",
            "$minN", "$maxN", "$top", "$bottom", "$topN", "$bottomN", "$addToSet",
        )
        if name == "$count":
            return {name: {}}
        if name in ("$firstN", "$lastN", "$minN", "$maxN"):
            return {name: {"input": self.expression(1), "n": self.pick(1, 2, 3, 2.0, 0)}}
        if name.startswith(("$top", "$bottom")):
            argument = {"sortBy": {self.name(): self.pick(1, -1), "_id": 1}, "output": self.expression(1)}
            return {name: {**argument, "n": self.pick(1, 2, 3)} if name.endswith("N") else argument}
        wanted = "n" if name in ("$sum", "$avg", "$stdDevPop", "$stdDevSamp") else "o" if name == "$mergeObjects" else "x"
        return {name: self.pick(1, 2.5, None) if self.chance(0.15) else self.expression(1, wanted)}

    def group(self) -> dict:
        key = None if self.chance(0.2) else self.expression(1)
        return {"$group": {"_id": key, **{f"f{number}": self.accumulator() for number in range(self.random.randint(0, 3))}}}

    def bucket(self) -> dict:
        boundaries = sorted(self.random.sample([-1, 0, 1, 2, 3, 5, 8], self.pick(2, 3)))
        spec = {"groupBy": "$" + self.pick("n", "_id", self.plain_path()), "boundaries": boundaries}
        if self.chance(0.7):
            spec["default"] = self.pick("other", -3, 9)
        if self.chance(0.3):
            spec["output"] = {"n": self.accumulator()}
        return {"$bucket": spec}

    def bucket_auto(self) -> dict:
        spec = {"groupBy": "$" + self.pick("_id", "_id", "n", self.plain_path()), "buckets": self.pick(1, 2, 3, 5, 20)}
        if self.chance(0.2):
            spec["granularity"] = self.pick(*GRANULARITIES)
        if self.chance(0.2):
            spec["output"] = {"m": self.accumulator()}
        return {"$bucketAuto": spec}

    def unwind(self) -> dict:
        path = "$" + self.pick("l", "a", "b", self.plain_path())
        if self.chance(0.5):
            return {"$unwind": path}
        spec = {"path": path, "preserveNullAndEmptyArrays": self.chance(0.5)}
        if self.chance(0.5):
            index = self.pick("i", "a.i", "b")
            # An index within the unwound array, or the reverse, can crash MongoDB (signal 11).
            spec["includeArrayIndex"] = index if index[0] != path[1] else "i"
        return {"$unwind": spec}

    def root(self) -> dict:
        value = self.pick({"$ifNull": ["$" + self.plain_path(), {"none": 1}]}, {"x": self.expression(1)},
            {"$mergeObjects": ["$$ROOT", {"z": 1}]}, "$o")
        return self.pick({"$replaceWith": value}, {"$replaceRoot": {"newRoot": value}})

    def redact(self) -> dict:
        test = {self.pick("$gt", "$eq", "$ne"): ["$" + self.name(), self.scalar()]}
        return {"$redact": {"$cond": [test, self.pick("$$DESCEND", "$$PRUNE"), self.pick("$$KEEP", "$$DESCEND")]}}

    def lookup(self) -> dict:
        spec = {"from": self.pick("other", "other", "nothing"), "as": self.pick("j", "a.j", "b")}
        if self.chance(0.7):
            spec.update(localField=self.pick(self.plain_path(), *MIXED, "n"), foreignField=self.pick("_id", "a", "n", self.plain_path()))
        if "localField" not in spec or self.chance(0.3):
            spec["pipeline"] = [self.pick({"$match": self.filter(0)}, {"$match": {"$expr": {"$eq": ["$n", "$$v"]}}}),
                {"$sort": {"_id": 1}}][: self.pick(1, 2)]
            spec["let"] = {"v": "$" + self.name()}
        return {"$lookup": spec}

    def union(self) -> dict:
        return {"$unionWith": self.pick("other", {"coll": "other", "pipeline": [{"$match": self.filter(0)}]}, "nothing")}
