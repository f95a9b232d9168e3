"""Seeded random pipelines, compared with a MongoDB 6.0 server.

    python tests/compat/language_aggregate.py --oracle mongodb://127.0.0.1:29117 --evaluate target/debug/examples/evaluate [--seed N] [--count N]
    python tests/compat/language_aggregate.py --oracle mongodb://127.0.0.1:29117 --subject mongodb://127.0.0.1:27017

The same documents and stages go to the server and to the evaluator alone (`--evaluate`) or to a running Selkie (`--subject`); results, error codes and messages must agree. Where a pipeline
leaves the order open (groups), results are compared as bags.
"""

import argparse
import random
import subprocess

import bson
import pymongo
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.raw_bson import RawBSONDocument

NAMES = ["a", "b", "c", "d"]
PREFIX = "PlanExecutor error during aggregation :: caused by :: "


def scalar(r):
    return r.choice([0, 1, 2, 3, -3, 7, 1.0, 2.5, -0.0, Int64(1), Int64(2**40), 2**31 - 1, "", "x", "abc", None, True, False,
                     Decimal128("1.50"), bson.Timestamp(3, 4)])


def value(r, depth=0):
    kind = r.random()
    if depth > 2 or kind < 0.6:
        return scalar(r)
    if kind < 0.8:
        return [value(r, depth + 1) for _ in range(r.randrange(4))]
    return {name: value(r, depth + 1) for name in r.sample(NAMES, r.randrange(3))}


def document(r, number):
    result = {"_id": number}
    for name in r.sample(NAMES, r.randrange(1, 5)):
        result[name] = r.choice([value, value, lambda r: r.randrange(4), lambda r: [r.randrange(3) for _ in range(r.randrange(4))]])(r)
    return result


def path(r):
    return r.choice(NAMES) if r.random() < 0.7 else r.choice(NAMES) + "." + r.choice(NAMES)


def expression(r, depth=0):
    kind = r.random()
    if depth > 1 or kind < 0.5:
        return "$" + path(r)
    if kind < 0.6:
        return r.choice([1, 2.5, "x", {"$literal": {"a": 1}}, [1, "$a"], "$$ROOT", "$$REMOVE", None])
    if kind < 0.7:
        return {name: expression(r, depth + 1) for name in r.sample(NAMES, r.choice([1, 2]))}
    operator = r.choice(["$ifNull", "$eq", "$gt", "$type", "$isArray", "$cond"])
    if operator in ("$type", "$isArray"):
        return {operator: expression(r, depth + 1)}
    if operator == "$cond":
        return {operator: [expression(r, depth + 1) for _ in range(3)]}
    return {operator: [expression(r, depth + 1), expression(r, depth + 1)]}


def match(r):
    return {"$match": {path(r): r.choice([lambda: scalar(r), lambda: {r.choice(["$gt", "$lte", "$ne"]): scalar(r)}, lambda: {"$exists": True}])()}}


def project(r):
    kind = r.random()
    names = r.sample(NAMES + ["_id", "a.b", "c.d"], r.choice([1, 2, 3]))
    if kind < 0.35:
        return {"$project": {name: r.choice([0, False]) for name in names}}
    return {"$project": {name: r.choice([1, True, 1]) if r.random() < 0.6 else (0 if name == "_id" else expression(r)) for name in names}}


def accumulator(r):
    operator = r.choice(["$sum", "$avg", "$min", "$max", "$first", "$last", "$push", "$count", "$stdDevPop", "$stdDevSamp", "$mergeObjects",
                         "$firstN", "$lastN", "$minN", "$maxN", "$top", "$bottom", "$topN", "$bottomN"])
    if operator == "$count":
        return {operator: {}}
    if operator in ("$firstN", "$lastN", "$minN", "$maxN"):
        return {operator: {"input": expression(r), "n": r.choice([1, 2, 3, 2.0, 0])}}
    if operator.startswith(("$top", "$bottom")):
        argument = {"sortBy": {r.choice(NAMES): r.choice([1, -1]), "_id": 1}, "output": expression(r)}
        if operator.endswith("N"):
            argument["n"] = r.choice([1, 2, 3])
        return {operator: argument}
    return {operator: r.choice([1, 2.5, None]) if r.random() < 0.2 else expression(r)}


def group(r):
    key = None if r.random() < 0.2 else expression(r)
    return {"$group": {"_id": key, **{f"f{i}": accumulator(r) for i in range(r.randrange(4))}}}


def bucket(r):
    spec = {"groupBy": "$" + path(r), "boundaries": sorted(r.sample([0, 1, 2, 3, 5, 8], r.choice([2, 3])))}
    if r.random() < 0.7:
        spec["default"] = r.choice(["other", -1, 9])
    if r.random() < 0.3:
        spec["output"] = {"n": accumulator(r)}
    return {"$bucket": spec}


def bucket_auto(r):
    spec = {"groupBy": "$" + r.choice(["_id", "_id", path(r)]), "buckets": r.choice([1, 2, 3, 5, 20])}
    if r.random() < 0.3:
        spec["granularity"] = r.choice(["R5", "R10", "R20", "R40", "R80", "1-2-5", "E6", "E12", "E24", "E48", "E96", "E192", "POWERSOF2"])
    return {"$bucketAuto": spec}


def unwind(r):
    if r.random() < 0.5:
        return {"$unwind": "$" + path(r)}
    spec = {"path": "$" + path(r), "preserveNullAndEmptyArrays": r.random() < 0.5}
    if r.random() < 0.5:
        spec["includeArrayIndex"] = r.choice(["i", "a.i", "b"])
    return {"$unwind": spec}


def facet(r):
    return {"$facet": {name: [stage(r, inner=True) for _ in range(r.randrange(3))] for name in r.sample(["p", "q"], r.choice([1, 2]))}}


def stage(r, inner=False):
    makers = [match, match, project, project, group, unwind, unwind,
              lambda r: {"$sort": {r.choice(NAMES): r.choice([1, -1]), "_id": 1}},
              lambda r: {"$limit": r.choice([1, 2, 5])},
              lambda r: {"$skip": r.choice([0, 1, 3])},
              lambda r: {r.choice(["$addFields", "$set"]): {path(r): expression(r) for _ in range(r.choice([1, 2]))}},
              lambda r: {"$unset": r.choice([path(r), [path(r), path(r)]])},
              lambda r: {"$replaceWith": r.choice([{"$ifNull": ["$" + path(r), {"none": 1}]}, {"x": expression(r)}, {"$mergeObjects": ["$$ROOT", {"z": 1}]}, "$" + path(r)])},
              lambda r: {"$count": "n"}, bucket, bucket_auto,
              lambda r: {"$sortByCount": "$" + path(r)},
              lambda r: {"$redact": {"$cond": [{"$gt": ["$" + r.choice(NAMES), r.choice([0, 2, "x"])]}, r.choice(["$$DESCEND", "$$PRUNE"]), r.choice(["$$KEEP", "$$DESCEND"])]}},
              ]
    if not inner:
        makers.append(facet)
    return r.choice(makers)(r)


def case(r):
    return {"op": "aggregate", "documents": [document(r, number) for number in range(1, r.choice([2, 6, 12]))],
            "pipeline": [stage(r) for _ in range(r.choice([1, 1, 2, 3, 4]))]}


def ask_oracle(collection, case):
    collection.delete_many({})
    collection.insert_many(case["documents"])
    try:
        return {"documents": list(collection.aggregate(case["pipeline"]))}
    except pymongo.errors.OperationFailure as error:
        return {"code": error.code, "message": error.details["errmsg"].removeprefix(PREFIX)}


def keeps_order(pipeline):
    names = [next(iter(stage)) for stage in pipeline]
    return not any(name in ("$group", "$sortByCount", "$facet") for name in names)


def depends_on_order(pipeline):
    """After stages whose order is open, later stages may pick other documents."""
    names = [next(iter(stage)) for stage in pipeline]
    opened = [i for i, name in enumerate(names) if name in ("$group", "$sortByCount")]
    picky = ("$limit", "$skip", "$group", "$bucketAuto", "$facet", "$bucket", "$sort")
    inner = any(name == "$facet" and any(depends_on_order(p) for p in stage["$facet"].values()) for name, stage in zip(names, pipeline))
    return inner or bool(opened) and any(name in picky for name in names[opened[0] + 1:])


def bag(documents):
    def settle(item):
        item = dict(item)
        return {k: sorted((settle(v) for v in v), key=bson.encode) if isinstance(v, list) and v and all(isinstance(x, dict) for x in v) and k in "pq" else v for k, v in item.items()}
    return sorted(bson.encode(settle(bson.decode(document.raw))) for document in documents)


# The server answers with one or the other, as it runs a stage in one engine or the other.
TWINS = [{40066, 4934200}, {40400, 5911200}]


def same_error(ours, theirs, messages):
    if {ours.get("code"), theirs.get("code")} in TWINS:
        return True
    # The server quotes the fields that it read; which ones depends on its plan.
    cut = lambda answer: answer["message"].split("Input document:")[0]
    return ours.get("code") == theirs.get("code") and (not messages or cut(ours) == cut(theirs))


def same(ours, theirs, case, messages):
    if "code" in ours or "code" in theirs:
        return same_error(ours, theirs, messages)
    if keeps_order(case["pipeline"]):
        return [d.raw for d in ours["documents"]] == [d.raw for d in theirs["documents"]]
    return bag(ours["documents"]) == bag(theirs["documents"])


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
    client = pymongo.MongoClient(arguments.oracle, document_class=RawBSONDocument)
    collection = client["compat_aggregate"]["c"]
    r = random.Random(arguments.seed)
    cases = [case_ for case_ in (case(r) for _ in range(arguments.count)) if not depends_on_order(case_["pipeline"])]
    if arguments.subject:
        subject = pymongo.MongoClient(arguments.subject, document_class=RawBSONDocument)["compat_aggregate"]["c"]
        answers = (ask_oracle(subject, case_) for case_ in cases)
    else:
        given = b"".join(map(bson.encode, cases))
        output = subprocess.run([arguments.evaluate], input=given, capture_output=True, check=True)
        answers = bson.decode_all(output.stdout, bson.CodecOptions(document_class=RawBSONDocument))
    differing = errors = 0
    for case_, ours in zip(cases, answers, strict=True):
        theirs = ask_oracle(collection, case_)
        errors += "code" in theirs
        if same(ours, theirs, case_, arguments.messages):
            continue
        differing += 1
        if differing <= arguments.show:
            plain = lambda answer: {k: [bson.decode(d.raw) for d in v] if k == "documents" else v for k, v in dict(answer).items()}
            print("pipeline ", case_["pipeline"])
            print("  on    ", case_["documents"])
            print("  ours  ", plain(ours))
            print("  theirs", plain(theirs))
    print(f"{len(cases)} cases ({errors} errors), {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
