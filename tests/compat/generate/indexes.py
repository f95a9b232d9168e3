"""Random indexes, and commands whose answers may not depend on them.

An index changes the order of unsorted results; such commands are marked (`ANY_ORDER`), and commands
that select documents by their order are not generated.
"""

from compat.case import COLLECTION
from compat.compare import ANY_ORDER
from compat.generate.stages import Stages

COLLATIONS = (
    {"locale": "en", "strength": 1}, {"locale": "en", "strength": 2}, {"locale": "fr", "strength": 2, "caseLevel": True},
    {"locale": "en", "numericOrdering": True}, {"locale": "en", "strength": 3, "caseFirst": "upper"}, {"locale": "simple"},
    {"locale": "en", "alternate": "shifted", "strength": 2}, {"locale": "fr_CA", "strength": 2, "backwards": True},
)
PLACES = ({"type": "Point", "coordinates": [1, 2]}, {"type": "Point", "coordinates": [10.5, -3]}, [1, 2], [0, 0],
    {"type": "LineString", "coordinates": [[0, 0], [3, 3]]}, {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]},
    {"type": "Point", "coordinates": [179, 1]}, {"type": "Point", "coordinates": [-179, 1]}, {"type": "MultiPoint", "coordinates": [[1, 1], [9, 9]]})
WORDS = ("red fish", "blue Fish", "the running dogs", "run", "RED", "bluefish and dog", "é")


class Indexes(Stages):
    def collation(self) -> dict:
        return self.pick(*COLLATIONS)

    def geo_filter(self) -> dict:
        area = self.pick({"$geometry": {"type": "Polygon", "coordinates": [[[-1, -1], [5, -1], [5, 5], [-1, 5], [-1, -1]]]}},
            {"$centerSphere": [[1, 2], self.pick(0.001, 0.1, 1)]}, {"$geometry": {"type": "Polygon",
                "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]]}})
        return self.pick({"g": {"$geoWithin": area}}, {"g": {"$geoIntersects": {"$geometry": self.pick(*PLACES[:2], PLACES[5])}}},
            {"g": {"$geoWithin": {"$box": [[-1, -1], [5, 5]]}}}, {"g": {"$geoWithin": {"$center": [[1, 2], 3]}}})

    def placed_documents(self, least: int, most: int) -> list:
        """Documents with places and with words, most of them."""
        documents = self.documents(least, most)
        for document in documents:
            if self.chance(0.6):
                document["g"] = self.pick(*PLACES)
            if self.chance(0.6):
                document["t"] = self.pick(*WORDS)
        return documents

    # --- indexes

    def indexes(self, unique: bool = False) -> list[dict]:
        """The commands that make some; each by itself, since any may be refused."""
        return [{"createIndexes": COLLECTION, "indexes": [self.index(f"i{number}", unique)]} for number in range(self.pick(1, 2, 3))]

    def index(self, name: str, unique: bool) -> dict:
        if self.chance(0.15):
            special = self.pick({"g": "2dsphere"}, {"g": "2dsphere", "n": 1}, {"t": "text"}, {"a": "hashed"}, {"n": "hashed"}, {"b.a": "hashed"})
            return {"key": special, "name": name}
        if not unique and self.chance(0.1):
            return {"key": self.pick({"$**": 1}, {"a.$**": 1}), "name": name}
        index = {"key": {self.index_path(): self.pick(1, -1) for _ in range(self.pick(1, 1, 1, 2, 2, 3))}, "name": name}
        kind = self.pick("plain", "plain", "plain", "sparse", "partial", "collation")
        if kind == "sparse":
            index["sparse"] = True
        elif kind == "partial":
            index["partialFilterExpression"] = self.partial()
        elif kind == "collation":
            index["collation"] = self.collation()
        if unique and self.chance(0.3):
            index["unique"] = True
        return index

    def index_path(self) -> str:
        return self.pick(self.name(), self.name(), self.plain_path(), self.path(), "_id")

    def partial(self) -> dict:
        test = lambda: self.pick({"$exists": True}, {self.pick("$gt", "$gte", "$lt", "$lte", "$eq"): self.scalar()},
            {"$type": self.pick("number", "string", "int")}, self.scalar())
        return {self.index_path(): test() for _ in range(self.pick(1, 1, 2))}

    # --- commands

    def indexed(self) -> dict:
        command = self.pick(self.indexed_find, self.indexed_find, self.indexed_find, self.indexed_count, self.indexed_distinct,
            self.indexed_pipeline)()
        if self.chance(0.2):
            command["collation"] = self.collation()
        return command

    def indexed_filter(self) -> dict:
        if self.chance(0.08):
            return {**self.geo_filter(), **self.pick({}, self.filter(0))}
        if self.chance(0.05):
            return {"$text": {"$search": self.pick("fish", "dog run", "\"red fish\"", "red -blue", "FISH")}, **self.pick({}, self.filter(0))}
        return self.filter(self.pick(0, 1, 2))

    def indexed_find(self) -> dict:
        command = {"find": COLLECTION, "filter": self.indexed_filter(), "batchSize": 1000}
        if self.chance(0.5):
            command["sort"] = self.full_sort()
            command.update(self.pick({}, {}, {"limit": self.random.randint(1, 4)}, {"skip": self.random.randint(0, 4)}))
        else:
            command["comment"] = ANY_ORDER
            if self.chance(0.05):
                command["filter"] = {"g": {self.pick("$near", "$nearSphere"): {"$geometry": PLACES[0],
                    **self.pick({}, {"$maxDistance": 500_000}, {"$minDistance": 1000})}}}
        if self.chance(0.3):
            command["projection"] = self.pick({self.name(): 1, "_id": 0}, {self.plain_path(): 1, "_id": 0}, {"a": 1}, self.projection())
        return command

    def indexed_count(self) -> dict:
        return {"count": COLLECTION, "query": self.indexed_filter()}

    def indexed_distinct(self) -> dict:
        return {"distinct": COLLECTION, "key": self.index_path(), "query": self.pick({}, self.filter(0)), "comment": ANY_ORDER}

    def indexed_pipeline(self) -> dict:
        first = self.pick([], [{"$match": self.filter(1)}])
        pipeline = self.pick(
            lambda: [*first, {"$sort": self.full_sort()}, *self.pick([], [{"$limit": 3}], [{"$skip": 2}])],
            lambda: [*first, {"$group": {"_id": "$" + self.plain_path(), "n": {"$sum": 1}}}],
            lambda: [*first, {"$lookup": {"from": COLLECTION, "as": "j", "localField": self.plain_path(), "foreignField": self.index_path()}}],
            lambda: [*first, {"$graphLookup": {"from": COLLECTION, "as": "g", "startWith": "$n", "connectFromField": "l",
                "connectToField": self.index_path()}}],
            lambda: [*first, {"$project": {self.plain_path(): 1, "_id": 0}}],
        )()
        return {"aggregate": COLLECTION, "pipeline": pipeline, "cursor": {"batchSize": 1000}, "comment": ANY_ORDER}
