"""Unique indexes over arrays: an element is in at most one document, whichever client writes it.

What MongoDB says to random documents is compared in compat (`indexes: unique over arrays`).
"""

import json
import threading

import pymysql
import pytest
from pymongo import IndexModel
from pymongo.errors import DuplicateKeyError, OperationFailure

USERS = [{"_id": "ann", "emails": [{"address": "a@x", "verified": True}]}, {"_id": "bob", "emails": [{"address": "b@x"}, {"address": "c@x"}]}]


@pytest.fixture
def users(db):
    """The form of Meteor's accounts."""
    db.users.create_index("emails.address", unique=True, sparse=True)
    db.users.insert_many(USERS)
    return db.users


def taken(write, *arguments, **options):
    with pytest.raises(DuplicateKeyError) as error:
        write(*arguments, **options)
    return error.value.details


def test_every_kind_of_write_claims_elements(users):
    told = taken(users.insert_one, {"_id": "eve", "emails": [{"address": "d@x"}, {"address": "c@x"}]})
    assert (told["keyPattern"], told["keyValue"]) == ({"emails.address": 1}, {"emails.address": "c@x"})
    taken(users.update_one, {"_id": "ann"}, {"$push": {"emails": {"address": "b@x"}}})
    taken(users.update_one, {"_id": "ann"}, {"$set": {"emails.0.address": "b@x"}})
    taken(users.update_one, {"_id": "ann"}, {"$set": {"emails": {"address": "b@x"}}})
    taken(users.replace_one, {"_id": "ann"}, {"emails": [{"address": "b@x"}]})
    taken(users.find_one_and_update, {"_id": "eve"}, {"$set": {"emails": [{"address": "b@x"}]}}, upsert=True)
    assert list(users.find().sort("_id", 1)) == USERS


def test_an_element_is_free_again(users):
    users.update_one({"_id": "bob"}, {"$pull": {"emails": {"address": "c@x"}}})
    users.insert_one({"_id": "eve", "emails": [{"address": "c@x"}, {"address": "c@x"}]})
    users.delete_one({"_id": "ann"})
    users.update_one({"_id": "eve"}, {"$push": {"emails": {"address": "a@x"}}})
    taken(users.update_one, {"_id": "bob"}, {"$push": {"emails": {"address": "a@x"}}})
    users.update_many({}, {"$set": {"seen": 1}})
    users.delete_many({})
    users.insert_many(USERS)


def test_documents_without_elements_are_many(users):
    users.insert_many([{}, {}, {"emails": []}, {"emails": []}, {"emails": [{"verified": False}]}, {"emails": [{}]}])
    assert users.count_documents({}) == 8


def test_elements_are_found_by_the_index(users):
    users.insert_many({"emails": [{"address": f"{number}@y"}]} for number in range(300))
    found = users.find({"emails.address": "17@y"}).explain()["executionStats"]
    assert (found["nReturned"], found["totalDocsExamined"]) == (1, 1)
    assert users.count_documents({"emails": {"$elemMatch": {"address": "b@x"}}}) == 1


def test_an_index_of_documents_that_are_there(db):
    db.things.insert_many([{"_id": 1, "tags": ["a", "b"]}, {"_id": 2, "tags": ["c", "d"]}, {"_id": 3, "tags": "d"}, {"_id": 4, "tags": ["a"]}])
    with pytest.raises(DuplicateKeyError) as error:
        db.things.create_index("tags", unique=True)
    assert error.value.details["keyValue"] == {"tags": "a"}
    assert list(db.things.index_information()) == ["_id_"]
    db.things.delete_many({"_id": {"$gt": 2}})
    db.things.create_index("tags", unique=True)
    taken(db.things.insert_one, {"tags": "d"})
    taken(db.things.insert_one, {"tags": ["e", "a"]})
    db.things.drop_index("tags_1")
    db.things.insert_one({"tags": ["e", "a"]})


def test_indexes_with_and_without_arrays_at_once(db):
    db.things.insert_many([{"_id": 1, "tags": ["a"], "n": 1}, {"_id": 2, "tags": ["b"], "n": 2}])
    db.things.create_indexes([IndexModel("tags", unique=True), IndexModel("n", unique=True)])
    taken(db.things.insert_one, {"tags": "a", "n": 3})
    taken(db.things.insert_one, {"tags": "c", "n": 2.0})
    db.things.insert_one({"tags": "c", "n": [3, 4]})
    taken(db.things.insert_one, {"tags": "d", "n": 4})


def test_renaming_does_not_bypass_the_index(session_client, db, database_name):
    db.things.create_index("tags", unique=True)
    db.things.insert_one({"_id": 1, "tags": [1, 2]})
    db.things.rename("others")
    taken(db.others.insert_one, {"tags": [2.0]})
    elsewhere = session_client[f"{database_name}_2"]
    try:
        session_client.admin.command({"renameCollection": db.others.full_name, "to": elsewhere.others.full_name})
        taken(elsewhere.others.insert_one, {"tags": 1})
        elsewhere.others.insert_one({"tags": [3, 3]})
    finally:
        session_client.drop_database(elsewhere.name)


def test_one_of_many_has_it(db, server):
    """Concurrent writers of the same elements, including the first arrays of the collection."""
    db.things.create_index("tags", unique=True)
    won = []

    def write(name):
        with server.client() as client:
            for number in range(40):
                try:
                    client[db.name].things.insert_one({"_id": f"{name} {number}", "tags": [number, f"{name} {number}"]})
                    won.append(number)
                except DuplicateKeyError:
                    pass

    writers = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(won) == list(range(40))
    assert db.things.count_documents({}) == 40


@pytest.mark.mariadb_only
def test_sql_cannot_write_it_either(server, db, users):
    def write(document):
        server.mariadb.sql(f"INSERT INTO `{db.name}`.users (doc) VALUES (%s)", json.dumps(document))

    for emails in ([{"address": "a@x"}], [{"address": "e@x"}, {"address": "b@x"}], {"address": "c@x"}):
        with pytest.raises(pymysql.err.IntegrityError) as error:
            write({"_id": "eve", "emails": emails})
        assert error.value.args[0] == 1062
    with pytest.raises(pymysql.err.MySQLError):
        server.mariadb.sql(f"""UPDATE `{db.name}`.users SET doc = JSON_SET(doc, '$.emails[0].address', 'b@x') WHERE id = '"ann"'""")
    # An array within an array's documents is more than SQL takes apart.
    with pytest.raises(pymysql.err.MySQLError):
        write({"_id": "eve", "emails": [{"address": ["e@x"]}]})
    with pytest.raises(OperationFailure) as refused:
        users.insert_one({"_id": "eve", "emails": [{"address": ["e@x"]}]})
    assert refused.value.code == 67
    write({"_id": "eve", "emails": [{"address": "e@x"}]})
    taken(users.insert_one, {"emails": [{"address": "e@x"}]})
    server.mariadb.sql(f"""DELETE FROM `{db.name}`.users WHERE id = '"eve"'""")
    users.insert_one({"emails": [{"address": "e@x"}]})


@pytest.mark.mariadb_only
def test_a_rename_that_fails_leaves_it_unique(session_client, server, db, users):
    """MariaDB does not move a table with foreign triggers to another schema; by then the index's
    triggers are dropped."""
    server.mariadb.sql(f"CREATE TRIGGER `{db.name}`.theirs BEFORE INSERT ON `{db.name}`.users FOR EACH ROW SET @seen = 1")
    with pytest.raises(OperationFailure):
        session_client.admin.command({"renameCollection": users.full_name, "to": f"{db.name}_2.users"})
    with server.client() as another:
        taken(another[db.name].users.insert_one, {"emails": {"address": "c@x"}})
    taken(users.update_one, {"_id": "ann"}, {"$push": {"emails": {"address": "b@x"}}})
    assert "IXSCAN" in str(users.find({"emails.address": "c@x"}).explain()["queryPlanner"]["winningPlan"])
    users.insert_one({"emails": [{"address": "d@x"}]})
    session_client.drop_database(f"{db.name}_2")


@pytest.mark.mariadb_only
@pytest.mark.parametrize("left", ["nothing", "triggers and tables"])
def test_truncated_entries_are_repaired_before_the_next_write(server, own_server, db, users, left):
    """The state after a gateway was killed while it dropped or created the tables."""
    sql, schema = server.mariadb.sql, db.name
    [[remembered]] = sql("SELECT values_table FROM selkie.indexes WHERE schema_name = %s AND values_table IS NOT NULL", schema)
    if left == "nothing":
        for (trigger,) in sql("SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = %s", schema):
            sql(f"DROP TRIGGER `{schema}`.`{trigger}`")
        for (table,) in sql("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME LIKE '~%%'", schema):
            sql(f"DROP TABLE `{schema}`.`{table}`")
    owed = remembered.replace("~elements~", "~owed~")
    sql("UPDATE selkie.indexes SET values_table = %s WHERE schema_name = %s AND values_table IS NOT NULL", owed, schema)
    with own_server(mariadb=server.mariadb).client() as client:
        users = client[schema].users
        taken(users.update_one, {"_id": "ann"}, {"$set": {"emails": {"address": "b@x"}}})
        taken(users.insert_one, {"emails": {"address": "c@x"}})
        users.update_one({"_id": "ann"}, {"$set": {"emails": [{"address": "d@x"}]}})
    tables = sql("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME LIKE '~%%'", schema)
    assert len(tables) == 2, "those that were left are gone"


@pytest.mark.mariadb_only
def test_dropping_removes_all_traces(server, db, users):
    users.drop()
    assert server.mariadb.sql("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s", db.name) == ()
    assert server.mariadb.sql("SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = %s", db.name) == ()
