"""Random commands: what `__init__` mixes."""

from compat.case import COLLECTION
from compat.compare import ANY_ORDER
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

    def collated(self) -> dict:
        command = self.pick(self.find, self.find, self.sort_command, self.aggregate, self.count, self.distinct)()
        return {**command, "collation": self.collation()}

    def of_view(self) -> dict:
        command = self.pick(self.find, self.filter_command, self.aggregate, self.count, self.distinct)()
        if "distinct" in command:
            # MongoDB reads them out of a set.
            command["comment"] = ANY_ORDER
        return {**command, next(iter(command)): "v"}

    def view(self) -> list[dict]:
        """The commands that make the view `v` another one."""
        return [{"drop": "v"}, {"create": "v", "viewOn": COLLECTION, "pipeline": self.some(lambda: self.stage(inner=True), 0, 2),
            **({"collation": self.collation()} if self.chance(0.2) else {})}]

    # --- writes

    def update_command(self) -> dict:
        return {"update": COLLECTION, "updates": self.some(self.statement, 1, self.pick(1, 2, 4)), **self.pick({}, {"ordered": False})}

    def delete(self) -> dict:
        deletes = self.some(lambda: {"q": self.filter(1), "limit": self.pick(0, 1)}, 1, self.pick(1, 3))
        return {"delete": COLLECTION, "deletes": deletes, **self.pick({}, {"ordered": False})}

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


    def collated_write(self) -> dict:
        command = self.pick(self.update_command, self.delete, self.find_and_modify)()
        for statement in command.get("updates", command.get("deletes", [command])):
            statement["collation"] = self.collation()
        return command

    def written_pipeline(self) -> dict:
        return {"aggregate": COLLECTION, "pipeline": self.written(), "cursor": {}}

    def indexed_write(self) -> dict:
        """One that does the same to documents in any order."""
        command = self.pick(self.update_command, self.update_command, self.delete, self.find_and_modify)()
        for statement in command.get("updates", ()):
            several = isinstance(statement["u"], list) or next(iter(statement["u"]), "").startswith("$")
            if several and not statement.get("upsert"):
                statement["multi"] = True
            else:
                statement["q"] = {"_id": self.random.randint(0, 3)}
        for statement in command.get("deletes", ()):
            statement["limit"] = 0
        return command


READS = {
    "filter": Commands.filter_command, "sort": Commands.sort_command, "projection": Commands.projection_command,
        "expression": Commands.expression_command,
    "pipeline": Commands.aggregate, "find": Commands.find, "count": Commands.count, "distinct": Commands.distinct,
    "collated": Commands.collated, "view": Commands.of_view, "indexed": Commands.indexed,
}
READ_WEIGHTS = [18, 5, 10, 20, 26, 4, 3, 3, 6, 5, 20]
WRITES = {
    "update": Commands.update_command, "delete": Commands.delete, "findAndModify": Commands.find_and_modify, "insert": Commands.insert,
    "collated write": Commands.collated_write, "merge": Commands.written_pipeline, "indexed write": Commands.indexed_write,
}
WRITE_WEIGHTS = [60, 7, 13, 3, 5, 8, 14]

# The other options of the collection for these commands.
SETUPS = {
    "view": Commands.view, "indexed": Commands.indexes, "indexed write": lambda commands: commands.indexes(unique=True),
}
