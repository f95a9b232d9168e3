"""Random commands: what `__init__` mixes."""

from compat.case import COLLECTION
from compat.generate.updates import Updates


class Commands(Updates):
    def find(self) -> dict:
        command = {"find": COLLECTION, "filter": self.filter(), "batchSize": 1000}
        if self.chance(0.3):
            command["sort"] = self.full_sort()
        if self.chance(0.3):
            command["projection"] = self.projection()
        if self.chance(0.1):
            command["limit"] = self.random.randint(0, 5)
        if self.chance(0.1):
            command["skip"] = self.random.randint(0, 5)
        return command

    def filter_command(self) -> dict:
        return {"find": COLLECTION, "filter": self.filter(), "batchSize": 1000}

    def sort_command(self) -> dict:
        return {"find": COLLECTION, "sort": self.sort(), "batchSize": 1000}

    def projection_command(self) -> dict:
        return {"find": COLLECTION, "filter": self.filter(0) if self.chance(0.4) else {}, "projection": self.projection(),
            "batchSize": 1000}

    def expression_command(self) -> dict:
        """One document, so that an error of one does not hide the others."""
        return {"find": COLLECTION, "filter": {"_id": self.random.randint(0, 9)}, "projection": {"_id": 1, "r": self.expression(3)}}

    def aggregate(self) -> dict:
        return {"aggregate": COLLECTION, "pipeline": self.pipeline(), "cursor": {"batchSize": 1000}}

    def count(self) -> dict:
        command = {"count": COLLECTION, "query": self.filter()}
        if self.chance(0.3):
            command[self.pick("limit", "skip")] = self.random.randint(0, 5)
        return command

    def distinct(self) -> dict:
        return {"distinct": COLLECTION, "key": self.path(), **self.pick({}, {"query": self.filter(1)})}

    # --- writes

    def update_command(self) -> dict:
        return {"update": COLLECTION, "updates": self.some(self.statement, 1, 2), **self.pick({}, {"ordered": False})}

    def delete(self) -> dict:
        return {"delete": COLLECTION, "deletes": [{"q": self.filter(1), "limit": self.pick(0, 1)}]}

    def find_and_modify(self) -> dict:
        command = {"findAndModify": COLLECTION, "query": self.pick({}, {"_id": 1}, self.filter(1)), "sort": self.full_sort()}
        if self.chance(0.3):
            command["remove"] = True
        else:
            statement = self.statement()
            command["update"] = statement["u"]
            command.update({name: statement[name] for name in ("arrayFilters", "upsert") if name in statement})
            command["new"] = self.chance(0.5)
        if self.chance(0.3):
            command["fields"] = self.projection()
        return command

    def insert(self) -> dict:
        return {"insert": COLLECTION, "documents": [self.document(self.pick(1, 7, 8, self.scalar())) for _ in range(self.pick(1, 2))],
            **self.pick({}, {"ordered": False})}


READS = {
    "filter": Commands.filter_command, "sort": Commands.sort_command, "projection": Commands.projection_command,
        "expression": Commands.expression_command,
    "pipeline": Commands.aggregate, "find": Commands.find, "count": Commands.count, "distinct": Commands.distinct,
}
READ_WEIGHTS = [20, 6, 12, 26, 26, 5, 3, 4]
WRITES = {
    "update": Commands.update_command, "delete": Commands.delete, "findAndModify": Commands.find_and_modify, "insert": Commands.insert,
}
WRITE_WEIGHTS = [75, 7, 15, 3]
