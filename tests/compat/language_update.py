"""Seeded random updates, compared with a MongoDB 6.0 server.

    python tests/compat/language_update.py --oracle mongodb://127.0.0.1:29117 --evaluate target/debug/examples/evaluate [--seed N] [--count N]
    python tests/compat/language_update.py --oracle mongodb://127.0.0.1:29117 --subject mongodb://127.0.0.1:27017

The same case goes to the server (a collection of one document) and to the evaluator alone (`--evaluate`) or to a running Selkie
(`--subject`); outcome, error code and message must agree.
"""

import argparse
import random
import re
import subprocess

import bson
import pymongo
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.raw_bson import RawBSONDocument

NAMES = ["a", "b", "c", "0", "1", "x"]
ELEMENT_NAMES = ["a", "b"]


def scalar(r):
    return r.choice([
        0, 1, 2, -3, 7, 1.0, 2.5, -0.0, Int64(1), Int64(2**40), 2**31 - 1, "", "x", "abc", None, True, False,
        Decimal128("1.50"), Decimal128("2"), bson.ObjectId("6b0099e675fafade9cf5965a"), bson.Timestamp(3, 4),
        bson.Regex("^a", "i"),
    ])


def value(r, depth=0):
    kind = r.random()
    if depth > 2 or kind < 0.6:
        return scalar(r)
    if kind < 0.8:
        return [value(r, depth + 1) for _ in range(r.randrange(4))]
    return {name: value(r, depth + 1) for name in r.sample(NAMES, r.randrange(3))}


def document(r):
    result = {"_id": r.choice([1, 1, 1, "id", {"a": 1, "b": [1]}])}
    for name in r.sample(NAMES, r.randrange(5)):
        result[name] = r.choice([value, numbers, documents])(r)
    return result


def numbers(r):
    return [r.randrange(5) for _ in range(r.randrange(5))]


def documents(r):
    return [{name: scalar(r) for name in r.sample(ELEMENT_NAMES, r.randrange(3))} for _ in range(r.randrange(4))]


def path(r, dynamic=True):
    parts = [r.choice(NAMES)]
    while r.random() < 0.4:
        parts.append(r.choice(NAMES + (["$[]", "$[e]", "$"] if dynamic and r.random() < 0.4 else ["0", "1", "5"])))
    if r.random() < 0.02:
        parts.insert(0, "_id")
    return ".".join(parts)


def condition(r):
    operators = ["$gt", "$lt", "$gte", "$ne", "$eq", "$exists"]
    return r.choice([lambda: value(r), lambda: {r.choice(operators): scalar(r)}, lambda: {"$in": [scalar(r), scalar(r)]}])()


def pull_condition(r):
    return r.choice([lambda: condition(r), lambda: {r.choice(ELEMENT_NAMES): condition(r)}, lambda: value(r)])()


def push(r):
    if r.random() < 0.4:
        return value(r)
    clauses = {"$each": [value(r) for _ in range(r.randrange(4))]}
    if r.random() < 0.4:
        clauses["$slice"] = r.choice([0, 1, 2, -1, -2, 5, 2.0, Int64(3), "x"])
    if r.random() < 0.4:
        clauses["$position"] = r.choice([0, 1, -1, 9, -9, 1.0])
    if r.random() < 0.4:
        clauses["$sort"] = r.choice([1, -1, {"a": 1}, {"a": -1, "b": 1}, {"a.b": 1}, {"0": 1}, 3])
    return clauses


ARGUMENTS = {
    "$set": value,
    "$unset": scalar,
    "$inc": scalar,
    "$mul": scalar,
    "$min": value,
    "$max": value,
    "$setOnInsert": value,
    "$push": push,
    "$addToSet": lambda r: r.choice([value(r), {"$each": [value(r) for _ in range(r.randrange(4))]}]),
    "$pull": pull_condition,
    "$pullAll": lambda r: r.choice([numbers(r), [value(r), value(r)], scalar(r)]),
    "$pop": lambda r: r.choice([1, -1, 1, -1, 2, "x", 1.0]),
    "$rename": lambda r: path(r, dynamic=False),
    "$bit": lambda r: {r.choice(["and", "or", "xor"]): r.choice([1, 5, Int64(6), 1.5])},
}


def pipeline(r):
    stages = [
        lambda: {r.choice(["$set", "$addFields"]): {path(r, dynamic=False): r.choice(["$a", "$x.a", 5, {"q": "$b"}, {"$ifNull": ["$c", 0]}])}},
        lambda: {"$unset": r.choice(NAMES + ["_id", "x.a"])},
        lambda: {"$project": {name: r.choice([1, 0]) for name in r.sample(NAMES, 2)}},
        lambda: {"$replaceWith": r.choice(["$a", {"x": "$b"}, {"$mergeObjects": ["$$ROOT", {"z": 1}]}, {"_id": 1, "a": 1}])},
        lambda: {"$match": {}},
    ]
    return [r.choice(stages[:-1] if r.random() < 0.95 else stages)() for _ in range(r.randrange(4))]


def update(r):
    if r.random() < 0.1:
        return pipeline(r)
    if r.random() < 0.08:
        replacement = document(r)
        if r.random() < 0.5:
            del replacement["_id"]
        return replacement
    result = {}
    for operator in r.sample(sorted(ARGUMENTS), r.choice([1, 1, 1, 2, 3])):
        result[operator] = {path(r): ARGUMENTS[operator](r) for _ in range(r.choice([1, 1, 2, 3]))}
    return result


def upsert_filter(r):
    result = {}
    for _ in range(r.randrange(3)):
        name = r.choice(["a", "b", "c", "_id", "a.b", "x.y", "x.y.z", "x"])
        result[name] = r.choice([lambda: value(r), lambda: {"$eq": value(r)}, lambda: {"$in": [scalar(r)]}, lambda: condition(r)])()
    if r.random() < 0.2:
        return {r.choice(["$and", "$or"]): [result or {"q": 1}, {"b": 1}][: r.choice([1, 2])]}
    return result


def case(r):
    result = {"op": "update", "document": document(r), "update": update(r)}
    text = repr(result["update"])
    if "$[e]" in text and r.random() < 0.95:
        inner = r.choice([lambda: {"e": condition(r)}, lambda: {"e." + r.choice(ELEMENT_NAMES): condition(r)}])()
        result["arrayFilters"] = [inner]
    kind = r.random()
    if kind < 0.25:
        result["upsert"] = True
        result["document"] = {"_id": "other"}
        result["filter"] = {"nowhere": 5} if r.random() < 0.2 else upsert_filter(r)
    elif ".$" in text:
        name = r.choice(NAMES)
        held = result["document"].get(name)
        wanted = r.choice(held) if isinstance(held, list) and held else r.choice([1, 2])
        if not isinstance(wanted, (dict, list, bson.Regex)):
            result["filter"] = {name: wanted}
    return result


def ask_oracle(collection, case):
    collection.delete_many({})
    statement = {"q": case.get("filter", {}), "u": case["update"], "upsert": case.get("upsert", False)}
    if "arrayFilters" in case:
        statement["arrayFilters"] = case["arrayFilters"]
    try:
        if not case.get("upsert"):
            collection.insert_one(case["document"])
        reply = collection.database.command({"update": collection.name, "updates": [statement]})
    except pymongo.errors.OperationFailure as error:
        return {"code": error.code, "message": error.details["errmsg"]}
    if "writeErrors" in reply:
        error = reply["writeErrors"][0]
        return {"code": error["code"], "message": error["errmsg"]}
    found = list(collection.find())
    answer = {"changed": reply["nModified"] == 1 or "upserted" in reply, "document": found[0] if found else None}
    if "upserted" in reply:
        answer["document"] = normalize_new_id(answer["document"].raw)
    return answer


def normalize_new_id(raw):
    """An `_id` made up by the server becomes zeros, as `evaluate` makes it."""
    raw = bytearray(raw)
    if raw[4] == 7 and raw[5:9] == b"_id\0" and raw[9:21] != bson.ObjectId("6b0099e675fafade9cf5965a").binary:
        raw[9:21] = bytes(12)
    return RawBSONDocument(bytes(raw))


def same(ours, theirs, strict):
    if "code" in ours or "code" in theirs:
        same_code = ours.get("code") == theirs.get("code")
        # The server quotes the fields that it read; which ones depends on its plan.
        cut = lambda answer: answer["message"].split("Input document:")[0]
        return same_code and (not strict or cut(ours) == cut(theirs))
    return ours["changed"] == theirs["changed"] and ours["document"].raw == theirs["document"].raw


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--oracle", required=True)
    subject = parser.add_mutually_exclusive_group(required=True)
    subject.add_argument("--evaluate")
    subject.add_argument("--subject")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument("--messages", action="store_true", help="compare error messages too")
    arguments = parser.parse_args()
    codec = bson.CodecOptions(document_class=RawBSONDocument)
    client = pymongo.MongoClient(arguments.oracle, document_class=RawBSONDocument)
    collection = client["compat_update"]["c"]
    r = random.Random(arguments.seed)
    cases = [case(r) for _ in range(arguments.count)]
    if arguments.subject:
        subject = pymongo.MongoClient(arguments.subject, document_class=RawBSONDocument)["compat_update"]["c"]
        answers = (ask_oracle(subject, case_) for case_ in cases)
    else:
        given = b"".join(map(bson.encode, cases))
        output = subprocess.run([arguments.evaluate], input=given, capture_output=True, check=True)
        answers = bson.decode_all(output.stdout, codec)
    differing = 0
    errors = 0
    for case_, ours in zip(cases, answers, strict=True):
        theirs = ask_oracle(collection, case_)
        errors += "code" in theirs
        if same(ours, theirs, arguments.messages):
            continue
        differing += 1
        if differing <= arguments.show:
            plain = lambda answer: {k: bson.decode(v.raw) if isinstance(v, RawBSONDocument) else v for k, v in dict(answer).items()}
            print({k: v for k, v in case_.items() if k != "op"})
            print("  ours  ", plain(ours))
            print("  theirs", plain(theirs))
    print(f"{len(cases)} cases ({errors} errors), {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
