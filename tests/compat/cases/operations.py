"""Commands of those who operate a server."""

from compat.case import differs, script
from compat.cases.scripts import admin

SCRIPTS = "JavaScript does not run here"
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
        "commands: operations",
        admin({"lockInfo": 1}), {"lockInfo": 1}, admin({"logRotate": 1}), {"logRotate": 1}, admin({"logRotate": "server"}),
        admin({"logRotate": "nope"}), admin({"setDefaultRWConcern": 1, "defaultReadConcern": {"level": "local"}}),
        {"setDefaultRWConcern": 1}, admin({"getDefaultRWConcern": 1}), {"shutdown": 1},
    ),
    script(
        "commands: mapReduce",
        {"insert": "a", "documents": [{"_id": 1}]},
        differs({"mapReduce": "a", **CODE, "out": {"inline": 1}}, SCRIPTS), {"mapReduce": "a"}, {"mapReduce": "a", **CODE},
        {"mapReduce": "a", **CODE, "out": 1}, {"mapReduce": "none", **CODE, "out": {"inline": 1}},
        {"mapReduce": "a", **CODE, "out": {"inline": 1}, "x": 1}, {"mapReduce": "a", **CODE, "map": 1, "out": {"inline": 1}},
        {"mapReduce": "a", "reduce": "f", "out": {"inline": 1}},
    ),
]
