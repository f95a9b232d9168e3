"""Server parameters that change the server's behavior. They are reset at the end."""

from bson import Int64

from compat.case import script
from compat.cases.scripts import admin


def setting(**parameters):
    return admin({"setParameter": 1, **parameters})


def getting(*names):
    return admin({"getParameter": 1, **{name: 1 for name in names}})


STATEMENT = {"q": {"a": 1}, "u": {"$set": {"b": 1}}}

BLOCKS = [
    script(
        "parameters: logLevel",
        getting("logLevel"), *(setting(logLevel=level) for level in (1, 1.5, 9, "x", -1, None, True, {}, 0)), getting("logLevel"), getting("logComponentVerbosity"),
        *(setting(logComponentVerbosity=levels) for levels in (
            {"query": {"verbosity": 2}}, {"query": 3, "verbosity": 0}, {"storage": {"journal": {"verbosity": 1}, "wt": {"wtBackup": 2}}}, {"nope": 1}, {"query": {"nope": 1}}, {"query": "x"},
            {"query": {"verbosity": "x"}}, {"verbosity": "x"}, {"verbosity": 2}, {"query": True}, {"query": 11}, {"query": -5}, {}, 1, "x", None)),
        getting("logComponentVerbosity", "logLevel"), setting(logComponentVerbosity={"verbosity": 0, "query": -1, "storage": {"journal": -1, "wt": {"wtBackup": -1}}}),
        getting("logComponentVerbosity")),
    script(
        "parameters: notablescan", {"insert": "c", "documents": [{"_id": number, "a": number} for number in range(9)]}, setting(notablescan=True), getting("notablescan"),
        *({"find": "c", **options} for options in (
            {}, {"filter": {"a": 1}}, {"filter": {"_id": 1}}, {"sort": {"_id": -1}}, {"sort": {"a": -1}}, {"sort": {"$natural": -1}}, {"hint": {"$natural": 1}}, {"filter": {"$expr": {"$eq": ["$a", 1]}}})),
        {"count": "c"}, {"count": "c", "query": {"a": 1}}, {"distinct": "c", "key": "a"}, {"distinct": "c", "key": "a", "query": {"a": 1}}, {"find": "none", "filter": {"a": 1}},
        *({"aggregate": "c", "pipeline": pipeline, "cursor": {}} for pipeline in ([], [{"$match": {"a": 1}}], [{"$group": {"_id": None}}])),
        {"update": "c", "updates": [STATEMENT]}, {"update": "c", "updates": [{**STATEMENT, "q": {"_id": 1}}]}, {"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 1}]},
        {"findAndModify": "c", "query": {"a": 3}, "remove": True}, {"explain": {"find": "c", "filter": {"a": 1}}}, {"explain": {"count": "c", "query": {"a": 1}}},
        {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}, {"find": "c", "filter": {"a": 1}}, {"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 1}]},
        setting(notablescan=0), {"find": "c", "filter": {"b": 1}}, messages=False),
    script(
        "parameters: expiry",
        *(command for name, values in {"ttlMonitorSleepSecs": (1, 0, -1, 2.5, True, "x", None, Int64(2**40), {}, 60), "ttlMonitorEnabled": (False, "x", None, 0, True)}.items()
          for value in values for command in (setting(**{name: value}), getting(name))),
        *(admin({"getParameter": {"showDetails": True}, name: 1}) for name in ("logLevel", "notablescan", "ttlMonitorSleepSecs", "ttlMonitorEnabled", "logComponentVerbosity"))),
]
