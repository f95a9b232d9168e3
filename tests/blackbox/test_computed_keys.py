"""Text, geo and wildcard indexes, indexes with a collation, and more indexed fields than a MariaDB
table can hold: they find the right documents, and examine few others.

On MariaDB gateways compute their keys. SELKIE_KEYS_SEED picks other documents and questions.
"""

import json
import math
import os
import random
import unicodedata

import pytest
from bson import json_util
from pymongo.collation import Collation
from pymongo.errors import OperationFailure, WriteError

SEED = int(os.environ.get("SELKIE_KEYS_SEED", "1"))
DOCUMENTS, QUESTIONS = 100, 24
ENGLISH = Collation("en", strength=2)

WORDS = "red Red RED blue Blue green café Cafe CAFÉ running runs ran zebra Über uber".split()


def scalar(rng):
    return rng.choice([*WORDS, 1, 2, 2.5, -3, None, True, "x" * 900, "X" * 900 + "y"])


def value(rng):
    kind = rng.random()
    if kind < 0.6:
        return scalar(rng)
    if kind < 0.8:
        return [scalar(rng) for _ in range(rng.randrange(4))]
    return {"p": scalar(rng), "q": [scalar(rng)]}


def place(rng):
    point = lambda: [round(rng.uniform(-20, 20), 2), round(rng.uniform(-20, 20), 2)]
    kind = rng.random()
    if kind < 0.7:
        return {"type": "Point", "coordinates": point()}
    if kind < 0.9:
        x, y = point()
        return {"type": "Polygon", "coordinates": [[[x, y], [x + 2, y], [x + 2, y + 2], [x, y + 2], [x, y]]]}
    return {"type": "LineString", "coordinates": [point(), point()]}


def document(rng, number):
    made = {"_id": number}
    parts = {
        "a": value,
        "b": value,
        "list": lambda rng: [{"k": scalar(rng), "v": value(rng)} for _ in range(rng.randrange(3))],
        "words": lambda rng: " ".join(rng.choice(WORDS) for _ in range(rng.randrange(6))),
        "at": place,
        "flat": lambda rng: [rng.uniform(-20, 20), rng.uniform(-20, 20)],
    }
    for name, part in parts.items():
        if rng.random() < 0.8:
            made[name] = part(rng)
    return made


def box(rng):
    x, y, size = rng.uniform(-20, 15), rng.uniform(-20, 15), rng.uniform(1, 10)
    return [[x, y], [x + size, y], [x + size, y + size], [x, y + size], [x, y]]


def comparison(rng):
    kind = rng.randrange(7)
    if kind < 2:
        return scalar(rng)
    if kind == 2:
        return {"$in": [scalar(rng) for _ in range(3)]}
    if kind == 3:
        return {"$gte": scalar(rng), "$lt": scalar(rng)}
    if kind == 4:
        return {rng.choice(["$gt", "$lte", "$gte", "$lt"]): scalar(rng)}
    if kind == 5:
        return {"$not": {"$gt": scalar(rng)}}
    return {"$exists": rng.random() < 0.5}


def of_values(rng):
    path = rng.choice(["a", "a", "b", "list.k", "list.v", "a.p", "a.q"])
    asked = {path: comparison(rng)}
    if rng.random() < 0.3:
        asked[rng.choice(["b", "list.v"])] = comparison(rng)
    if rng.random() < 0.1:
        return {"$or": [{"a": comparison(rng)}, {"b": comparison(rng)}]}
    if rng.random() < 0.1:
        return {"list": {"$elemMatch": {"k": comparison(rng), "v": comparison(rng)}}}
    return asked


def of_words(rng):
    words = [rng.choice(["", "", "-"]) + rng.choice(WORDS) for _ in range(rng.randrange(1, 4))]
    return {"$text": {"$search": " ".join(words)}}


def on_sphere(rng):
    polygon = {"type": "Polygon", "coordinates": [box(rng)]}
    kind = rng.randrange(4)
    if kind == 0:
        return {"at": {"$geoWithin": {"$geometry": polygon}}}
    if kind == 1:
        return {"at": {"$geoIntersects": {"$geometry": polygon}}}
    if kind == 2:
        return {"at": {"$geoWithin": {"$centerSphere": [[rng.uniform(-20, 20), rng.uniform(-20, 20)], rng.uniform(0.01, 0.2)]}}}
    center = {"type": "Point", "coordinates": [rng.uniform(-20, 20), rng.uniform(-20, 20)]}
    farthest = {"$maxDistance": rng.uniform(1e4, 2e6)} if rng.random() < 0.6 else {}
    return {"at": {"$near": {"$geometry": center, **farthest}}}


def on_plane(rng):
    corner = [rng.uniform(-20, 15), rng.uniform(-20, 15)]
    if rng.random() < 0.5:
        return {"flat": {"$geoWithin": {"$box": [corner, [corner[0] + 5, corner[1] + 8]]}}}
    farthest = {"$maxDistance": rng.uniform(1, 10)} if rng.random() < 0.6 else {}
    return {"flat": {"$near": corner, **farthest}}


def on_sphere_behind(rng):
    """A location, and the fields before it in indexes of this kind."""
    others = {"a": comparison(rng)} if rng.random() < 0.6 else {"list.k": comparison(rng), "b": comparison(rng)}
    return {**on_sphere(rng), **others}


def on_sphere_of_some(rng):
    return {**on_sphere(rng), "b": {"$exists": True}}


KINDS = {
    "collation": ([({"a": 1}, {"collation": ENGLISH})], of_values),
    "collation, compound": ([({"words": 1, "list.k": -1}, {"collation": ENGLISH}), ({"list.k": 1, "list.v": 1}, {"collation": ENGLISH})], of_values),
    "collation, sparse": ([({"list.k": 1}, {"collation": ENGLISH, "sparse": True})], of_values),
    "collation, partial": ([({"a": 1}, {"collation": ENGLISH, "partialFilterExpression": {"a": {"$gt": "b"}}})], of_values),
    "no room": ([({"a": 1}, {})], of_values),
    "no room, compound": ([({"words": 1, "list.k": -1}, {}), ({"list.k": 1, "list.v": 1}, {})], of_values),
    "no room, sparse": ([({"list.k": 1}, {"sparse": True})], of_values),
    "no room, partial": ([({"a": 1}, {"partialFilterExpression": {"a": {"$gt": "b"}}})], of_values),
    "text": ([({"words": "text", "a": "text"}, {"default_language": "none"})], of_words),
    "2dsphere": ([({"at": "2dsphere"}, {})], on_sphere),
    "2dsphere, compound": ([({"a": 1, "at": "2dsphere"}, {}), ({"list.k": -1, "b": 1, "at": "2dsphere", "words": 1}, {})], on_sphere_behind),
    "2dsphere, of some": ([({"at": "2dsphere"}, {"partialFilterExpression": {"b": {"$exists": True}}})], on_sphere_of_some),
    "2d": ([({"flat": "2d"}, {})], on_plane),
    "all fields, partial": ([({"$**": 1}, {"partialFilterExpression": {"a": {"$gt": "b"}}})], of_values),
    "all fields": ([({"$**": 1}, {})], of_values),
    "some fields": ([({"$**": 1}, {"wildcardProjection": {"a": 1, "list": 1}})], of_values),
    "fields within one": ([({"list.$**": 1}, {})], of_values),
}


def create(collection, kind):
    if kind.startswith("no room"):
        names = [f"other{number}" for number in range(20)]
        collection.database.command("createIndexes", collection.name, indexes=[{"key": {name: 1}, "name": name} for name in names])
    for keys, options in KINDS[kind][0]:
        collection.create_index(list(keys.items()), **options)


def folded(text):
    return "".join(char for char in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(char))


def words_of(document):
    values = document.get("a") if isinstance(document.get("a"), list) else [document.get("a")]
    texts = [document.get("words", ""), *(value for value in values if isinstance(value, str))]
    return {word for text in texts for word in folded(text).split()}


def has_words(document, search):
    wanted = {folded(word) for word in search.split() if not word.startswith("-")}
    unwanted = {folded(word[1:]) for word in search.split() if word.startswith("-")}
    words = words_of(document)
    return bool(words & wanted) and not words & unwanted


def distance(document, path, center):
    """Returns the distance from a point in the unit of the index; `None` if the value is not a
    point."""
    if path == "flat":
        there = document.get(path)
        return there and math.dist(there, center)
    if document.get(path, {}).get("type") != "Point":
        return None
    (x1, y1), (x2, y2) = [map(math.radians, point) for point in (document[path]["coordinates"], center)]
    sides = math.sin((y2 - y1) / 2) ** 2 + math.cos(y1) * math.cos(y2) * math.sin((x2 - x1) / 2) ** 2
    return 2 * 6378100 * math.asin(math.sqrt(sides))


def expected_of(plain, asked, options):
    """Returns the numbers of the expected documents, computed without an index."""
    documents = list(plain.find({}))
    if "$text" in asked:
        return {one["_id"] for one in documents if has_words(one, asked["$text"]["$search"])}
    path, condition = next(iter(asked.items()))
    if isinstance(condition, dict) and "$near" in condition:
        near = condition["$near"]
        center = near["$geometry"]["coordinates"] if path == "at" else near
        farthest = (near if path == "at" else condition).get("$maxDistance", math.inf)
        away = {one["_id"]: distance(one, path, center) for one in documents}
        others = plain.find({other: test for other, test in asked.items() if other != path}, {"_id": 1})
        return {one["_id"] for one in others if away[one["_id"]] is not None and away[one["_id"]] <= farthest}
    return {one["_id"] for one in plain.find(asked, {"_id": 1}, **options)}


def compare(collection, plain, rng, kind, questions=QUESTIONS):
    """Runs the query with the indexes and without any."""
    fetched = 0
    for _ in range(questions):
        asked = KINDS[kind][1](rng)
        options = {"collation": ENGLISH} if kind.startswith("collation") and rng.random() < 0.8 else {}
        if kind.endswith(", partial") and "a" in asked:
            asked["$and"] = [{"a": {"$gt": "b"}}]
        expected = expected_of(plain, asked, options)
        found = list(collection.find(asked, **options))
        assert len({one["_id"] for one in found}) == len(found)
        if "$near" in json_util.dumps(asked) and "at" in asked:
            found = [one for one in found if one["at"]["type"] == "Point"]
        assert {one["_id"] for one in found} == expected, (SEED, kind, json_util.dumps(asked), options)
        if "$near" not in json_util.dumps(asked):
            assert collection.count_documents(asked, **options) == len(expected)
        fetched += len(found)
    assert fetched > 0


def both(db, kind):
    """A collection with the indexes, and one without any."""
    create(db.things, kind)
    return db.things, db.plain


def change(rng, collections, count):
    for _ in range(count):
        number = rng.randrange(DOCUMENTS)
        made = document(rng, number)
        kind = rng.randrange(3)
        for collection in collections:
            match kind:
                case 0:
                    collection.delete_one({"_id": number})
                case 1:
                    collection.replace_one({"_id": number}, made, upsert=True)
                case 2:
                    collection.update_one({"_id": number}, {"$set": {"a": made.get("a")}})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_answers_are_the_same_with_and_without_an_index(db, when, kind):
    rng = random.Random(f"{SEED} {when} {kind}")
    documents = [document(rng, number) for number in range(DOCUMENTS)]
    if when == "before":
        things, plain = both(db, kind)
    db.things.insert_many(documents)
    db.plain.insert_many(documents)
    if when == "after":
        things, plain = both(db, kind)
    compare(things, plain, rng, kind)
    change(rng, (things, plain), DOCUMENTS // 3)
    compare(things, plain, rng, kind, QUESTIONS // 2)


def test_parallel_arrays_are_refused(db):
    create_index = lambda: db.things.create_index([("a", 1), ("b", 1)], collation=ENGLISH)
    create_index()
    with pytest.raises(WriteError) as refused:
        db.things.insert_one({"a": [1, 2], "b": [3, 4]})
    assert refused.value.code == 171
    db.things.insert_one({"_id": 1, "a": [1, 2], "b": 3})
    with pytest.raises(WriteError) as refused:
        db.things.update_one({"_id": 1}, {"$set": {"b": [3, 4]}})
    assert refused.value.code == 171
    db.things.drop_indexes()
    db.things.insert_one({"a": [1, 2], "b": [3, 4]})
    with pytest.raises(OperationFailure) as refused:
        create_index()
    assert refused.value.code == 171


NEAREST = 2000


def many_places(rng):
    for number in range(NEAREST):
        point = [round(rng.uniform(-60, 60), 3), round(rng.uniform(-60, 60), 3)]
        yield {"_id": number, "at": {"type": "Point", "coordinates": point}, "flat": point, "half": number % 2}


@pytest.mark.parametrize("path", ["at", "flat"])
def test_the_nearest_are_found_without_a_full_scan(db, path):
    rng = random.Random(f"{SEED} nearest {path}")
    db.things.insert_many(many_places(rng))
    db.things.create_index({path: "2dsphere" if path == "at" else "2d"})
    documents = list(db.things.find())
    for round_ in range(6):
        center = [rng.uniform(-50, 50), rng.uniform(-50, 50)]
        near = {"$near": {"$geometry": {"type": "Point", "coordinates": center}} if path == "at" else center}
        away = lambda one: distance({"at": one["at"], "flat": one["flat"]}, path, center)
        question, places = {path: near}, documents
        if round_ % 2:
            question, places = {path: near, "half": 1}, [one for one in documents if one["half"]]
        places = sorted(places, key=lambda one: (away(one), one["_id"]))
        expected = [one["_id"] for one in places]
        found = [one["_id"] for one in db.things.find(question).limit(10)]
        assert found == expected[:10], (SEED, center)
        assert [one["_id"] for one in db.things.find(question).skip(5).limit(7)] == expected[5:12]
        cursor = db.things.find(question).batch_size(67)
        assert [one["_id"] for one in cursor] == expected, (SEED, center)
        find = {"find": "things", "filter": question, "limit": 10}
        figures = db.command("explain", find, verbosity="executionStats")["executionStats"]
        assert figures["nReturned"] == 10
        assert figures["totalDocsExamined"] <= NEAREST / 2, figures["totalDocsExamined"]


@pytest.mark.parametrize("front", [{"half": 1}, {"tenth": -1, "half": 1}], ids=["one field", "two fields"])
def test_locations_are_found_after_other_fields(db, front):
    """By the cells of the locations, after each of the queried values."""
    rng = random.Random(f"{SEED} behind {front}")
    db.things.insert_many([{**one, "tenth": one["_id"] % 10} for one in many_places(rng)])
    db.things.create_index([*front.items(), ("at", "2dsphere")])
    documents = list(db.things.find())
    for values in ({"half": 1, "tenth": 3}, {"half": {"$in": [0, 1]}, "tenth": {"$in": [3, 4]}}):
        has = lambda one: all(one[name] in (asked["$in"] if isinstance(asked, dict) else [asked]) for name, asked in values.items())
        center = [rng.uniform(-40, 40), rng.uniform(-40, 40)]
        away = {one["_id"]: distance(one, "at", center) for one in documents if has(one)}
        nearest = sorted(away, key=lambda number: (away[number], number))
        farthest = (away[nearest[30]] + away[nearest[31]]) / 2
        circle = {"at": {"$geoWithin": {"$centerSphere": [center, farthest / 6378100]}}, **values}
        near = {"at": {"$near": {"$geometry": {"type": "Point", "coordinates": center}, "$maxDistance": farthest}}, **values}
        assert {one["_id"] for one in db.things.find(circle)} == set(nearest[:31]), (SEED, center)
        assert [one["_id"] for one in db.things.find(near)] == nearest[:31], (SEED, center)
        assert [one["_id"] for one in db.things.find(near).limit(5)] == nearest[:5], (SEED, center)
        for question, limit in ((circle, 0), (near, 0), (near, 5)):
            explained = db.command("explain", {"find": "things", "filter": question, "limit": limit}, verbosity="executionStats")
            assert "2dsphere" in json.dumps(explained["queryPlanner"]["winningPlan"])
            # Fields outside of the index require more documents to be examined.
            others = 5 if "tenth" not in front else 1
            assert explained["executionStats"]["totalDocsExamined"] <= 31 * 5 * others, (question, limit)


def test_a_front_of_many_values_is_read_as_such(db):
    """Places behind a range are not looked up, but the range is."""
    db.things.insert_many(many_places(random.Random(f"{SEED} many")))
    db.things.create_index([("half", 1), ("at", "2dsphere")])
    circle = {"$geoWithin": {"$centerSphere": [[0, 0], 0.5]}}
    for front in ({"$gt": 0}, {"$in": [1, *range(5, 90)]}):
        question = {"half": front, "at": circle}
        figures = db.command("explain", {"find": "things", "filter": question}, verbosity="executionStats")["executionStats"]
        expected = [one["_id"] for one in db.things.find({"half": 1, "at": circle})]
        assert figures["nReturned"] == len(expected) == len(list(db.things.find(question)))
        assert figures["totalDocsExamined"] <= NEAREST / 2
    near = {"half": {"$gt": 0}, "at": {"$near": {"$geometry": {"type": "Point", "coordinates": [1, 1]}}}}
    by_one = [one["_id"] for one in db.things.find({**near, "half": 1})]
    assert [one["_id"] for one in db.things.find(near)] == by_one


def test_reads_stop_at_the_maximum_distance(db):
    rng = random.Random(f"{SEED} farthest")
    db.things.insert_many(many_places(rng))
    db.things.create_index({"at": "2dsphere"})
    documents = list(db.things.find())
    center = [rng.uniform(-40, 40), rng.uniform(-40, 40)]
    nearest = sorted(documents, key=lambda one: (distance(one, "at", center), one["_id"]))
    farthest = (distance(nearest[150], "at", center) + distance(nearest[151], "at", center)) / 2
    near = {"at": {"$near": {"$geometry": {"type": "Point", "coordinates": center}, "$maxDistance": farthest}}}
    figures = db.command("explain", {"find": "things", "filter": near}, verbosity="executionStats")["executionStats"]
    assert figures["nReturned"] == 151 and figures["totalDocsExamined"] <= 151 * 5
    exactly = distance(nearest[20], "at", center)
    near["at"]["$near"]["$maxDistance"] = exactly * 1.0000001
    assert [one["_id"] for one in db.things.find(near)] == [one["_id"] for one in nearest[:21]]


def test_many_in_one_place_are_all_found(db):
    db.things.create_index({"at": "2dsphere"})
    pad = "x" * 20_000
    here = {"type": "Point", "coordinates": [1.5, 2.5]}
    there = {"type": "Point", "coordinates": [1.5, 2.6]}
    # More than a ring's documents that are held.
    db.things.insert_many([{"_id": number, "at": here if number % 3 else there, "pad": pad} for number in range(900)])
    found = [one["_id"] for one in db.things.find({"at": {"$near": {"$geometry": here}}}, {"_id": 1}).batch_size(100)]
    assert sorted(found) == list(range(900))
    assert all(number % 3 for number in found[:600]) and not any(number % 3 for number in found[600:])


@pytest.mark.mariadb_only
@pytest.mark.parametrize("kind", KINDS)
def test_rows_written_by_sql_are_found(server, db, kind):
    """Rows that SQL inserts, changes and deletes without the gateway; few at a time, and many."""
    rng = random.Random(f"{SEED} {kind}")
    things, plain = both(db, kind)
    things.insert_one({"_id": -1})
    plain.insert_one({"_id": -1})
    with server.mariadb.connect(database=db.name) as connection, connection.cursor() as cursor:
        for number in range(DOCUMENTS):
            for table in ("things", "plain"):
                its = random.Random(f"{SEED} {kind} {number}")
                made = json_util.dumps(document(its, number))
                cursor.execute(f"INSERT INTO {table} (doc) VALUES (%s)", (made,))
                if its.random() < 0.3:
                    cursor.execute(f"UPDATE {table} SET doc = %s WHERE id = %s", (json_util.dumps(document(its, number)), str(number)))
                if its.random() < 0.1:
                    cursor.execute(f"DELETE FROM {table} WHERE id = %s", (str(number),))
            if number in (20, 40):
                connection.commit()
                compare(things, plain, rng, kind, 10)
        connection.commit()
    compare(things, plain, rng, kind, QUESTIONS // 2)


@pytest.mark.mariadb_only
def test_a_hint_returns_the_documents_of_the_index(server, db):
    """Also of rows that no gateway has computed the keys of."""
    db.things.create_index([("words", "text")], name="text")
    db.things.create_index("a", name="sparse", sparse=True, collation=ENGLISH)
    db.things.insert_one({"_id": 0, "words": "red", "a": 1})
    with server.mariadb.connect(database=db.name) as connection, connection.cursor() as cursor:
        for made in [{"_id": 1, "words": "blue"}, {"_id": 2, "a": 5}, {"_id": 3, "words": 5}]:
            cursor.execute("INSERT INTO things (doc) VALUES (%s)", (json_util.dumps(made),))
        connection.commit()
    found = lambda **options: sorted(one["_id"] for one in db.things.find({}, **options))
    assert found(hint="text") == [0, 1]
    assert found(hint="sparse", collation=ENGLISH) == [0, 2]
    assert found() == [0, 1, 2, 3]
    assert db.things.count_documents({}, hint="text") == 2


@pytest.mark.mariadb_only
def test_gateways_work_independently(server, own_server, db, database_name):
    rng, kind = random.Random(SEED), "collation, compound"
    other = own_server(mariadb=server.mariadb)
    with other.client() as client:
        theirs = client[database_name].things
        assert theirs.count_documents({}) == 0
        things, plain = both(db, kind)
        for first in range(0, DOCUMENTS, 50):
            documents = [document(rng, number) for number in range(first, first + 50)]
            (theirs if first % 100 else things).insert_many(documents)
            plain.insert_many(documents)
            compare(theirs, plain, rng, kind, 15)
            compare(things, plain, rng, kind, 15)


def stages(plan):
    found = [plan["stage"]]
    for inner in [plan.get("inputStage"), *plan.get("inputStages", [])]:
        found += stages(inner) if inner else []
    return found


EXPLAINED = {
    "collation": ({"a": "RED"}, "IXSCAN", ({"a": 1}, {"collation": ENGLISH})),
    "text": ({"$text": {"$search": "rare"}}, "TEXT_MATCH", ({"words": "text"}, {})),
    "2dsphere": ({"at": {"$geoWithin": {"$centerSphere": [[0, 0], 0.001]}}}, "IXSCAN", ({"at": "2dsphere"}, {})),
    "2d": ({"flat": {"$geoWithin": {"$box": [[0, 0], [1, 1]]}}}, "IXSCAN", ({"flat": "2d"}, {})),
    "all fields": ({"a": "red"}, "IXSCAN", ({"$**": 1}, {})),
}


@pytest.mark.parametrize("kind", EXPLAINED)
def test_few_other_documents_are_examined(db, kind):
    asked, stage, (keys, options) = EXPLAINED[kind]
    # Most are far from the queried location.
    rest = [
        {"_id": number, "a": f"other {number}", "words": f"common {number}", "flat": [-100 + number / 50, -150],
         "at": {"type": "Point", "coordinates": [-100 + number / 50, -60]}} for number in range(3000)
    ]
    sought = [{"_id": -1 - number, "a": "red", "words": "rare", "flat": [0.5, 0.5], "at": {"type": "Point", "coordinates": [0.001, 0.001]}} for number in range(7)]
    db.things.insert_many(rest + sought)
    name = db.things.create_index(list(keys.items()), **options)
    collation = {"collation": {"locale": "en", "strength": 2}} if kind == "collation" else {}
    command = {"explain": {"find": "things", "filter": asked, **collation}, "verbosity": "executionStats"}
    explained = db.command(command)
    assert stage in stages(explained["queryPlanner"]["winningPlan"]), json.dumps(explained, default=str)
    figures = explained["executionStats"]
    assert figures["nReturned"] == 7
    assert figures["totalDocsExamined"] <= 1.1 * 7 + 10
    if kind != "text":
        hinted = db.things.find(asked, hint=name, collation=options.get("collation"))
        assert len(list(hinted)) == 7
    db.things.drop_index(name)
    if kind != "text":
        assert len(list(db.things.find(asked, collation=options.get("collation")))) == 7


@pytest.mark.mariadb_only
def test_dropping_removes_all_traces(server, db):
    def tables():
        with server.mariadb.connect(database=db.name) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW TABLES")
            return {name for (name,) in cursor.fetchall() if name.startswith(("~keys~", "~pending~"))}

    def make():
        db.things.insert_many([{"a": "red", "words": "red"} for _ in range(10)])
        db.things.create_index([("a", 1)], collation=ENGLISH, name="a")
        db.things.create_index([("words", "text")], name="words")
        assert len(tables()) == 4

    make()
    db.things.drop_index("a")
    assert len(tables()) == 2
    db.things.drop_indexes()
    assert tables() == set()
    db.things.drop()
    make()
    db.things.drop()
    assert tables() == set()
    make()
    db.things.rename("others")
    assert len(tables()) == 4
    db.others.insert_one({"a": "RED", "words": "red"})
    assert len(list(db.others.find({"a": "Red"}, collation=ENGLISH))) == 11
    assert len(list(db.others.find({"$text": {"$search": "red"}}))) == 11
    db.client.drop_database(db.name)
    assert db.list_collection_names() == []
