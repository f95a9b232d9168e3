"""Cases: a command that is sent to both servers, on the same documents.

A `Block` belongs to one operator family and defines the documents of its cases. Blocks are data;
`ask.py` runs them.
"""

from dataclasses import dataclass, field

# The collection that is meant where a case names none, and the database.
COLLECTION = "c"
DATABASE = "compat"


@dataclass
class Differs:
    """A case whose answers are known to differ, and why. `store` limits it to one of the stores."""

    command: dict
    reason: str
    store: str | None = None


def differs(command: dict, reason: str, store: str | None = None) -> Differs:
    return Differs(command, reason, store)


@dataclass
class Block:
    """Cases of one family.

    `collections` are loaded before the first case and, if the cases write (`writes`), anew before
    each; then what they hold afterwards is compared as well. A `script` begins with an empty
    database instead, and each case finds what the ones before have left. `messages` compares the
    texts of errors too.
    """

    family: str
    cases: list
    collections: dict[str, list[dict]] = field(default_factory=lambda: {COLLECTION: []})
    setup: list[dict] = field(default_factory=list)
    writes: bool = False
    script: bool = False
    messages: bool = False
    # The one store that has what these cases are about, and what the other does instead.
    only: tuple[str, str] | None = None


def commands(family: str, documents, *cases, setup=(), **options) -> Block:
    """Commands as they are sent, on one collection (a list) or several (a dict)."""
    collections = documents if isinstance(documents, dict) else {COLLECTION: documents}
    return Block(family, list(cases), collections, list(setup), **options)


def _each(cases, make) -> list:
    """Applies `make` to each case, or to the case inside of a mark for a known difference."""
    return [Differs(make(case.command), case.reason, case.store) if isinstance(case, Differs) else make(case) for case in cases]


def filters(family: str, documents: list[dict], *cases) -> Block:
    """Filters over all documents."""
    return commands(family, documents, *_each(cases, lambda case: {"find": COLLECTION, "filter": case, "batchSize": 1000}))


def sorts(family: str, documents: list[dict], *cases) -> Block:
    return commands(family, documents, *_each(cases, lambda case: {"find": COLLECTION, "sort": case, "batchSize": 1000}))


def projections(family: str, documents: list[dict], *cases) -> Block:
    """Projections over all documents; `(filter, projection)` where a filter belongs to it."""

    def find(case):
        query, projection = case if isinstance(case, tuple) else ({}, case)
        return {"find": COLLECTION, "filter": query, "projection": projection, "batchSize": 1000}

    return commands(family, documents, *_each(cases, find))


def pipelines(family: str, documents, *cases, **options) -> Block:
    def aggregate(case):
        return {"aggregate": COLLECTION, "pipeline": case, "cursor": {"batchSize": 1000}}

    return commands(family, documents, *_each(cases, aggregate), **options)


def expressions(family: str, *cases, documents=({"_id": 0},)) -> Block:
    """Expressions, computed for each document by a stage of their own."""
    return pipelines(family, list(documents), *_each(cases, lambda case: [{"$project": {"r": case}}]))


def over_values(family: str, values: list, *cases) -> Block:
    """Expressions on the field `v` (and `w`), for one document at a time, so that an error hides no
    other result.

    A value that is a tuple gives `v` and `w`; `MISSING` leaves the field out.
    """
    documents = []
    for number, value in enumerate(values):
        pair = value if isinstance(value, tuple) else (value,)
        documents.append({"_id": number, **{name: held for name, held in zip("vw", pair) if held is not MISSING}})

    def find(case, number):
        return {"find": COLLECTION, "filter": {"_id": number}, "projection": {"r": case, "_id": 0}}

    return commands(family, documents, *(found for number in range(len(values)) for found in _each(cases, lambda case: find(case, number))))


class _Missing:
    def __repr__(self):
        return "MISSING"


MISSING = _Missing()


def updates(family: str, documents: list[dict], *cases) -> Block:
    """Updates of all documents, one statement each. A case is the update, `(filter, update)`, or a
    whole statement (with `q`)."""

    def update(case):
        if isinstance(case, dict) and "q" in case:
            statement = case
        elif isinstance(case, tuple):
            statement = {"q": case[0], "u": case[1]}
        else:
            statement = {"q": {}, "u": case, "multi": isinstance(case, list) or any(name.startswith("$") for name in case)}
        return {"update": COLLECTION, "updates": [statement]}

    return commands(family, documents, *_each(cases, update), writes=True)


def script(family: str, *cases, messages: bool = True, only: tuple[str, str] | None = None) -> Block:
    return Block(family, list(cases), {}, script=True, messages=messages, only=only)
