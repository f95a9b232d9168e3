"""Commands for the operation of a server."""

from bson import Binary

from compat.case import script
from compat.cases.scripts import admin

CODE = {"map": "function() { emit(1, 1) }", "reduce": "function(key, values) { return 1 }"}

BLOCKS = [
    script("commands: top", {"top": 1}, {"top": "x"}, {"top": 1, "writeConcern": {"w": 1}}, admin({"top": 1, "writeConcern": {"w": 1}})),
    script(
        "commands: plan cache",
        {"create": "a"},
        *({name: "a", **options} for name in ("planCacheClear", "planCacheClearFilters") for options in (
            {}, {"query": {"x": 1}}, {"query": {"x": 1}, "sort": {"x": 1}, "projection": {"x": 1}}, {"query": {}})),
        {"planCacheClear": "a", "query": 1}, {"planCacheClear": "a", "query": {"x": {"$foo": 1}}},
        {"planCacheClear": "a", "sort": {"x": 1}}, {"planCacheClear": "none"}, {"planCacheClear": 1},
        {"planCacheListFilters": "a"}, {"planCacheListFilters": "none"}, {"planCacheListFilters": 1},
        *({"aggregate": "a", "pipeline": pipeline, "cursor": {}} for pipeline in (
            [{"$planCacheStats": {}}], [{"$planCacheStats": {}}, {"$count": "n"}], [{"$planCacheStats": 1}],
            [{"$planCacheStats": {"x": 1}}], [{"$match": {}}, {"$planCacheStats": {}}])),
    ),
    script(
        "commands: index filters",
        {"planCacheSetFilter": "a", "query": {}, "indexes": ["x"]}, {"planCacheSetFilter": "a"}, {"planCacheSetFilter": 1}, {"planCacheSetFilter": ""},
        {"create": "a"}, {"createIndexes": "a", "indexes": [{"key": {name: 1}, "name": f"{name}_1"} for name in "xy"]}, {"create": "v", "viewOn": "a", "pipeline": []},
        {"planCacheSetFilter": "v", "query": {}, "indexes": ["x"]}, {"planCacheSetFilter": "v"},
        *({"planCacheSetFilter": "a", **options} for options in (
            {}, {"query": 1}, {"query": {}}, {"indexes": ["x_1"]}, {"sort": {"x": 1}, "indexes": ["x_1"]}, {"query": None, "indexes": ["x_1"]}, {"query": [1], "indexes": ["x_1"]},
            *({"query": {}, "indexes": indexes} for indexes in (1, None, {"0": "x_1"}, [], [1], [""], [{}], ["zz", {}], ["nope"], [{"nope": 1}])))),
        *({"planCacheSetFilter": "a", "indexes": ["x_1"], "query": {"x": 1}, **options} for options in (
            {"query": {"$foo": 1}}, {"sort": 1}, {"sort": {"x": 5}}, {"projection": 1}, {"projection": {"x": 1, "y": 0}}, {"collation": 1}, {"collation": {"locale": "zz"}},
            {"indexes": [{"x": 5}]}, {"indexes": [{"x": "y"}]}, {"unknown": 1}, {"query": {"$text": {"$search": "x"}}})),
        {"planCacheClearFilters": "a"}, {"planCacheListFilters": "a"},
        {"planCacheSetFilter": "a", "query": {"x": 1}, "indexes": ["y_1"]}, {"planCacheListFilters": "a"},
        {"planCacheSetFilter": "a", "query": {"x": "other"}, "indexes": ["x_1", {"y": 1}, {"x": 1}, "x_1", {"y": 1}]}, {"planCacheListFilters": "a"},
        {"find": "a", "filter": {"x": 1}, "hint": "nope"}, {"find": "a", "filter": {"x": 1}, "sort": {"x": 1}, "hint": "nope"}, {"count": "a", "query": {"x": 1}, "hint": "nope"},
        {"planCacheClear": "a"}, {"planCacheListFilters": "a"}, {"createIndexes": "a", "indexes": [{"key": {"z": 1}, "name": "z_1"}]}, {"collMod": "a", "validator": {}},
        {"planCacheListFilters": "a"}, admin({"renameCollection": "compat.a", "to": "compat.b"}), {"planCacheListFilters": "a"}, {"planCacheListFilters": "b"},
        *({"planCacheClearFilters": "b", **options} for options in (
            {"query": 1}, {"sort": {"x": 1}}, {"query": {"$foo": 1}}, {"query": {"y": 1}}, {"query": {"x": 1}, "sort": {"x": 1}}, {"indexes": 1, "query": {"z": 1}})),
        {"planCacheListFilters": "b"}, {"planCacheClearFilters": "b", "query": {"x": 9}}, {"planCacheListFilters": "b"},
        {"planCacheSetFilter": "b", "query": {"x": 1}, "sort": {"y": -1}, "projection": {"x": 1}, "collation": {"locale": "en", "strength": 2}, "indexes": ["y_1"]},
        {"planCacheListFilters": "b"}, {"planCacheClearFilters": "b", "query": {"x": 1}}, {"planCacheListFilters": "b"}, {"drop": "b"}, {"create": "b"}, {"planCacheListFilters": "b"},
    ),
    script(
        "aggregation: $listCatalog",
        {"create": "a", "capped": True, "size": 4096, "validator": {"x": {"$exists": True}}}, {"createIndexes": "a", "indexes": [{"key": {"y": 1, "z.q": -1}, "name": "yz"}]},
        {"create": "v", "viewOn": "a", "pipeline": [{"$match": {"x": 1}}]}, {"create": "w", "viewOn": "a", "pipeline": []}, {"create": "s", "timeseries": {"timeField": "t"}},
        {"create": "l", "collation": {"locale": "en"}}, {"create": "cl", "clusteredIndex": {"key": {"_id": 1}, "unique": True}}, {"insert": "m", "documents": [{"x": [1, 2], "y": 3}]},
        {"createIndexes": "m", "indexes": [{"key": {name: 1}, "name": name} for name in "xy"]},
        *({"aggregate": name, "pipeline": [{"$listCatalog": {}}], "cursor": {}} for name in (*"avwslm", "cl", "system.buckets.s", "none", 1)),
        *({"aggregate": "a", "pipeline": pipeline, "cursor": {}} for pipeline in (
            *([{"$listCatalog": operand}] for operand in (1, None, [], {"a": 1})), [{"$match": {}}, {"$listCatalog": {}}], [{"$match": {}}, {"$listCatalog": 1}],
            [{"$listCatalog": {}}, {"$listCatalog": {}}], [{"$listCatalog": {}}, {"$project": {"name": 1}}], [{"$facet": {"a": [{"$listCatalog": {}}]}}],
            [{"$unionWith": {"coll": "m", "pipeline": [{"$listCatalog": {}}, {"$project": {"ns": 1}}]}}], [{"$unionWith": {"coll": "v", "pipeline": [{"$listCatalog": {}}]}}],
            [{"$listCatalog": {}}, {"$out": "o"}])),
        *(admin({"aggregate": 1, "pipeline": pipeline, "cursor": {}}) for pipeline in (
            [{"$listCatalog": 1}], [{"$match": {}}, {"$listCatalog": {}}], [{"$listCatalog": {}}, {"$match": {"db": "compat", "type": {"$ne": "collection"}}}, {"$sort": {"name": 1}}],
            [{"$listCatalog": {}}, {"$match": {"db": "compat", "type": "collection"}}, {"$project": {"name": 1, "ns": 1}}, {"$sort": {"name": 1}}])),
        {"create": "v2", "viewOn": "a", "pipeline": [{"$listCatalog": {}}]}, {"aggregate": "v2", "pipeline": [{"$project": {"name": 1}}], "cursor": {}},
        {"aggregate": "a", "pipeline": [{"$listCatalog": {}}], "cursor": {}, "apiVersion": "1", "apiStrict": True},
    ),
    script(
        "commands: operations",
        admin({"lockInfo": 1}), {"lockInfo": 1}, admin({"logRotate": 1}), {"logRotate": 1}, admin({"logRotate": "server"}),
        admin({"logRotate": "nope"}), admin({"setDefaultRWConcern": 1, "defaultReadConcern": {"level": "local"}}),
        {"setDefaultRWConcern": 1}, admin({"getDefaultRWConcern": 1}), {"shutdown": 1},
    ),
    script(
        "commands: mapReduce",
        {"insert": "a", "documents": [{"_id": 1}]},
        {"mapReduce": "a", **CODE, "out": {"inline": 1}}, {"mapReduce": "a"}, {"mapReduce": "a", **CODE},
        {"mapReduce": "a", **CODE, "out": 1}, {"mapReduce": "none", **CODE, "out": {"inline": 1}},
        {"mapReduce": "a", **CODE, "out": {"inline": 1}, "x": 1}, {"mapReduce": "a", **CODE, "map": 1, "out": {"inline": 1}},
        {"mapReduce": "a", "reduce": "f", "out": {"inline": 1}},
        *({"mapReduce": "none", **CODE, "out": out} for out in (
            "", None, [], {}, {"x": 1}, *({"inline": one} for one in (1.0, 2, 0, "1", True)), {"inline": 1, "x": 1}, {"x": 1, "inline": 1}, {"replace": "b", "inline": 1},
            *({mode: name} for mode in ("replace", "merge", "reduce") for name in (1, "", None, "b$c")), {"merge": "b", "replace": "c"}, {"replace": 1, "merge": 1}, {"normal": "b"},
            *({"reduce": "b", flag: value} for flag in ("sharded", "nonAtomic") for value in (1, False, None)), {"reduce": "b", "sharded": True}, {"replace": "b", "sharded": True},
            {"db": 1}, {"merge": "b", "db": 1}, {"replace": 1, "db": 1}, {"replace": 1, "sharded": 1}, {"replace": "b", "db": 1, "sharded": 1}, {"replace": "b", "foo": 1, "db": 1},
            {"replace": "b", "foo": 1}, {"replace": "b", "db": "a.b"}, {"replace": "b", "db": None})),
        *({"mapReduce": "none", **CODE, "out": {"inline": 1}, **options} for options in (
            {"let": {}}, {"query": {"$foo": 1}}, {"sort": {"x": 5}}, {"query": {"$foo": 1}, "sort": {"x": 5}}, {"out": {"replace": "b$c"}, "query": {"$foo": 1}},
            {"out": {"replace": "b", "sharded": True}, "query": {"$foo": 1}}, {"out": {"x": 1}, "limit": -1}, {"limit": -1, "query": {"$foo": 1}})),
        *({"mapReduce": name, **CODE, "out": out} for name in ({"a": 1}, 1, None, "$x") for out in ({"inline": 1}, {"x": 1})),
    ),
    script(
        "commands: parameters, by a document",
        *(admin({"getParameter": options, "featureCompatibilityVersion": 1}) for options in (
            {}, {"showDetails": True}, {"showDetails": 1}, {"showDetails": 0}, {"showDetails": None}, {"showDetails": "x"}, {"allParameters": "x"}, {"allParameters": False}, {"x": 1},
            {"showDetails": True, "x": 1}, {"setAt": "startup"}, [1], ["x"], "x", None)),
        *(admin({"getParameter": 1, name: value, "featureCompatibilityVersion": 1}) for name, value in (("showDetails", True), ("setAt", "startup"))),
        *(admin({"getParameter": value, **more}) for value, more in (({"showDetails": True}, {}), (1, {"allParameters": True}), (1, {"setAt": "startup"}), ({"showDetails": True}, {"nope": 1}))),
    ),
    script(
        "commands: createIndexes on another collection",
        {"create": "a"},
        *({"createIndexes": name, "collectionUUID": Binary(b"0" * 16, 4), "indexes": indexes} for name in ("a", "none") for indexes in (
            [], [{"key": {"a": 1}, "name": "a"}], [{"key": {"a": 5}, "name": "a"}], [{"key": {"a": "zz"}, "name": "a"}], [{"key": {"a": 1}, "name": "a", "foo": 1}],
            [{"key": {}, "name": "a"}], [{"key": {"a": 1}, "name": "*"}], [{"key": {"a": 1}, "name": "a", "expireAfterSeconds": -1}], [{"key": {"_id": 1}, "name": "a"}])),
    ),
]
