"""Cached replies to conditions on texts and to expressions equal fresh ones, for any writes in
between."""

import random

import pymongo
import pytest

pytestmark = pytest.mark.selkie_only

# Letters whose other case is a different letter: the kelvin sign, and the long s.
WORDS = ["kelvin", "Kelvin", "\u212aelvin", "stark", "\u017ftark", "STARK", "alpha beta", "beta gamma", "abc", "xabcx", "ABC", "über", "ÜBER"]
PATTERNS = ["abc", "ab+c$", "^alpha", "elvin", "kelvin", "stark$", "beta.*gamma", "gam?ma", "über", "[ab]bc", "a|b", "ta ga"]
TEXTS = [{"t": {"$regex": pattern, "$options": options}} for pattern in PATTERNS for options in ("", "i")]
FILTERS = [
    *TEXTS,
    *({"$expr": {"$eq": ["$k", number]}} for number in range(6)),
    *({"t": {"$not": {"$regex": pattern}}} for pattern in PATTERNS),
    *({"$or": [{"t": {"$regex": pattern}}, {"k": 3}]} for pattern in PATTERNS),
    *({"k": 3, "t": {"$ne": word}} for word in WORDS),
]


def test_answers_are_those_of_the_store(own_server, store, database_name):
    mode = ("both", "--external-writes", "none") if "mariadb" in store else ("documents",)
    client = pymongo.MongoClient(own_server("--cache", *mode).uri)
    collection, chance = client[database_name].c, random.Random(7)

    def value():
        word = chance.choice(WORDS)
        return chance.choice([word, f"{word} {chance.choice(WORDS)}", [word, chance.choice(WORDS)], chance.randrange(9), None])

    def document(number: int) -> dict:
        return {"_id": number, "t": value(), "k": chance.choice([chance.randrange(6), float(chance.randrange(6)), [1, 2], None])}

    def stored(filter: dict) -> list:
        """The store's reply: commands that read the time are not cached."""
        return list(collection.aggregate([{"$match": filter}, {"$sort": {"_id": 1}}, {"$set": {"n": "$$NOW"}}, {"$unset": "n"}]))

    collection.insert_many([document(number) for number in range(50)])
    for _ in range(300):
        number, chosen = chance.randrange(50), chance.random()
        if chosen < 0.6:
            collection.update_one({"_id": number}, {"$set": chance.choice([{"t": value()}, {"k": chance.randrange(6)}])})
        elif chosen < 0.8:
            collection.delete_one({"_id": number})
        else:
            collection.replace_one({"_id": number}, document(number), upsert=True)
        for filter in chance.sample(FILTERS, 8):
            assert list(collection.find(filter).sort("_id", 1)) == stored(filter), filter
    figures = client.admin.command("serverStatus")["cache"]
    assert figures["hits"] > 500 and figures["invalidations"] > 100
