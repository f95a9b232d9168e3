"""The array slice cache with a driver: a post has its latest comments, and all comments are in a
collection (docs/slice-cache.md)."""

import datetime
import threading

import pymongo
import pytest
from pymongo.errors import WriteError

KEPT, CLIENTS, COMMENTS = 10, 16, 40


def comment(number: int, by: int = 0) -> dict:
    return {"by": by, "number": number, "text": f"comment \"{number}\" by {by}", "at": datetime.datetime(2026, 1, 1)}


def push(comments: list[dict], **clauses) -> dict:
    return {"$push": {"latestComments": {"$each": comments, **clauses}}}


def write_comment(db, post: int, one: dict) -> None:
    """Writes like the application: the comment into its collection, and the latest ones into the
    post."""
    db.comments.insert_one({"postId": post, **one})
    done = db.posts.update_one({"_id": post}, push([one], **{"$slice": -KEPT}))
    assert (done.matched_count, done.modified_count) == (1, 1)


def test_both_collections(db):
    db.comments.create_index([("postId", 1), ("number", -1)])
    db.posts.insert_one({"_id": 1, "title": "a post"})
    for number in range(25):
        write_comment(db, 1, comment(number))
        latest = db.posts.find_one({"_id": 1})["latestComments"]
        assert latest == [comment(number) for number in range(max(0, number + 1 - KEPT), number + 1)]
    assert db.comments.count_documents({"postId": 1}) == 25
    # The last page comes with the post, the ones before from the comments.
    before = db.comments.find({"postId": 1, "number": {"$lt": 15}}, {"_id": 0, "postId": 0}).sort("number", -1).limit(10)
    assert list(before) == [comment(number) for number in range(14, 4, -1)]


def test_examples_of_the_manual(db):
    """Negative numbers keep the end, positive ones the front, zero nothing."""
    cases = [
        ([40, 50, 60], [80, 78, 86], {"$slice": -5}, [50, 60, 80, 78, 86]),
        ([89, 90], [100, 20], {"$slice": 3}, [89, 90, 100]),
        ([89, 70, 89, 50], [100, 20], {"$slice": 0}, []),
        ([1, 2, 3], [8, 9], {"$position": 0, "$slice": 3}, [8, 9, 1]),
        ([1, 2, 3], [9], {"$position": -1}, [1, 2, 9, 3]),
        ([3, 1], [2], {"$sort": 1, "$slice": -2}, [2, 3]),
    ]
    for number, (scores, each, clauses, expected) in enumerate(cases):
        db.students.insert_one({"_id": number, "scores": scores})
        change = {"$push": {"scores": {"$each": each, **clauses}}}
        assert db.students.update_one({"_id": number}, change).modified_count == 1
        assert db.students.find_one({"_id": number})["scores"] == expected


def test_posts_that_a_push_does_not_fit(db):
    db.posts.insert_many([{"_id": 1, "latestComments": "none"}, {"_id": 2}])
    with pytest.raises(WriteError, match="must be an array but is of type string"):
        db.posts.update_one({"_id": 1}, push([comment(1)], **{"$slice": -KEPT}))
    assert db.posts.update_one({"_id": 3}, push([comment(1)], **{"$slice": -KEPT})).matched_count == 0
    assert db.posts.update_one({"_id": 2}, push([comment(1)], **{"$slice": -KEPT})).modified_count == 1
    done = db.posts.update_one({"_id": 4}, push([comment(1)], **{"$slice": -KEPT}), upsert=True)
    assert done.upserted_id == 4
    assert [db.posts.find_one({"_id": number})["latestComments"] for number in (2, 4)] == [[comment(1)]] * 2
    db.posts.create_index("latestComments.number")
    db.posts.update_one({"_id": 2}, push([comment(2)], **{"$slice": -1}))
    assert [post["_id"] for post in db.posts.find({"latestComments.number": 2})] == [2]
    assert [post["_id"] for post in db.posts.find({"latestComments.number": 1})] == [4]


def test_a_validator_is_applied(db):
    schema = {"properties": {"latestComments": {"maxItems": 2}}}
    db.create_collection("posts", validator={"$jsonSchema": schema})
    db.posts.insert_one({"_id": 1, "latestComments": [comment(0), comment(1)]})
    with pytest.raises(WriteError, match="Document failed validation"):
        db.posts.update_one({"_id": 1}, push([comment(2)]))
    assert db.posts.update_one({"_id": 1}, push([comment(2)], **{"$slice": -2})).modified_count == 1
    assert [one["number"] for one in db.posts.find_one({"_id": 1})["latestComments"]] == [1, 2]


def test_many_clients_and_one_post(db, server):
    """No comment is lost, and the post has the latest ones: of each client its last ones, in order.
    """
    db.posts.insert_one({"_id": 1, "all": []})
    failed = []

    def write(by: int):
        try:
            with pymongo.MongoClient(server.uri) as client:
                posts = client[db.name].posts
                for number in range(COMMENTS):
                    one = comment(number, by)
                    posts.update_one({"_id": 1}, push([one], **{"$slice": -KEPT}))
                    posts.update_one({"_id": 1}, {"$push": {"all": one}})
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(by,)) for by in range(CLIENTS)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failed
    post = db.posts.find_one({"_id": 1})
    for by in range(CLIENTS):
        assert [one["number"] for one in post["all"] if one["by"] == by] == list(range(COMMENTS))
        kept = [one["number"] for one in post["latestComments"] if one["by"] == by]
        assert kept == list(range(COMMENTS - len(kept), COMMENTS))
    assert len(post["latestComments"]) == KEPT and len(post["all"]) == CLIENTS * COMMENTS


@pytest.mark.selkie_only
def test_readers_with_a_cache_see_every_push(own_server, store, database_name):
    """A read after the acknowledgement of a push returns it, whether or not the post is cached."""
    options = ("--cache", "both", "--external-writes", "none") if store == "mariadb" else ("--cache", "documents")
    server = own_server(*options)
    stop, failed = threading.Event(), []

    def read():
        try:
            with server.client() as client:
                seen = []
                while not stop.is_set():
                    latest = client[database_name].posts.find_one({"_id": 1}).get("latestComments", [])
                    numbers = [one["number"] for one in latest]
                    assert numbers == sorted(numbers) and numbers[-1:] >= seen, (numbers, seen)
                    seen = numbers[-1:]
        except Exception as error:
            failed.append(error)

    with server.client() as client:
        posts = client[database_name].posts
        posts.insert_one({"_id": 1})
        readers = [threading.Thread(target=read) for _ in range(4)]
        [reader.start() for reader in readers]
        for number in range(300):
            posts.update_one({"_id": 1}, push([comment(number)], **{"$slice": -KEPT}))
            assert posts.find_one({"_id": 1})["latestComments"][-1]["number"] == number
        stop.set()
        [reader.join() for reader in readers]
        assert not failed
        assert client.admin.command("serverStatus")["cache"]["hits"] > 0
