"""Making, listing and dropping indexes: a script whose commands build on one another."""

from compat.case import differs, script
from compat.cases.scripts import ten

STANDALONE = "Selkie serves as a router, MongoDB as a standalone server"
WORDING = "fields stand in another order in the message"

INDEXES = [
    ten(),
    {"createIndexes": "a", "indexes": [{"key": {"x": 1}, "name": "x_1"}]},
    {"createIndexes": "a", "indexes": [{"key": {"x": 1}, "name": "x_1"}]},
    {"createIndexes": "a", "indexes": [{"key": {"x": 1}, "name": "x_2"}]},
    {"createIndexes": "a", "indexes": [{"key": {"y": 1}, "name": "x_1"}]},
    {"createIndexes": "a", "indexes": []},
    {"createIndexes": "a", "indexes": 1},
    {"createIndexes": "a"},
    {"createIndexes": "a", "indexes": [1]},
    {"createIndexes": "a", "indexes": [{"key": {"x": 1}}]},
    {"createIndexes": "a", "indexes": [{"name": "q"}]},
    {"createIndexes": "a", "indexes": [{"key": 1, "name": "q"}]},
    {"createIndexes": "a", "indexes": [{"key": {"x": 1}, "name": 1}]},
    differs({"createIndexes": "a", "indexes": [{"key": {"x": 1}, "name": "x_1", "unique": True}]}, WORDING),
    {"createIndexes": "a", "indexes": [{"key": {"x": "foo"}, "name": "x_1f"}]},
    {"createIndexes": "a", "indexes": [{"key": {"x": 0}, "name": "x_1f"}]},
    {"createIndexes": "a", "indexes": [{"key": {}, "name": "x_1f"}]},
    {"createIndexes": "a", "indexes": [{"key": {"a.": 1}, "name": "w_1"}]},
    {"createIndexes": "a", "indexes": [{"key": {"w": True}, "name": "w_1"}]},
    {"createIndexes": "a", "indexes": [{"key": {"x": 1}, "name": "x_u", "unique": True}]},
    {"createIndexes": "a", "indexes": [{"key": {"q": 1}, "name": "q_1", "foo": True}]},
    {"createIndexes": "a", "indexes": [{"key": {"q": 1}, "name": ""}]},
    {"createIndexes": "a", "indexes": [{"key": {"_id": 1}, "name": "foo"}]},
    {"createIndexes": "a", "indexes": [{"key": {"_id": 1}, "name": "_id_"}]},
    {"createIndexes": "a", "indexes": [{"key": {"w": 1}, "name": "*"}]},
    {"createIndexes": "a", "indexes": [{"key": {"w": 1}, "name": "w_1", "v": 3}]},
    {"createIndexes": "a", "indexes": [{"key": {"w": 1}, "name": "w_1", "unique": "x"}]},
    {"createIndexes": "a", "indexes": [{"key": {"w": 1}, "name": "w_1", "expireAfterSeconds": "x"}]},
    {"createIndexes": "a", "indexes": [{"key": {"t": "text"}, "name": "t_text"}]},
    {"createIndexes": "a", "indexes": [{"key": {"t": "hashed"}, "name": "t_h"}]},
    {"createIndexes": "a", "indexes": [{"key": {"$**": 1}, "name": "wild"}]},
    {"dropIndexes": "a", "index": "wild"},
    {"dropIndexes": "a", "index": ["t_text", "t_h"]},
    differs({"createIndexes": "a", "indexes": [{"key": {"w": 1}, "name": "w_1"}], "commitQuorum": 1}, STANDALONE),
    differs({"dropIndexes": "a", "index": "w_1"}, STANDALONE),
    {"createIndexes": "new", "indexes": [{"key": {"z": 1}, "name": "z_1", "expireAfterSeconds": 10}, {"key": {"y": 1, "z": -1}, "name": "yz", "sparse": True, "background": True}]},
    {"createIndexes": "u", "indexes": [{"key": {"w": 1}, "name": "w_1", "unique": True}]},
    {"createIndexes": "a", "indexes": [{"key": {"x": 1}, "name": "x_1"}], "foo": 1},
    {"listIndexes": "a"},
    {"listIndexes": "new"},
    {"listIndexes": "u"},
    {"listIndexes": "nothing"},
    {"listIndexes": 1},
    {"listIndexes": "a", "cursor": {"batchSize": 1}},
    {"listIndexes": "a", "foo": 1},
    {"dropIndexes": "a", "index": "nope"},
    {"dropIndexes": "a", "index": "_id_"},
    {"dropIndexes": "a", "index": {"_id": 1}},
    {"dropIndexes": "a", "index": "x_1"},
    {"dropIndexes": "a", "index": {"zz": 1}},
    {"dropIndexes": "new", "index": ["z_1", "yz"]},
    {"dropIndexes": "u", "index": "*"},
    {"dropIndexes": "nothing", "index": "*"},
    {"dropIndexes": "a"},
    {"dropIndexes": "a", "index": 1},
    {"dropIndexes": "a", "index": "*", "foo": 1},
    {"deleteIndexes": "a", "index": "*"},
]

FRENCH = {"locale": "fr"}


def one(spec: dict) -> dict:
    return {"createIndexes": "a", "indexes": [spec]}


def dropped(index) -> dict:
    return {"dropIndexes": "a", "index": index}


# Key patterns that several indexes have.
BY_KEY = [
    ten(),
    *(one({"key": {"a": 1}, "name": f"i{number}", **options}) for number, options in enumerate([
        {}, {"collation": FRENCH}, {"partialFilterExpression": {"x": 1}}, {"sparse": True},
    ])),
    one({"key": {"b": 1}, "name": "b1"}), one({"key": {"a": "hashed"}, "name": "h"}),
    one({"key": {"$**": 1}, "name": "w1"}), one({"key": {"$**": 1}, "name": "w2", "wildcardProjection": {"a": 1}}),
    *map(dropped, ({"a": 1}, {"a": 1.0}, {"a": -1}, {"$**": 1}, {"a": "hashed"}, ["b1", "b1"], ["b1", "zz"])),
    {"listIndexes": "a"},
    dropped("i0"), dropped({"a": 1}), dropped(["i1", "i2"]), dropped({"a": 1}), dropped({"a": 1}), dropped({"$**": 1}),
    dropped("w1"), dropped({"$**": 1}), dropped({"b": 1}), {"listIndexes": "a"},
]

BLOCKS = [
    script("commands: indexes", *INDEXES),
    script("commands: indexes that have one key pattern", *BY_KEY),
]
