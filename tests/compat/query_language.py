#!/usr/bin/env python3
"""Asks two servers the same random questions of the query language and reports where they differ.

    query_language.py mongodb://reference mongodb://candidate [--seed N] [--cases N] [--only filter|sort|projection|expression]
    query_language.py mongodb://reference --evaluator target/debug/examples/evaluate

Instead of a second server the candidate may be the evaluator alone (`cargo build -p query --example evaluate`). The
seed makes a run repeatable. Answers are compared as BSON, so types and the order of fields count; of errors the
code counts, unless --errors says otherwise.
"""

import argparse
import datetime
import random
import re
import struct
import subprocess
import sys

import bson
from bson import Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument

FIELDS = ["a", "b", "c"]
RAW = CodecOptions(document_class=RawBSONDocument)


class Generator:
    """Random documents and questions, dense in small values so that they meet."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *options):
        return self.random.choice(options)

    def chance(self, probability):
        return self.random.random() < probability

    def number(self):
        r = self.random
        return self.pick(
            r.randint(-3, 5), r.randint(-3, 5), Int64(r.randint(-3, 5)), float(r.randint(-3, 5)),
            r.randint(-30, 50) / 10, Decimal128(str(r.randint(-3, 5))), Decimal128("2.5"), r.randint(-(2**31), 2**31 - 1),
            Int64(2**53 + r.randint(-1, 1)), float(2**53), float("nan"), float("inf"), float("-inf"), -0.0,
        )

    def string(self):
        return "".join(self.pick("a", "b", "A", "é", "1") for _ in range(self.random.randint(0, 3)))

    def scalar(self):
        if self.chance(0.45):
            return self.number()
        if self.chance(0.5):
            return self.string()
        return self.pick(
            None, None, True, False, datetime.datetime(2020, 1, self.random.randint(1, 3)), ObjectId("5f5b2f1e1c9d440000a1b2c3"),
            MinKey(), MaxKey(), Regex("a"), Regex("a", "i"), Binary(b"ab"), Timestamp(5, 1),
        )

    def value(self, depth=2):
        if depth and self.chance(0.25):
            return [self.value(depth - 1) for _ in range(self.random.randint(0, 3))]
        if depth and self.chance(0.25):
            return self.document(depth - 1)
        return self.scalar()

    def document(self, depth=2):
        names = self.random.sample(FIELDS, self.random.randint(0, len(FIELDS)))
        if self.chance(0.1):
            names.append("0")
        return {name: self.value(depth) for name in names}

    def path(self):
        parts = [self.pick(*FIELDS)]
        while self.chance(0.35) and len(parts) < 4:
            parts.append(self.pick(*FIELDS, "0", "1"))
        return ".".join(parts)

    # --- filters

    def filter(self, depth=2):
        clauses = {}
        for _ in range(self.pick(1, 1, 1, 2, 3)):
            if depth and self.chance(0.2):
                operator = self.pick("$and", "$or", "$nor")
                clauses[operator] = [self.filter(depth - 1) for _ in range(self.random.randint(1, 3))]
            elif self.chance(0.05):
                clauses["$expr"] = {self.pick("$gt", "$eq", "$lte"): ["$" + self.name(), self.value(1)]}
            else:
                clauses[self.path()] = self.condition(depth)
        return clauses

    def name(self):
        return self.pick(*FIELDS)

    def condition(self, depth):
        if self.chance(0.3):
            return self.value(1)
        return {name: operand for name, operand in (self.operator(depth) for _ in range(self.pick(1, 1, 2)))}

    def operator(self, depth):
        name = self.pick(
            "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$type", "$regex", "$mod", "$size", "$all",
            "$elemMatch", "$not", "$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear",
        )
        return name, self.operand(name, depth)

    def operand(self, name, depth):
        r = self.random
        if name in ("$in", "$nin", "$all"):
            return [self.value(1) for _ in range(r.randint(0, 4))]
        if name == "$exists":
            return self.pick(True, False, 0, 1)
        if name == "$type":
            kinds = ["double", "string", "object", "array", "bool", "null", "int", "long", "decimal", "number", "date", 2, 16, -1]
            return self.pick(self.pick(*kinds), [self.pick(*kinds), self.pick(*kinds)])
        if name == "$regex":
            return self.pick("a", "^a", "b$", "a|b", Regex("A", "i"), "^.$", "é", "[", "")
        if name == "$mod":
            return self.pick([2, 0], [3, 1], [-2, 1], [2.7, 0.5], [0, 1], [Int64(4), Int64(-1)])
        if name == "$size":
            return self.pick(0, 1, 2, 2.0, -1, 1.5)
        if name.startswith("$bits"):
            return self.pick(1, 3, [0], [1, 5], Binary(b"\x03"), 0, [], [70], 2.0, -1, Binary(b"ab"))
        if name == "$elemMatch":
            return self.filter(0) if self.chance(0.5) else dict([self.operator(0)])
        if name == "$not":
            return self.pick(Regex("a"), dict([self.operator(0)])) if depth else {"$gt": self.scalar()}
        return self.value(1)

    # --- sorts and projections

    def sort(self):
        return {self.path(): self.pick(1, -1) for _ in range(self.pick(1, 1, 2, 3))}

    def projection(self):
        spec = {}
        kind = self.pick("in", "in", "out", "any")
        for _ in range(self.pick(1, 2, 3)):
            path = self.pick(self.path(), self.path(), self.path(), "_id")
            if self.chance(0.1):
                path += ".$"
            spec[path] = self.projected(kind)
        if self.chance(0.2):
            spec["_id"] = self.pick(0, 1)
        return spec

    def projected(self, kind):
        r = self.random
        plain = {"in": (1, True), "out": (0, False), "any": (0, 1)}[kind]
        if self.chance(0.6):
            return self.pick(*plain)
        return self.pick(
            self.pick(*plain), "$" + self.path().replace(".0", ".a").replace(".1", ".b"), "text",
            {"$slice": self.pick(r.randint(-3, 3), [r.randint(-3, 3), r.randint(-1, 3)])}, {"$elemMatch": self.filter(0)},
            {self.name(): self.pick(*plain)}, {"$literal": self.value(1)}, {self.name(): "$" + self.name()},
        )

    # --- expressions

    ARGUMENTS = {
        1: "abs ceil floor sqrt exp ln log10 trunc round size toLower toUpper strLenBytes strLenCP reverseArray first last "
           "objectToArray arrayToObject type isArray isNumber toInt toDouble toString toBool toDate toObjectId toLong toDecimal "
           "allElementsTrue anyElementTrue year month dayOfMonth hour minute second dayOfYear dayOfWeek week isoWeek isoWeekYear "
           "isoDayOfWeek not bsonSize binarySize sin cos asin atan degreesToRadians",
        2: "add subtract multiply divide mod pow log cmp eq ne gt gte lt lte concat concatArrays arrayElemAt in split strcasecmp "
           "setUnion setDifference setIsSubset setEquals setIntersection slice indexOfCP indexOfBytes indexOfArray ifNull range "
           "round trunc mergeObjects atan2 and or sum avg min max stdDevPop stdDevSamp",
        3: "substrBytes substrCP slice range cond add multiply ifNull indexOfCP indexOfArray sum avg min max concat",
    }

    def expression(self, depth=2):
        if not depth or self.chance(0.3):
            return self.pick("$" + self.name(), "$" + self.name(), "$" + self.name() + "." + self.name(), {"$literal": self.value(1)}, self.number(), self.text())
        if self.chance(0.15):
            return self.form(depth - 1)
        count = self.pick(1, 2, 2, 3)
        name = "$" + self.pick(*self.ARGUMENTS[count].split())
        return {name: [self.expression(depth - 1) for _ in range(count)]}

    def text(self):
        return "x" + self.string()

    def form(self, depth):
        e = lambda: self.expression(depth)
        return self.pick(
            {"$map": {"input": e(), "in": self.inner("$$this", depth)}},
            {"$filter": {"input": e(), "cond": self.inner("$$this", depth)}},
            {"$reduce": {"input": e(), "initialValue": e(), "in": {self.pick("$add", "$concat", "$eq", "$max"): ["$$value", "$$this"]}}},
            {"$let": {"vars": {"v": e()}, "in": self.inner("$$v", depth)}},
            {"$switch": {"branches": [{"case": e(), "then": e()}], "default": e()}},
            {"$zip": {"inputs": [e(), e()], "useLongestLength": self.pick(True, False)}},
            {"$trim": {"input": e(), "chars": self.pick("a", "ab")}}, {"$ltrim": {"input": e()}},
            {"$replaceAll": {"input": e(), "find": self.pick("a", "b"), "replacement": "zz"}},
            {"$regexFind": {"input": e(), "regex": self.pick("a", "(b)|(é)")}}, {"$regexFindAll": {"input": e(), "regex": "[ab]"}},
            {"$dateToString": {"date": e(), "format": "%Y-%m-%d %H:%M:%S.%L %j %u %V %G %w"}},
            {"$convert": {"input": e(), "to": self.pick("int", "long", "double", "decimal", "string", "bool", "date"), "onError": "bad", "onNull": "none"}},
            {"$getField": {"field": self.name(), "input": e()}}, {"$setField": {"field": self.name(), "input": e(), "value": e()}},
            {"$sortArray": {"input": e(), "sortBy": self.pick(1, -1, {"a": 1}, {"b": -1, "a": 1})}},
            {"$firstN": {"n": 2, "input": e()}}, {"$maxN": {"n": 2, "input": e()}},
            {"x": e(), "y": e()}, [e(), e()], {"$dateToParts": {"date": e()}},
            {"$dateAdd": {"startDate": e(), "unit": self.pick("month", "day", "hour", "week"), "amount": self.random.randint(-20, 20)}},
            {"$dateTrunc": {"date": e(), "unit": self.pick("month", "day", "hour", "week", "year"), "binSize": self.random.randint(1, 5)}},
            {"$dateDiff": {"startDate": e(), "endDate": e(), "unit": self.pick("month", "day", "hour", "week", "year", "quarter")}},
        )

    def inner(self, variable, depth):
        return self.pick(
            variable, {"$add": [variable, 1]}, {"$eq": [variable, self.expression(0)]}, {"$type": variable}, variable + "." + self.name(),
            {"$gt": [variable, self.scalar()]}, {"$concat": [variable, "!"]},
        )


class Server:
    def __init__(self, uri):
        import pymongo

        self.pymongo = pymongo
        self.client = pymongo.MongoClient(uri)
        self.database = self.client["compat_query_language"]

    def load(self, documents):
        self.database["c"].drop()
        self.database["c"].insert_many(documents)

    def find(self, question):
        try:
            answer = self.database.command("find", "c", batchSize=1000, codec_options=RAW, **question)
            return [bytes(document.raw) for document in answer["cursor"]["firstBatch"]]
        except bson.errors.InvalidBSON:
            return 0, "the server's message is not valid text"
        except self.pymongo.errors.OperationFailure as error:
            return error.code, re.sub(r"^(PlanExecutor error|Executor error) during \w+ command :: caused by :: ", "", error.details["errmsg"])


class Evaluator:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, document):
        self.process.stdin.write(bson.encode(document))
        self.process.stdin.flush()
        size = self.process.stdout.read(4)
        if len(size) < 4:
            sys.exit("the evaluator has ended")
        return size + self.process.stdout.read(struct.unpack("<i", size)[0] - 4)

    def load(self, documents):
        self.ask({"load": documents})

    def find(self, question):
        answer = bson.decode(self.ask(question), RAW)
        if "code" in answer:
            return answer["code"], answer["message"]
        return [bytes(document.raw) for document in answer["documents"]]


def questions(generator, kind):
    if kind == "filter":
        return {"filter": generator.filter()}
    if kind == "sort":
        return {"filter": {}, "sort": generator.sort()}
    if kind == "projection":
        return {"filter": generator.filter(0) if generator.chance(0.4) else {}, "projection": generator.projection()}
    return {"filter": {"_id": generator.random.randint(0, 39)}, "projection": {"_id": 1, "r": generator.expression()}}


def spelled(answer):
    if isinstance(answer, tuple):
        return f"error {answer[0]}: {answer[1]}"
    options = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
    return "[" + ", ".join(str(bson.decode(document, options)) for document in answer)[:600] + "]"


def same(a, b, messages):
    if isinstance(a, tuple) and isinstance(b, tuple):
        return messages == "none" or a[0] == b[0] and (messages == "code" or a[1] == b[1])
    return a == b


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference")
    parser.add_argument("candidate", nargs="?")
    parser.add_argument("--evaluator")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--only", choices=["filter", "sort", "projection", "expression"])
    parser.add_argument("--errors", dest="messages", choices=["none", "code", "message"], default="code", help="how closely errors are compared")
    parser.add_argument("--show", type=int, default=20)
    options = parser.parse_args()
    reference = Server(options.reference)
    candidate = Evaluator(options.evaluator) if options.evaluator else Server(options.candidate)
    generator = Generator(options.seed)
    kinds = [options.only] if options.only else ["filter", "sort", "projection", "expression"]
    differences = errors = 0
    for case in range(options.cases):
        if case % 100 == 0:
            documents = [{"_id": index, **generator.document(3)} for index in range(40)]
            reference.load(documents)
            candidate.load(documents)
        question = questions(generator, kinds[case % len(kinds)])
        expected, found = reference.find(question), candidate.find(question)
        errors += isinstance(expected, tuple)
        if same(expected, found, options.messages) or expected[:1] == (0,):
            continue
        differences += 1
        if differences <= options.show:
            report(question, expected, found, documents)
    print(f"{options.cases} cases, {errors} of them errors, {differences} differences (seed {options.seed})")
    return differences > 0


def report(question, expected, found, documents):
    print("question ", question)
    if isinstance(expected, list) and isinstance(found, list) and len(documents) > 1:
        ids = lambda answer: [bson.decode(document).get("_id") for document in answer]
        if question.get("sort"):
            print("order     ", ids(expected), ids(found))
        missing = [document for document in expected if document not in found]
        surplus = [document for document in found if document not in expected]
        expected, found = missing[:2], surplus[:2]
    print("reference", spelled(expected))
    print("candidate", spelled(found))
    if "_id" in question.get("filter", {}):
        print("document ", documents[question["filter"]["_id"]])
    print()


if __name__ == "__main__":
    sys.exit(main())
