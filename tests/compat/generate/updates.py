"""Random updates, their filters and their array filters."""

from bson import Int64

from compat.generate.indexes import Indexes
from compat.generate.values import MIXED


class Updates(Indexes):
    def update_path(self, dynamic: bool = True) -> str:
        parts = [self.pick(self.name(), self.name(), "x", "0")]
        while self.chance(0.35) and len(parts) < 4:
            parts.append(self.pick("$[]", "$[e]", "$") if dynamic and self.chance(0.3) else self.pick(*MIXED, "0", "1", "5"))
        if self.chance(0.02):
            parts.insert(0, "_id")
        return ".".join(parts)

    def update(self):
        if self.chance(0.12):
            return self.some(self.update_stage, 0, 3)
        if self.chance(0.08):
            replacement = self.document(1)
            if self.chance(0.6):
                del replacement["_id"]
            return replacement
        result = {}
        for _ in range(self.pick(1, 1, 1, 2, 3)):
            name = self.pick("$set", "$unset", "$inc", "$mul", "$min", "$max", "$setOnInsert", "$push", "$addToSet", "$pull", "$pullAll",
                "$pop", "$rename", "$bit", "$push")
            result[name] = {self.fitting_path(name): self.argument(name) for _ in range(self.pick(1, 1, 2))}
        return result

    def fitting_path(self, name: str) -> str:
        """A path to what the operator works on, more often than chance would have it."""
        if name in ("$inc", "$mul", "$bit") and self.chance(0.5):
            return self.pick("n", "l.0", "l.$[]", "l.$[e]", "new")
        if name in ("$push", "$addToSet", "$pull", "$pullAll", "$pop") and self.chance(0.6):
            return self.pick("l", "l", "a", "b", "new")
        return self.update_path()

    def argument(self, name: str):
        if name in ("$inc", "$mul"):
            return self.number() if self.chance(0.9) else self.scalar()
        if name == "$push":
            return self.push()
        if name == "$addToSet":
            return self.pick(self.value(1), {"$each": self.some(lambda: self.value(1), 0, 3)})
        if name == "$pull":
            return self.pick(self.condition(1), {self.pick(*MIXED): self.condition(0)}, self.value(1))
        if name == "$pullAll":
            return self.pick(self.numbers(), [self.value(1), self.value(1)], self.scalar())
        if name == "$pop":
            return self.pick(1, -1, 1, -1, 2, "x", 1.0, Int64(-1))
        if name == "$rename":
            return self.update_path(dynamic=False)
        if name == "$bit":
            return {self.pick("and", "or", "xor"): self.pick(1, 5, Int64(6), 1.5)}
        return self.value()

    def push(self):
        if self.chance(0.3):
            return self.value()
        clauses = {"$each": self.some(lambda: self.value(1), 0, 3)}
        if self.chance(0.4):
            clauses["$slice"] = self.pick(0, 1, 2, -1, -2, 5, 2.0, Int64(3), "x")
        if self.chance(0.4):
            clauses["$position"] = self.pick(0, 1, -1, 9, -9, 1.0)
        if self.chance(0.4):
            clauses["$sort"] = self.pick(1, -1, {"a": 1}, {"a": -1, "b": 1}, {"a.b": 1}, {"0": 1}, 3)
        return clauses

    def update_stage(self) -> dict:
        return self.pick(
            {self.pick("$set", "$addFields"): {self.plain_path(): self.expression(2)}},
                {"$unset": self.pick(self.plain_path(), "_id", ["a", "n"])},
            self.project(), self.root(), {"$match": {}} if self.chance(0.1) else {"$set": {"x": "$a"}},
        )

    def upsert_filter(self) -> dict:
        result = {}
        for _ in range(self.random.randint(0, 2)):
            name = self.pick("a", "b", "c", "_id", "a.b", "x.y", "x.y.z", "x")
            result[name] = self.pick(self.value(1), {"$eq": self.value(1)}, {"$in": [self.scalar()]}, self.condition(1),
                {"$all": [self.scalar()]})
        if self.chance(0.2):
            return {self.pick("$and", "$or"): [result or {"q": 1}, {"b": 1}][: self.pick(1, 2)]}
        return result

    def statement(self) -> dict:
        update = self.update()
        statement = {"q": self.pick({}, {"_id": self.random.randint(0, 3)}, self.filter(1)), "u": update}
        if isinstance(update, list) or any(name.startswith("$") for name in update):
            statement["multi"] = self.chance(0.5)
        if "$[e]" in repr(update) and self.chance(0.95):
            statement["arrayFilters"] = [self.pick({"e": self.condition(0)}, {"e." + self.pick(*MIXED): self.condition(0)},
                {"$or": [{"e": self.scalar()}, {"e.a": self.scalar()}]})]
        if self.chance(0.2):
            statement.update(q=self.upsert_filter(), upsert=True)
        return statement
