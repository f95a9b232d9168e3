"""An index changes the speed of a query, and not its results: every type of value,
odd names of fields, every kind of index and every operator, with the index and without it, for
reads and for writes.

Each run takes a new seed and prints it; SELKIE_INDEX_SEED repeats one. SELKIE_INDEX_ROUNDS is how
many random indexes are tried for each kind.
"""

import datetime
import math
import os
import random
import re

import bson
import pymongo
import pytest
from bson import Code, DatetimeMS, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.binary import Binary
from bson.codec_options import CodecOptions, DatetimeConversion
from pymongo.errors import BulkWriteError, OperationFailure

SEED = int(os.environ.get("SELKIE_INDEX_SEED") or random.SystemRandom().randrange(2**32))
ROUNDS = int(os.environ.get("SELKIE_INDEX_ROUNDS", "2"))
DOCUMENTS, QUESTIONS, WRITES = 120, 50, 16
OPTIONS = CodecOptions(document_class=bson.SON, datetime_conversion=DatetimeConversion.DATETIME_MS)

# Names with a special meaning in JSON, SQL or MariaDB's JSON paths.
ODD_NAMES = [
    "a", "A", "r.$id", "r.$ref", "r.$db", "a.r.$id", "l.$id", "a b", " a", "a ", 'a"b', "a'b", "a\\b", "\\", '"', "'", '\\"', "a`b", "a*b",
    "é", "e\u0301", "日本語", "😀", "a\nb", "a\tb", "a\x01b", "a\x7fb", "a/b", "a-b", "0", "a.0", "0.a", "a.b.c", "x" * 100, "a[0]", "a@b", "#",
    "?", "%s", "{}", "seq", "doc", "id", "opaque", "~x", "_id.x", "a\u2028b", "$**", "a.$oid", "a.$date", "a.$numberDecimal", "a.$binary.base64",
    "a.$bson", "a$b", "ключ", "nul", "true", "a,b", "a:b", "a;b",
]  # fmt: skip
# Indexes refuse names that begin with a dollar, but for those of a reference.
REFUSED = re.compile(r"(^|\.)\$(?!(id|ref|db)(\.|$))")

EDGES = [0, 1, 2**31 - 1, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 10**17, 10**18 - 1, 10**18, 999_999_999_999_999_999]
TEXTS = ["", " ", "a", "A", "b", "ab", "a\\b", 'a"b', "a'b", "a\nb", "é", "e\u0301", "日本", "😀", "\x7f", "1", "1.0", "null", "true", "$x", "{", "[",
         "a" * 479, "a" * 480, "a" * 481, "a" * 482 + "b", "b" * 1000, "a\0b", "\u2028", '{"$oid":"0"}', "F", "G"]  # fmt: skip


def number(rng):
    kind = rng.randrange(9)
    if kind == 0:
        return rng.randrange(-3, 4)
    if kind == 1:
        edge = rng.choice(EDGES) * rng.choice([1, -1]) + rng.choice([-1, 0, 0, 1])
        return Int64(max(min(edge, 2**63 - 1), -(2**63)))
    if kind == 2:
        return rng.choice([-(2.0**63), 2.0**63, 0.0, -0.0, 5e-324, 1e-20, 1e-17, 2**-56, -(2**-57), 1e18, 1.7e308, math.inf, -math.inf, math.nan])
    if kind == 3:
        return float(rng.choice(EDGES)) * rng.choice([1, -1])
    if kind == 4:
        return round(rng.uniform(-100, 100), rng.randrange(6))
    if kind == 5:
        return rng.uniform(-1, 1) * 10 ** rng.randrange(-20, 22)
    if kind == 6:
        return Decimal128(f"{rng.randrange(-9999, 9999)}.{rng.randrange(100):02}")
    if kind == 7:
        digits = "".join(rng.choice("0123456789") for _ in range(rng.randrange(1, 35)))
        return Decimal128(f"{rng.choice(['', '-'])}{digits}E{rng.choice([0, 0, -1, -2, -15, -18, -34, 3, 20, -6000, 6000])}")
    return Decimal128(rng.choice(["NaN", "Infinity", "-Infinity", "0", "-0", "0E+3", "1.0", "1.00", "19.99", "-9223372036854775808", "1E-20"]))


def other_type(rng, value):
    """The same number, or one next to it, as another type."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal128)):
        return value
    if isinstance(value, Decimal128):
        value = float(value.to_decimal()) if value.to_decimal().is_finite() else 1.5
    if math.isfinite(value) and rng.random() < 0.5 and abs(value) < 2**63:
        return Int64(int(value))
    if math.isfinite(value) and rng.random() < 0.5:
        return Decimal128(str(value) if isinstance(value, int) else f"{value:.17g}")
    return float(value)


def instant(rng):
    milliseconds = rng.choice([0, -1, 1, 999, 1000, 951_782_400_000, 32_503_679_999_999, 32_503_680_000_000, 253_402_300_799_999,
                               253_402_300_800_000, -62_135_596_800_000, 2**62, -(2**62), rng.randrange(-(10**13), 10**14)])  # fmt: skip
    return DatetimeMS(milliseconds)


def binary(rng):
    return Binary(bytes(rng.choice(b"\0a\xff") for _ in range(rng.choice([0, 1, 2, 3, 16, 16, 325, 330, 480, 600]))), rng.choice([0, 0, 5, 128]))


def rare(rng):
    kind = rng.randrange(7)
    return [
        Timestamp(rng.randrange(1, 3), rng.randrange(3)), Regex(rng.choice(["a", "^b"]), rng.choice(["", "i"])), Code("f"), Code("f", {"x": 1}), MinKey(),
        MaxKey(), bson.DBRef("x", rng.randrange(3)),
    ][kind]  # fmt: skip


def scalar(rng):
    kind = rng.random()
    if kind < 0.4:
        return number(rng)
    if kind < 0.6:
        return rng.choice(TEXTS)
    if kind < 0.7:
        return rng.choice([None, True, False])
    if kind < 0.78:
        return instant(rng)
    if kind < 0.86:
        return binary(rng)
    if kind < 0.92:
        return ObjectId(bytes([rng.randrange(2)] * 11 + [rng.randrange(3)]))
    return rare(rng)


def value(rng, depth=0):
    kind = rng.random()
    if kind < 0.8 or depth > 1:
        return scalar(rng)
    if kind < 0.9:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    names = rng.choice([["$ref", "$id"], ["x"], ["x", "y"], [], ["$id"], ["$oid"], ["$numberDecimal"], ["$date"]])
    return bson.SON((name, value(rng, depth + 1)) for name in names)


def put(rng, holder, path, inner, arrays):
    """Puts a value where the path leads to, sometimes by way of an array."""
    name, _, rest = path.partition(".")
    if not rest:
        holder[name] = inner
    elif arrays and rng.random() < 0.15:
        holder[name] = [bson.SON() for _ in range(rng.randrange(3))]
        for element in holder[name]:
            put(rng, element, rest, value(rng), arrays)
    elif isinstance(holder.get(name, bson.SON()), bson.SON):
        put(rng, holder.setdefault(name, bson.SON()), rest, inner, arrays)


def document(rng, number_, paths, arrays):
    made = bson.SON(_id=number_)
    if any(path.startswith("_id.") for path in paths):
        made["_id"] = bson.SON(n=number_)
    for path in paths:
        if rng.random() < 0.85:
            given = value(rng)
            while isinstance(given, list) and not arrays:
                given = value(rng)
            put(rng, made, path, given, arrays)
    return made


def of_type(rng, values):
    given = rng.choice(values)
    return other_type(rng, given) if rng.random() < 0.4 else given if rng.random() < 0.7 else value(rng)


def compared(given):
    """Returns an operand for an operator that does not take a regular expression."""
    return "a" if isinstance(given, Regex) else given


def condition(rng, values):
    one = lambda: of_type(rng, values)
    kind = rng.randrange(16)
    if kind < 4:
        return {"$eq": one()}
    if kind == 4:
        return {"$in": [one() for _ in range(rng.randrange(6))]}
    if kind < 8:
        operators = rng.sample(["$gt", "$gte", "$lt", "$lte"], rng.randrange(1, 3))
        return {operator: compared(one()) for operator in operators}
    return rng.choice([
        lambda: {"$ne": compared(one())}, lambda: {"$nin": [one(), one()]}, lambda: {"$not": {"$gte": compared(one())}},
        lambda: {"$exists": rng.random() < 0.5}, lambda: {"$type": rng.choice([*range(1, 20), -1, 127, "number"])},
        lambda: {"$regex": rng.choice(["^a", "b$", "^A", "^\\$", "^1"]), "$options": rng.choice(["", "i"])}, lambda: {"$mod": [rng.randrange(1, 5), 0]},
        lambda: {"$elemMatch": {"$gte": compared(one())}}, lambda: {"$all": [one()]}, lambda: {"$size": rng.randrange(3)},
        lambda: {"$elemMatch": {"x": one()}},
    ])()  # fmt: skip


def question(rng, paths, values):
    kind = rng.random()
    asked = {path: condition(rng, values) for path in paths[: rng.choice([1, 1, len(paths)])]}
    if kind < 0.1:
        return {"$or": [{rng.choice(paths): condition(rng, values)}, {rng.choice(paths): condition(rng, values)}]}
    if kind < 0.15:
        return {"$and": [asked, {paths[0]: condition(rng, values)}]}
    return asked


def values_of(documents, paths):
    """Returns the values at the paths."""
    found = [None, 1]
    for made in documents:
        for path in paths:
            held = made
            for name in path.split("."):
                held = held.get(name) if isinstance(held, dict) else held[0].get(name) if isinstance(held, list) and held and isinstance(held[0], dict) else None
            if held is not None:
                found.append(held)
    return found


KINDS = {
    "single": lambda rng, paths: ({paths[0]: rng.choice([1, -1])}, {}),
    "compound": lambda rng, paths: ({path: rng.choice([1, -1]) for path in paths}, {}),
    "sparse": lambda rng, paths: ({path: 1 for path in paths[: rng.choice([1, 2])]}, {"sparse": True}),
    "hashed": lambda rng, paths: ({paths[0]: "hashed"}, {}),
    "partial, exists": lambda rng, paths: ({paths[0]: 1}, {"partialFilterExpression": {paths[1]: {"$exists": True}}}),
    "partial, equal": lambda rng, paths: ({paths[0]: 1}, {"partialFilterExpression": {paths[1]: compared(scalar(rng))}}),
    "partial, range": lambda rng, paths: ({paths[0]: 1}, {"partialFilterExpression": {paths[0]: {rng.choice(["$gt", "$lte"]): number(rng)}}}),
    "partial, type": lambda rng, paths: ({paths[0]: 1}, {"partialFilterExpression": {paths[0]: {"$type": rng.choice(["string", "number", "date"])}}}),
    "partial, either": lambda rng, paths: (
        {paths[0]: 1}, {"partialFilterExpression": {"$or": [{paths[0]: {"$gt": number(rng)}}, {paths[1]: {"$type": ["string", "null"]}}]}}
    ),
    "unique, partial": lambda rng, paths: ({paths[0]: 1}, {"unique": True, "partialFilterExpression": {paths[0]: {"$exists": True, "$type": "string"}}}),
    "unique, integers": lambda rng, paths: ({paths[0]: 1}, {"unique": True, "partialFilterExpression": {paths[0]: {"$type": "int"}}}),
    "unique, collation": lambda rng, paths: ({path: 1 for path in paths}, {"unique": True, "collation": {"locale": "en", "strength": 2}}),
    "unique": lambda rng, paths: ({path: 1 for path in paths}, {"unique": True}),
    "unique, sparse": lambda rng, paths: ({paths[0]: 1}, {"unique": True, "sparse": True}),
    "collation": lambda rng, paths: ({path: 1 for path in paths}, {"collation": {"locale": "en", "strength": 2}}),
    "all fields": lambda rng, paths: ({"$**": 1}, {}),
}  # fmt: skip


def answer(run):
    """Returns the results, or the code of the error."""
    try:
        return run()
    except OperationFailure as error:
        return f"error {error.code}"


def raw(documents):
    return sorted(bson.encode(one, codec_options=OPTIONS) for one in documents)


def difference(one, other):
    """Returns the items that only one of two replies has."""
    if not isinstance(one, list) or not isinstance(other, list):
        return [one, other]
    only = lambda some, others: [part for part in some if part not in others]
    return [f"with the index: {only(one, other)!r:.900}", f"without: {only(other, one)!r:.900}", "in another order" if len(one) == len(other) else ""]


class Pair:
    """Two collections with the same documents, one of them with the index."""

    def __init__(self, db, collation):
        db = db.with_options(codec_options=OPTIONS)
        self.both = db.indexed, db.plain
        self.options = {"collation": collation} if collation else {}

    def same(self, what, run, errors_of_documents=lambda: []):
        """`errors_of_documents` returns the errors that single documents cause. An index changes
        which document is read first, so any of these errors may be returned."""
        with_index, without = (answer(lambda: run(collection)) for collection in self.both)
        if with_index != without and isinstance(with_index, str) and isinstance(without, str):
            if {with_index, without} <= set(errors_of_documents()):
                return
        # As a list, so that the report shows the difference.
        differ = [] if with_index == without else difference(with_index, without)
        assert not differ, f"SELKIE_INDEX_SEED={SEED}: {what}\n{differ!r:.2000}"

    def read(self, rng, asked, paths):
        options = self.options if rng.random() < 0.8 else {}
        ids = lambda collection: sorted(map(repr, (one["_id"] for one in collection.find(asked, {"_id": 1}, **options))))
        self.same(("find", asked, options), ids)
        self.same(("count", asked, options), lambda collection: collection.count_documents(asked, **options))
        kind = rng.randrange(5)
        if kind == 0:
            projection = {"_id": 0, **{path: 1 for path in paths}}
            self.same(("project", asked, projection), lambda collection: raw(collection.find(asked, projection, **options)))
        if kind == 1:
            order = [*((path, rng.choice([1, -1])) for path in paths), ("_id", 1)]
            run = lambda collection: [repr(one["_id"]) for one in collection.find(asked, {"_id": 1}, **options).sort(order).limit(rng_limit)]
            rng_limit = rng.choice([0, 3, 20])

            def errors_of_documents():
                plain = self.both[1]
                for one in plain.find(asked, {"_id": 1}, **options):
                    alone = plain.find({"$and": [asked, {"_id": one["_id"]}]}, {"_id": 1}, **options).sort(order)
                    if isinstance(error := answer(lambda: list(alone)), str):
                        yield error

            self.same(("sort", asked, order, rng_limit), run, errors_of_documents)
        if kind == 2:
            # Of equal numbers of different types, any may be returned. A covered read returns null
            # for a missing field, as in MongoDB.
            count = lambda collection: len([one for one in collection.distinct(paths[0], asked, **options) if one is not None])
            self.same(("distinct", paths[0], asked), count)
        if kind == 3:
            group = [{"$match": asked}, {"$group": {"_id": None, "n": {"$sum": 1}}}]
            self.same(("group", asked), lambda collection: list(collection.aggregate(group, **options)))

    def joined(self, paths):
        look_up = lambda collection: [
            {"$lookup": {"from": collection.name, "localField": "v", "foreignField": paths[0], "as": "found"}},
            {"$project": {"found": {"$map": {"input": "$found", "in": "$$this._id"}}}}, {"$sort": {"_id": 1}},
        ]  # fmt: skip
        reply = lambda collection: [
            (one["_id"], sorted(map(repr, one["found"]))) for one in collection.database.asked.aggregate(look_up(collection), **self.options)
        ]
        self.same(("$lookup", paths[0]), reply)

    def write(self, rng, asked, made):
        kind = rng.randrange(4)
        if kind == 0:
            self.same(("update", asked), lambda collection: collection.update_many(asked, {"$inc": {"touched": 1}}, **self.options).raw_result["n"])
        elif kind == 1:
            self.same(("delete", asked), lambda collection: collection.delete_many(asked, **self.options).deleted_count)
        elif kind == 2:
            self.same(("replace", made), lambda collection: collection.replace_one({"_id": made["_id"]}, made, upsert=True).raw_result["n"])
        else:
            update = {"$setOnInsert": {"_id": f"new {rng.random()}"}, "$set": {"touched": -1}}
            reply = lambda collection: collection.update_many(asked, update, upsert=True, **self.options).raw_result.get("upserted")
            self.same(("upsert", asked), lambda collection: reply(collection) is None)


def same_documents(pair, what):
    with_index, without = (set(raw(collection.find())) for collection in pair.both)
    differ = [[bson.decode(one, codec_options=OPTIONS) for one in some] for some in (with_index - without, without - with_index)]
    assert differ == [[], []], what


def paths_of(rng, names):
    first = rng.choice(names)
    second = rng.choice(["n", "second", *names])
    while second == first or second.startswith(first + ".") or first.startswith(second + ".") or second.split(".")[0] == first.split(".")[0]:
        second = rng.choice(["n", "second", *names])
    return [first, second]


# MongoDB's results depend on indexes too: a covered projection returns null for a missing field,
# and so does distinct.
@pytest.mark.selkie_only
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_index_changes_no_answer(db, kind, when):
    print(f"SELKIE_INDEX_SEED={SEED}")
    for round_ in range(ROUNDS):
        rng = random.Random(f"{SEED} {kind} {when} {round_}")
        names = [name for name in ODD_NAMES if not REFUSED.search(name)]
        paths = paths_of(rng, names) if rng.random() < 0.7 else ["v", "w"]
        arrays = kind not in ("hashed",) and rng.random() < 0.6
        keys, options = KINDS[kind](rng, paths)
        tells = f"SELKIE_INDEX_SEED={SEED} {kind} {when} {round_}: {keys} {options}"
        pair = Pair(db, options.get("collation"))
        for collection in (*pair.both, db.asked):
            collection.drop()
        indexed, plain = pair.both
        if when == "before":
            create(indexed, keys, options, tells)
        documents = [document(rng, number_, paths, arrays) for number_ in range(DOCUMENTS)]
        insert_all(indexed, documents)
        insert_kept(plain, indexed)
        if when == "after":
            if options.get("unique"):
                keep_unique(db, pair, documents, keys, options)
            if not create(indexed, keys, options, tells):
                # Parallel arrays, or an array in a hashed index.
                continue
        values = values_of(documents, paths)
        insert_all(db.asked, [{"_id": number_, "v": one} for number_, one in enumerate(rng.sample(values, min(30, len(values))))])
        pair.joined(paths)
        for _ in range(QUESTIONS):
            pair.read(rng, question(rng, paths, values), paths)
        if options.get("unique"):
            continue
        for number_ in range(WRITES):
            made = document(rng, rng.randrange(2 * DOCUMENTS), paths, arrays)
            if kind in ("compound", "sparse", "collation") and arrays:
                made = {"_id": made["_id"], "other": 1}
            asked = question(rng, paths, values)
            if "[" in repr(asked) and not arrays:
                # An upsert would put the array into the document.
                continue
            pair.write(rng, asked, made)
        same_documents(pair, tells)
        for _ in range(QUESTIONS // 4):
            pair.read(rng, question(rng, paths, values), paths)


def create(collection, keys, options, tells):
    """Creates the index; false where the documents have what such an index cannot hold."""
    command = {"createIndexes": collection.name, "indexes": [{"key": bson.SON(keys), "name": "index", **options}]}
    try:
        collection.database.command(command)
    except OperationFailure as error:
        # 171, 16746, 16766: arrays that the index cannot hold. 67: values that an index on MariaDB
        # cannot hold.
        assert error.code in (171, 16746, 16766, 67), (tells, error)
        return False
    return True


def insert_all(collection, documents):
    """Inserts what the index takes."""
    try:
        collection.insert_many(documents, ordered=False)
    except BulkWriteError as errors:
        codes = {error["code"] for error in errors.details["writeErrors"]}
        # 52, 53: what an _id cannot have.
        assert codes <= {11000, 171, 16746, 16766, 67, 52, 53}, codes


def insert_kept(plain, indexed):
    kept = list(indexed.find())
    if kept:
        plain.insert_many(kept)


def keep_unique(db, pair, documents, keys, options):
    """Leaves in both collections what the unique index would have let in."""
    indexed, plain = pair.both
    for collection in pair.both:
        collection.drop()
    if not create(indexed, keys, options, "unique"):
        return
    insert_all(indexed, documents)
    insert_kept(plain, indexed)
    indexed.drop_indexes()


def unique_key(given):
    """Returns the key by which a unique index distinguishes values."""
    return ("number" if IS_NUMBER(given) else type(given).__name__, given)


IS_TEXT, IS_NUMBER = lambda given: isinstance(given, str), lambda given: isinstance(given, (int, float)) and not isinstance(given, bool)
# Filters of partial indexes, and of which values they hold.
FILTERS = {
    "none": (None, lambda given: True),
    "strings": ({"$type": "string"}, IS_TEXT),
    "numbers that are there": ({"$exists": True, "$type": "number"}, IS_NUMBER),
    "integers": ({"$type": "int"}, lambda given: type(given) is int),
    "several types": ({"$type": ["string", "bool", "null"]}, lambda given: not IS_NUMBER(given)),
    "above": ({"$gt": 0}, lambda given: IS_NUMBER(given) and given > 0),
    "either": ([{"$gt": "a"}, {"$lte": 0}], lambda given: IS_TEXT(given) and given > "a" or IS_NUMBER(given) and given <= 0),
}


@pytest.mark.parametrize("filter_", FILTERS)
@pytest.mark.parametrize("path", ["v", "r.$id", 'a"b', "a.b"])
def test_a_unique_index_refuses_equal_values_and_no_others(db, path, filter_):
    """Values with known equality: each equal pair within the index is refused, and no other."""
    rng = random.Random(f"{SEED} unique {path} {filter_}")
    print(f"SELKIE_INDEX_SEED={SEED}")
    asked, holds = FILTERS[filter_]
    options = {"partialFilterExpression": {"$or": [{path: one} for one in asked]} if isinstance(asked, list) else {path: asked}} if asked else {}
    db.things.create_index([(path, 1)], unique=True, **options)
    seen = {}
    for number_ in range(150):
        given = rng.choice([rng.choice(TEXTS), rng.choice([float, int, Int64])(rng.randrange(-40, 40)), float(-(2**63)), Int64(-(2**63)), True, None])
        made = bson.SON(_id=number_)
        put(rng, made, path, given, False)
        key = unique_key(given)
        try:
            db.things.insert_one(made)
            taken = True
        except pymongo.errors.DuplicateKeyError:
            taken = False
        assert taken == (not holds(given) or key not in seen), (SEED, path, asked, given, seen.get(key))
        if holds(given):
            seen.setdefault(key, given)
    for given in seen.values():
        asked_for = {path: given} if asked is None else {path: given, **options["partialFilterExpression"]} if isinstance(asked, list) else {"$and": [{path: given}, {path: asked}]}
        assert db.things.count_documents(asked_for) == db.things.count_documents(asked_for, hint={"$natural": 1}) > 0, (SEED, given)


def test_prices_are_found(db):
    """Each of some hundred decimals with two places, by equality, in a list, by ranges and in a
    join."""
    rng = random.Random(f"{SEED} prices")
    prices = [Decimal128(f"{cents // 100}.{cents % 100:02}") for cents in sorted(rng.sample(range(100_000), 400))]
    db.things.insert_many([{"_id": number_, "v": price} for number_, price in enumerate(prices)])
    db.things.create_index("v")
    for number_, price in enumerate(prices):
        assert [one["_id"] for one in db.things.find({"v": price})] == [number_], (SEED, price)
        assert db.things.count_documents({"v": {"$lt": price}}) == number_, (SEED, price)
    assert db.things.count_documents({"v": {"$in": prices}}) == len(prices)
    joined = db.things.aggregate([{"$lookup": {"from": "things", "localField": "v", "foreignField": "v", "as": "same"}}, {"$match": {"same": {"$size": 1}}}])
    assert len(list(joined)) == len(prices)
    for number_, price in enumerate(prices[:20]):
        assert db.things.update_one({"v": price}, {"$set": {"seen": True}}, upsert=True).upserted_id is None
    assert db.things.count_documents({}) == len(prices)
