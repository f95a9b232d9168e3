"""Indexes on MariaDB that share fields: their common columns in the table, and the columns that
remain when one is dropped."""

import hashlib
from itertools import permutations

import pytest
from bson import Int64
from pymongo.errors import DuplicateKeyError, OperationFailure

pytestmark = pytest.mark.mariadb_only


def sql_name(name: str) -> str:
    """The name of an index's key."""
    return f"{name}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"


@pytest.fixture
def columns(sql, db):
    """The columns of a collection's indexes."""

    def names():
        rows = sql(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = 'things' "
            "AND COLUMN_NAME LIKE '%%~%%'", db.name,
        )
        return {name for (name,) in rows}

    return names


VALUES = [None, 1, 2.5, Int64(2**53), "x", "y" * 479, "y" * 481, "y" * 600, True, {"d": 1}]


def fill(db):
    things = [{"_id": number, "a": a, "b": b} for number, (a, b) in enumerate((a, b) for a in VALUES for b in VALUES)]
    db.things.insert_many([*things, {"_id": 1000, "a": 1}, {"_id": 1001, "b": 1}])


def check(db, names):
    """Every index finds the same documents as a full scan, in the same order."""
    filters = [{"a": {"$gt": 1}}, {"a": "x", "b": {"$gte": "x"}}, {"b": {"$in": ["y" * 479, "y" * 600, 2.5]}}, {"a": None}]
    for filter in filters:
        expected = sorted(one["_id"] for one in db.things.find(filter, hint={"$natural": 1}))
        assert expected
        for name in names:
            assert sorted(one["_id"] for one in db.things.find(filter, hint=name)) == expected, (filter, name)
    for sort in ([("a", 1), ("b", 1), ("_id", 1)], [("b", -1), ("a", 1), ("_id", 1)]):
        expected = [one["_id"] for one in db.things.find({"a": "x"}, hint={"$natural": 1}).sort(sort)]
        assert [one["_id"] for one in db.things.find({"a": "x"}).sort(sort)] == expected


def test_a_field_has_its_columns_once(db, sql, columns):
    db.things.create_index("a", name="one")
    assert len(columns()) == 3
    db.things.create_index([("a", 1), ("b", 1)], name="two")
    # Those of `b`, and of both fields and the index whether keys are in order.
    assert len(columns()) == 3 + 3 + 3
    fill(db)
    db.things.create_index([("b", -1), ("a", 1)], name="back")
    assert len(columns()) == 9 + 1
    sql("INSERT INTO things (doc) VALUES (%s)", '{"_id": 2000, "a": "x", "b": "xyz"}')
    check(db, ["one", "two", "back"])
    # Keys of their own.
    db.things.create_index("a", name="some", sparse=True)
    db.things.create_index([("a", 1), ("b", 1), ("_id", 1)], name="each", unique=True)
    db.things.create_index("b", name="few", partialFilterExpression={"a": {"$gt": 1}})
    assert {name for name in columns() if name.startswith("some~")} == {f"{sql_name('some')}.0"}
    check(db, ["one", "two", "back", "each"])
    assert db.things.count_documents({"a": {"$gt": 1}}, hint="few") == db.things.count_documents({"a": {"$gt": 1}})
    for name, left in [("two", {"one", "back", "some", "each", "few"}), ("one", {"back", "some", "each", "few"})]:
        db.things.drop_index(name)
        assert {one["name"] for one in db.things.list_indexes()} - {"_id_"} == left
        check(db, left & {"one", "back", "each"})
    db.things.drop_index("back")
    # The columns of a partial index's filter are dropped with it, not before.
    db.things.drop_index("each")
    assert db.things.count_documents({"a": {"$gt": 1}}, hint="few") == db.things.count_documents({"a": {"$gt": 1}})
    db.things.drop_indexes()
    assert columns() == set()
    check(db, [])


def test_many_indexes_over_few_fields(db, columns):
    db.things.insert_one({"_id": 1, "a": 1, "b": 2, "c": 3})
    keys = [[(path, 1) for path in paths] for paths in permutations("abcd", 3)]
    for key in keys:
        db.things.create_index(key)
    assert len(list(db.things.list_indexes())) == 1 + len(keys)
    assert len(columns()) == 4 * 4 + len(keys)
    assert db.things.find_one({"c": 3, "b": 2}) == {"_id": 1, "a": 1, "b": 2, "c": 3}
    db.things.drop_indexes()
    assert columns() == set()


def test_an_index_over_a_known_field_is_built_beside_writers(db, sql):
    """A table that is copied is another one; while it is, writers wait."""

    def table():
        return sql("SELECT TABLE_ID FROM information_schema.INNODB_SYS_TABLES WHERE NAME = %s", f"{db.name}/things")

    fill(db)
    db.things.create_index("a")
    before = table()
    db.things.create_index([("a", -1)], name="down")
    assert table() == before
    check(db, ["a_1", "down"])
    db.things.create_index("b")
    assert table() != before


def test_an_index_dropped_by_sql_is_not_used(db, sql):
    """One key of several over the same columns."""
    fill(db)
    db.things.create_index("a", name="one")
    db.things.create_index([("a", -1)], name="down")
    sql(f"ALTER TABLE things DROP KEY `{sql_name('down')}`")
    assert [one["name"] for one in db.things.list_indexes()] == ["_id_", "one"]
    db.things.create_index([("a", -1)], name="down")
    # Neither is an unreadable index.
    sql("INSERT INTO selkie.indexes (schema_name, table_name, position, sql_name, spec) VALUES (%s, 'things', 9, 'x', 'none')", db.name)
    assert [one["name"] for one in db.things.list_indexes()] == ["_id_", "one", "down"]
    check(db, ["one", "down"])


def test_gateways_compute_keys_beyond_the_limits_of_a_table(db, sql, columns):
    """One command with more fields than MariaDB has room for, and more of them afterwards."""
    fields = [f"field{number}" for number in range(30)]
    db.things.insert_many([{"_id": n, **{name: n * at % 101 for at, name in enumerate(fields, 1)}} for n in range(500)])
    db.command("createIndexes", "things", indexes=[{"key": {name: 1}, "name": name} for name in fields])
    for key, options in [({"field0": 1, "last": -1}, {}), ({"last": 1}, {"sparse": True}), ({"last": 1, "field1": 1}, {})]:
        db.things.create_index(list(key.items()), **options)
    sql("INSERT INTO things (doc) VALUES (%s)", '{"_id": 1000, "field29": 7, "last": [1, "x"]}')
    db.things.insert_one({"_id": 1001, "field29": 7, "last": "x"})
    names = [one["name"] for one in db.things.list_indexes()]
    assert names == ["_id_", *fields, "field0_1_last_-1", "last_1", "last_1_field1_1"]
    kept = {name for name in columns() if name.endswith(".0")}
    assert 10 < len(kept) < 20 and len(columns()) > 3 * (30 - len(kept))
    for at, name in enumerate(fields, 1):
        filters = [{name: 7}, {name: {"$gt": 95}}, {name: {"$in": [3, 5]}}, {name: None}]
        for filter in filters:
            expected = sorted(one["_id"] for one in db.things.find(filter, hint={"$natural": 1}))
            explained = db.things.find(filter).explain()
            assert sorted(one["_id"] for one in db.things.find(filter)) == expected, filter
            assert "COLLSCAN" not in str(explained["queryPlanner"]["winningPlan"]), filter
            assert explained["executionStats"]["totalDocsExamined"] <= 1.1 * len(expected) + 10, filter
        ascending = [one["_id"] for one in db.things.find({}, hint={"$natural": 1}).sort([(name, 1), ("_id", 1)]).limit(10)]
        assert [one["_id"] for one in db.things.find().sort([(name, 1), ("_id", 1)]).limit(10)] == ascending
    assert [one["_id"] for one in db.things.find({"last": "x"}).sort("_id")] == [1000, 1001]
    assert db.things.count_documents({}, hint="last_1") == 2
    # The same for unique indexes. These documents do not have the field, so all have the same key.
    for keys in ("another", [("another", 1), ("last", 1)]):
        with pytest.raises(OperationFailure) as refused:
            db.things.create_index(keys, unique=True)
        assert refused.value.code == 11000
    assert [one["name"] for one in db.things.list_indexes()] == names
    # Free columns are reused.
    for name in fields[:5]:
        db.things.drop_index(name)
    db.things.create_index("another", unique=True, sparse=True)
    db.things.insert_one({"_id": 1002, "another": 1})
    with pytest.raises(DuplicateKeyError):
        db.things.insert_one({"_id": 1003, "another": 1})
    db.things.drop_indexes()
    assert columns() == set()
    assert not [name for (name,) in sql("SHOW TABLES") if "~" in name]


def test_without_triggers_there_is_room_for_fewer_indexes(own_server, mariadb):
    """An index that would serve nothing is refused."""
    mariadb.sql("CREATE USER IF NOT EXISTS calm@localhost IDENTIFIED BY 'x'")
    mariadb.sql("GRANT ALL ON *.* TO calm@localhost")
    mariadb.sql("REVOKE TRIGGER ON *.* FROM calm@localhost")

    class Calm:
        def url(self):
            return mariadb.url().replace("root@", "calm:x@")

    with own_server(mariadb=Calm()).client() as client:
        things = client["calm"]["things"]
        things.insert_one({"_id": 1, "field0": 1})
        made = 0
        with pytest.raises(OperationFailure) as refused:
            for made in range(40):
                things.create_index(f"field{made}")
        assert refused.value.code == 67 and "TRIGGER" in str(refused.value)
        assert len(list(things.list_indexes())) == 1 + made and 15 < made < 25
        things.insert_one({"_id": 2, "field0": 1})
        assert things.count_documents({"field0": 1}) == 2
        client.drop_database("calm")


def test_the_cached_definition_of_a_table_dropped_by_sql(db, sql):
    """Tables with the elements of arrays, which went with it."""
    for _ in range(2):
        db.things.create_index("a", name="one")
        db.things.insert_many([{"_id": 1, "a": ["x", "y"]}, {"_id": 2, "a": "y"}])
        assert [one["_id"] for one in db.things.find({"a": "y"}, hint="one").sort("_id")] == [1, 2]
        elements = [name for (name,) in sql("SHOW TABLES LIKE '~elements~%'")]
        assert len(elements) == 1
        sql(f"DROP TABLE things, `{elements[0]}`")
