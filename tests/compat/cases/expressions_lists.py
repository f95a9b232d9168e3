"""Array, set, object, conditional and variable expressions, and how paths are read."""

from bson import Binary, Code

from compat.case import MISSING, expressions, over_values
from compat.cases.values import ARRAYS, BROAD, EVERYTHING, INF, NAN, OBJECTS, D, L, T

LISTS = [*ARRAYS, None, MISSING, 1, "a", {"a": 1}]
SET_LISTS = [[], [1], [1, 2, 3], [3, 2, 1, 1], [1.0, L(2)], ["a", None], [[1], [2]], [{"a": 1}], [NAN], None, MISSING, 5]
SETS = [(a, b) for a in SET_LISTS for b in SET_LISTS]
PATHS = [
    {"_id": 0, "a": {"b": {"c": 1}}}, {"_id": 1, "a": [{"b": 1}, {"b": 2}, {"c": 3}]}, {"_id": 2, "a": [[{"b": 1}]]}, {"_id": 3, "a": 1}, {"_id": 4, "a": []}, {"_id": 5}, {"_id": 6, "a": None}, {"_id": 7, "a": [1, 2, {"b": [1, 2]}]}, {"_id": 8, "a": {"0": 5, "b": None}},
    {"_id": 9, "a": [{"b": {"c": 1}}, {"b": [{"c": 2}, {"c": 3}]}]}, {"_id": 10, "a": [None]}, {"_id": 11, "a": [{"0": 1}]},
]

BLOCKS = [
    over_values("expression $arrayElemAt", LISTS, *({"$arrayElemAt": ["$v", at]} for at in (0, 1, -1, 5, -5, 1.0, L(0), D("0"), 1.5, "a", None, "$missing", L(2**40), NAN))),
    *(over_values(f"expression {name}", LISTS, {name: "$v"}) for name in ("$size", "$first", "$last", "$reverseArray", "$isArray", "$arrayToObject", "$allElementsTrue", "$anyElementTrue", "$concatArrays")),
    *(over_values(f"expression {name}", OBJECTS + BROAD, {name: "$v"}) for name in ("$objectToArray", "$bsonSize", "$binarySize", "$mergeObjects", "$arrayToObject")),
    over_values("expression $slice", LISTS, *({"$slice": ["$v", *rest]} for rest in ([1], [-1], [2], [0], [1, 1], [-2, 1], [5, 1], [-5, 2], [1, 100], [0, 0], [1, -1], [1.0], [1.5], ["a"], [None], [1, None], [2**31], [L(1)]))),
    over_values("expression $indexOfArray", LISTS, *({"$indexOfArray": ["$v", *rest]} for rest in ([1], [2, 1], [2, 0, 1], ["a"], [None], [[1, 2]], [1, 5], [1, -1], [1, 0, -1], [1, "a"], ["$missing"], [2.0]))),
    over_values("expression $in", LISTS, *({"$in": [value, "$v"]} for value in (1, "a", None, [1, 2], {"$literal": {"a": 1}}, 2.0, "$missing", NAN))),
    over_values("expression $concatArrays", [(a, b) for a in LISTS for b in ([9], None)], {"$concatArrays": ["$v", "$w"]}),
    *(over_values(f"expression {name}", SETS, {name: ["$v", "$w"]}) for name in ("$setUnion", "$setIntersection", "$setDifference", "$setIsSubset", "$setEquals")),
    expressions(
        "expression set forms", *({name: value} for name in ("$setUnion", "$setIntersection", "$setDifference", "$setIsSubset", "$setEquals") for value in ([], [[1]], [[1], [2], [3]], [[1], 2], [1, [2]], [None, [1]], [[1], None], "a", [["$_id", 0], [0]], [["$_id"], 5], [5, ["$_id"]], ["$_id", [1]], [[1], "$_id"])),
        {"$allElementsTrue": []}, {"$allElementsTrue": [[True, 1]]}, {"$allElementsTrue": [[], []]}, {"$allElementsTrue": [1]}, {"$anyElementTrue": [[0, None]]}, {"$anyElementTrue": []}, {"$anyElementTrue": [[]]}, {"$anyElementTrue": [None]}, {"$allElementsTrue": [[[]]]},
    ),
    over_values("expression $filter $map $reduce", LISTS, {"$filter": {"input": "$v", "cond": {"$gt": ["$$this", 1]}}}, {"$filter": {"input": "$v", "as": "x", "cond": "$$x"}}, {"$filter": {"input": "$v", "cond": True, "limit": 1}}, {"$map": {"input": "$v", "in": {"t": {"$type": "$$this"}}}}, {"$map": {"input": "$v", "as": "x", "in": ["$$x"]}}, {"$map": {"input": "$v", "in": "$missing"}},
                {"$reduce": {"input": "$v", "initialValue": [], "in": {"$concatArrays": [["$$this"], "$$value"]}}}, {"$reduce": {"input": "$v", "initialValue": "$missing", "in": "$$value"}}),
    expressions(
        "expression $filter $map $reduce", {"$map": 1}, {"$map": {}}, {"$map": {"input": [1]}}, {"$map": {"in": 1}}, {"$map": {"input": [1], "in": 1, "x": 1}}, {"$map": {"input": [1], "as": "X", "in": 1}}, {"$map": {"input": [1], "as": "", "in": 1}}, {"$map": {"input": [1], "as": 1, "in": 1}}, {"$map": {"input": [1], "as": "a.b", "in": 1}}, {"$map": {"input": [1], "as": "$a", "in": 1}},
        {"$map": {"input": [1], "in": "$$nope"}}, {"$map": {"input": [1, 2], "as": "CURRENT", "in": "$$CURRENT"}}, {"$map": {"input": [{"a": 1}], "as": "CURRENT", "in": "$a"}}, {"$map": {"input": [[1, 2], [3]], "in": {"$map": {"input": "$$this", "as": "y", "in": {"$add": ["$$y", {"$size": "$$this"}]}}}}}, {"$filter": 1}, {"$filter": {}}, {"$filter": {"input": [1]}}, {"$filter": {"cond": 1}},
        {"$filter": {"input": [1], "cond": 1, "x": 1}}, {"$filter": {"input": 1, "cond": 1}}, *({"$filter": {"input": [1, 2, 3], "cond": True, "limit": limit}} for limit in (1, 2, 0, -1, 1.0, 1.5, "a", None, "$missing", L(2), 2**40)), {"$reduce": 1}, {"$reduce": {}}, {"$reduce": {"input": [1]}}, {"$reduce": {"input": [1], "initialValue": 0}},
        {"$reduce": {"input": [1], "initialValue": 0, "in": 1, "x": 1}}, {"$reduce": {"input": 1, "initialValue": 0, "in": 1}}, {"$reduce": {"input": None, "initialValue": 0, "in": 1}}, {"$reduce": {"input": [1, 2, 3], "initialValue": {"sum": 0, "product": 1}, "in": {"sum": {"$add": ["$$value.sum", "$$this"]}, "product": {"$multiply": ["$$value.product", "$$this"]}}}},
        {"$reduce": {"input": ["a", "b"], "initialValue": "", "in": {"$concat": ["$$value", "$$this"]}}}, {"$reduce": {"input": [[1], [2]], "initialValue": [], "in": {"$setUnion": ["$$value", "$$this"]}}}, {"$reduce": {"input": [], "initialValue": 5, "in": 1}},
    ),
    expressions(
        "expression $range", *({"$range": value} for value in ([0, 5], [0, 5, 2], [5, 0], [5, 0, -1], [0, 0], [0, 5, 0], [0], [0, 1, 2, 3], [0.0, 3.0], [0.5, 3], [0, 2.5], ["a", 3], [0, "a"], [0, 3, "a"], [0, 3, 1.5], [None, 3], [0, None], [L(0), D("3")], [0, 2**31], [2**31 - 3, 2**31 - 1], [-3, 3, 3], [0, 10, 2**31 - 1], 5, [NAN, 1])),
    ),
    expressions(
        "expression $zip", *({"$zip": value} for value in (
            {"inputs": [[1, 2], ["a", "b"]]}, {"inputs": [[1, 2, 3], ["a"]]}, {"inputs": [[1, 2, 3], ["a"]], "useLongestLength": True}, {"inputs": [[1, 2, 3], ["a"]], "useLongestLength": True, "defaults": [0, "z"]}, {"inputs": [[1], ["a", "b"]], "defaults": [0, 1]}, {"inputs": [[1], ["a"]], "useLongestLength": True, "defaults": [0]}, {"inputs": []}, {"inputs": 1}, {}, 1,
            {"inputs": [[1], None]}, {"inputs": [[1], 5]}, {"inputs": [[1]], "useLongestLength": 1}, {"inputs": [[1]], "x": 1}, {"inputs": [[1], "$missing"]}, {"inputs": [["$_id"], [[]]]}, {"inputs": [[1]], "defaults": 1, "useLongestLength": True}, {"inputs": [[], []]}, {"inputs": [[], [1]], "useLongestLength": True})),
    ),
    expressions(
        "expression $sortArray", *({"$sortArray": value} for value in (
            {"input": [3, 1, 2], "sortBy": 1}, {"input": [3, 1, 2], "sortBy": -1}, {"input": ["b", 1, None, [2], {"a": 1}, True, "a", NAN, 1.0, L(1)], "sortBy": 1}, {"input": [{"a": 2}, {"a": 1}, {"b": 1}, {"a": [0, 5]}], "sortBy": {"a": 1}}, {"input": [{"a": 2, "b": 1}, {"a": 2, "b": 0}], "sortBy": {"a": 1, "b": -1}}, {"input": [{"a": {"b": 2}}, {"a": {"b": 1}}], "sortBy": {"a.b": 1}},
            {"input": None, "sortBy": 1}, {"input": "$missing", "sortBy": 1}, {"input": 1, "sortBy": 1}, {"input": [1], "sortBy": 0}, {"input": [1], "sortBy": 2}, {"input": [1], "sortBy": "a"}, {"input": [1], "sortBy": {}}, {"input": [1], "sortBy": {"a": 0}}, {"input": [1], "sortBy": {"a": "x"}}, {"input": [1]}, {"sortBy": 1}, {}, 1, {"input": [1], "sortBy": 1, "x": 1}, {"input": [5, {"a": 1}, "x"], "sortBy": {"a": 1}}, {"input": [1, 2], "sortBy": 1.0}, {"input": [2, 1], "sortBy": True})),
    ),
    expressions(
        "expression $firstN and kin", *({name: value} for name in ("$firstN", "$lastN", "$maxN", "$minN") for value in (
            {"input": [3, 1, 2], "n": 2}, {"input": [3, None, 2, "a", [1]], "n": 3}, {"input": [], "n": 1}, {"input": [1, 2], "n": 5}, {"input": [1], "n": 0}, {"input": [1], "n": -1}, {"input": [1], "n": 1.5}, {"input": [1], "n": 1.0}, {"input": [1], "n": L(1)}, {"input": [1], "n": "a"}, {"input": [1], "n": None}, {"input": None, "n": 1}, {"input": "$missing", "n": 1}, {"input": 1, "n": 1}, {"input": [1]}, {"n": 1}, {}, 1, {"input": [1], "n": 1, "x": 1},
            {"input": ["$_id", "$missing"], "n": 2}, {"input": [1, 2, 3], "n": {"$add": [1, 1]}}, {"input": [1, 1.0, L(1), D("1")], "n": 2})),
    ),
    expressions(
        "expression list forms", {"$arrayElemAt": [[1]]}, {"$arrayElemAt": [[1], 0, 1]}, {"$arrayElemAt": [1, 0]}, {"$arrayElemAt": [None, "a"]}, {"$size": []}, {"$size": [1, 2]}, {"$size": [[1, 2]]}, {"$size": None}, {"$first": [[1, 2]]}, {"$first": []}, {"$last": [[]]}, {"$first": 1}, {"$first": None}, {"$reverseArray": [[1, 2]]}, {"$reverseArray": 1}, {"$concatArrays": []}, {"$concatArrays": [[1], [2], [3]]}, {"$concatArrays": [[1], 2]}, {"$concatArrays": [None, 2]},
        {"$concatArrays": [2, None]}, {"$in": [1]}, {"$in": [1, 2]}, {"$in": [1, None]}, {"$in": [1, "$missing"]}, {"$in": [1, [1], 2]}, {"$indexOfArray": [[1]]}, {"$indexOfArray": [1, 1]}, {"$indexOfArray": [None, 1]}, {"$slice": [[1, 2]]}, {"$slice": [1, 1]}, {"$slice": [[1, 2, 3], 1, 2, 3]}, {"$slice": [[1, 2], "a"]}, {"$slice": [[1], 1, 0]},
        {"$arrayToObject": [[["a", 1], ["b", 2]]]}, {"$arrayToObject": {"$literal": [["a", 1], {"k": "b", "v": 2}]}}, {"$arrayToObject": {"$literal": [{"k": "a", "v": 1}, ["b", 2]]}}, {"$arrayToObject": {"$literal": [["a"]]}}, {"$arrayToObject": {"$literal": [[1, 2]]}}, {"$arrayToObject": {"$literal": [{"k": 1, "v": 2}]}}, {"$arrayToObject": {"$literal": [{"k": "a"}]}}, {"$arrayToObject": {"$literal": [{"k": "a", "v": 1, "x": 2}]}}, {"$arrayToObject": {"$literal": [{"x": "a", "v": 1}]}},
        {"$arrayToObject": {"$literal": [["a", 1], ["a", 2]]}}, {"$arrayToObject": {"$literal": [["a\0", 1]]}}, {"$arrayToObject": {"$literal": [1]}}, {"$arrayToObject": {"$literal": []}}, {"$arrayToObject": None}, {"$objectToArray": 1}, {"$objectToArray": {"a": 1, "b": "$missing"}}, {"$objectToArray": []}, {"$objectToArray": {"$literal": {"a": {"b": 1}}}}, {"$objectToArray": "$$ROOT"},
        [1, "$_id", "$missing", None], [], [[]], {"a": []}, {"a": "$missing"}, {"a": ["$missing"]}, {"a": {"b": "$missing"}}, {},
    ),
    over_values("expression $mergeObjects", [(a, b) for a in ({}, {"a": 1}, {"a": {"b": 1}}, None, MISSING, 1, [{"a": 1}]) for b in ({}, {"a": 2, "c": 3}, {"b": 1}, None, MISSING, "x")], {"$mergeObjects": ["$v", "$w"]}),
    expressions(
        "expression object forms", {"$mergeObjects": []}, {"$mergeObjects": {"a": 1}}, {"$mergeObjects": [{"a": 1, "b": 2}, {"b": 3, "a": "$missing"}]}, {"$mergeObjects": [[{"a": 1}, {"b": 2}]]}, {"$mergeObjects": None}, {"$mergeObjects": [None, {"a": 1}]}, {"$mergeObjects": "$$ROOT"}, {"$bsonSize": None}, {"$bsonSize": {}}, {"$bsonSize": "$$ROOT"}, {"$bsonSize": 1}, {"$binarySize": "é"}, {"$binarySize": Binary(b"abc")}, {"$binarySize": 1}, {"$binarySize": None},
        *({"$getField": value} for value in ("_id", "a.b", "$x", {"$const": "$x"}, 1, None, ["_id"], {}, {"field": "_id"}, {"field": "a", "input": {"a": 5}}, {"field": "a", "input": 1}, {"field": "a", "input": None}, {"field": "a", "input": "$missing"}, {"field": "$_id"}, {"field": {"$concat": ["_", "id"]}}, {"field": 1, "input": {}}, {"field": "a", "x": 1}, {"input": {}}, {"field": "a.b", "input": {"$literal": {"a.b": 7}}}, {"field": {"$literal": "$a"}, "input": {"$literal": {"$a": 7}}}, {"field": "", "input": {"$literal": {"": 1}}}, {"field": "a", "input": [{"a": 1}]})),
        *({"$setField": value} for value in ({"field": "a", "input": {"b": 1}, "value": 2}, {"field": "b", "input": {"b": 1}, "value": 2}, {"field": "b", "input": {"b": 1, "c": 2}, "value": "$$REMOVE"}, {"field": "a.b", "input": {}, "value": 1}, {"field": {"$const": "$a"}, "input": {}, "value": 1}, {"field": "$a", "input": {}, "value": 1}, {"field": "a", "input": None, "value": 1}, {"field": "a", "input": 1, "value": 1}, {"field": 1, "input": {}, "value": 1}, {"field": "a", "input": {}}, {"field": "a", "value": 1}, {"input": {}, "value": 1}, {}, 1, {"field": "a", "input": {}, "value": 1, "x": 1}, {"field": "$_id", "input": {}, "value": 1}, {"field": {"$concat": ["a", "b"]}, "input": {}, "value": 1}, {"field": "a", "input": "$$ROOT", "value": "$missing"})),
        *({"$unsetField": value} for value in ({"field": "b", "input": {"b": 1, "c": 2}}, {"field": "x", "input": {"b": 1}}, {"field": "a", "input": None}, {"field": "a", "input": 1}, {"field": "a"}, {}, {"field": "a", "input": {}, "value": 1}, {"field": "_id", "input": "$$ROOT"}, {"field": 1, "input": {}})),
    ),
    over_values("expression $ifNull $cond $switch", EVERYTHING[-60:], {"$ifNull": ["$v", "null"]}, {"$cond": {"if": "$v", "then": "yes", "else": "no"}}, {"$switch": {"branches": [{"case": "$v", "then": 1}], "default": 2}}),
    expressions(
        "expression $ifNull $cond $switch", {"$ifNull": []}, {"$ifNull": [1]}, {"$ifNull": [None, "$missing", 3]}, {"$ifNull": [None, None]}, {"$ifNull": ["$missing", "$missing"]}, {"$ifNull": 1}, {"$ifNull": [1, {"$divide": [1, "$_id"]}]}, {"$ifNull": [{"$divide": [1, "$_id"]}, 1]}, {"$cond": []}, {"$cond": [1, 2]}, {"$cond": [1, 2, 3, 4]}, {"$cond": 1}, {"$cond": {}}, {"$cond": {"if": 1, "then": 2}}, {"$cond": {"if": 1, "else": 2}}, {"$cond": {"then": 1, "else": 2}},
        {"$cond": {"if": 1, "then": 2, "else": 3, "x": 1}}, {"$cond": [True, "$missing", 1]}, {"$cond": [False, {"$divide": [1, "$_id"]}, 1]}, {"$cond": [True, {"$divide": [1, "$_id"]}, 1]}, {"$cond": [None, 1, 2]}, {"$cond": ["", 1, 2]}, {"$switch": 1}, {"$switch": {}}, {"$switch": {"branches": []}}, {"$switch": {"branches": [], "default": 1}}, {"$switch": {"branches": [{"case": 1}]}}, {"$switch": {"branches": [{"then": 1}]}}, {"$switch": {"branches": [{"case": False, "then": 1}]}}, {"$switch": {"branches": [{"case": "$_id", "then": 1}]}},
        {"$switch": {"branches": [{"case": 0, "then": 1}, {"case": 1, "then": 2}]}}, {"$switch": {"branches": 1}}, {"$switch": {"branches": [1]}}, {"$switch": {"branches": [{"case": 1, "then": 2, "x": 1}]}}, {"$switch": {"branches": [{"case": 1, "then": 2}], "x": 1}}, {"$switch": {"branches": [{"case": False, "then": {"$divide": [1, 0]}}], "default": 5}}, {"$switch": {"branches": [{"case": True, "then": "$missing"}], "default": 5}},
    ),
    expressions(
        "expression $let and variables", {"$let": {"vars": {"x": 1}, "in": "$$x"}}, {"$let": {"vars": {"x": 1, "y": "$_id"}, "in": {"$add": ["$$x", "$$y"]}}}, {"$let": {"vars": {"x": 1}, "in": {"$let": {"vars": {"x": 2, "y": "$$x"}, "in": ["$$x", "$$y"]}}}}, {"$let": {"vars": {}, "in": 1}}, {"$let": {"vars": {"x": 1}}}, {"$let": {"in": 1}}, {"$let": 1}, {"$let": {}}, {"$let": {"vars": 1, "in": 1}}, {"$let": {"vars": {"X": 1}, "in": 1}}, {"$let": {"vars": {"x.y": 1}, "in": 1}},
        {"$let": {"vars": {"x": 1}, "in": 1, "z": 1}}, {"$let": {"vars": {"CURRENT": {"q": 5}}, "in": "$q"}}, {"$let": {"vars": {"ROOT": 1}, "in": 1}}, {"$let": {"vars": {"x": {"a": [{"b": 1}, {"b": 2}]}}, "in": "$$x.a.b"}}, {"$let": {"vars": {"x": "$missing"}, "in": {"$type": "$$x"}}}, {"$let": {"vars": {"é": 1}, "in": "$$é"}}, "$$nope", "$$", "$", "$$ROOT", "$$CURRENT._id", "$$ROOT._id", "$$REMOVE", ["$$REMOVE"], {"a": "$$REMOVE"}, "$$KEEP", "$$DESCEND", "$$PRUNE", {"$type": "$$NOW"},
        "$$CLUSTER_TIME", "$$NOW.x", "$a..b", "$a.", "$.a", "$a.$b", "$$ROOT.", "$_id.$x", "$$USER_ROLES", "$$SEARCH_META", "$$IS_MR", "$$JS_SCOPE", {"$literal": "$a"}, {"$literal": {"$add": [1, 2]}}, {"$const": 1}, {"$literal": [1, "$a"]}, {"$add": [1, 2], "$subtract": [1, 2]}, {"a": 1, "$add": [1, 2]}, {"$add": [1, 2], "a": 1}, {"a.b": 1}, {"a": {"b.c": 1}}, {"": 1}, {"$": 1}, {"a": {"$foo": 1}}, {"$meta": "textScore"}, {"$meta": "nope"}, {"$meta": 1}, {"$meta": "indexKey"}, {"$meta": "sortKey"},
        {"$function": {"body": "function() {}", "args": [], "lang": "js"}} if False else {"$getField": "_id"}, Code("f"), D("1"),
    ),
    expressions("expression paths", *("$" + path for path in ("a", "a.b", "a.b.c", "a.0", "a.0.b", "a.b.0", "x", "a.x", "a.b.x", "a.c")), *({"$type": "$" + path} for path in ("a", "a.b", "a.b.c", "a.0")), documents=PATHS),
    expressions("expression constants", 1, L(1), 1.5, D("1"), "text", None, True, T(0), INF, {"x": 1}, {"x": {"y": [1, "$_id"]}}, {"$literal": None}),
]
