"""Differences that are known wherever they appear, each with its reason and how it is recognized.

One of a single case is declared at that case (`differs`).
"""

import decimal
import re

import bson
from bson.raw_bson import RawBSONDocument

from compat.compare import PLAIN, RAW, UNORDERED, batch_of, code_of, decoded, identical, loosely, same, same_batch, settled, shown

ENGINE = "MongoDB's second engine makes documents of MinKey and MaxKey, text of code, and fails where $ifNull has the same field twice"
ENGINE_ROOT = "behind a $project, `$$ROOT` in a $group is the document before it to MongoDB's second engine"
ENGINE_OF_SCHEMAS = "a $jsonSchema behind it keeps a $lookup from MongoDB's second engine, and the field that it sets in its place"
BEHIND_COUNT = "a $count is a $group and a $project to MongoDB, and between them goes what a $match asks of the count, ahead of the rest"
JOINED_ORDER = "what a $lookup at the front finds by an index for the values of an array comes in the order of a hash table"
LAST_DIGIT = "MongoDB's decimal library is not correctly rounded: the last of 34 digits, or whether zeros follow"
BY_INDEX = "MongoDB answers otherwise by an index (a wildcard has no key of what is missing); without it, as we do"
HASH_ORDER = "MongoDB adds the fields of one $setWindowFields or $fill in the order of a hash table"
ROUNDED = "MongoDB adds the steps of a grid of doubles in another order: the last of 17 digits"
REPLICATED = "a router and a replica set of one member write and read where MongoDB, which is asked as a standalone server, refuses"
NO_TEXT = "MongoDB cuts letters of several bytes in two and answers with what is no UTF-8"
FIRST_MET = "which of several mistakes is met first; for one of the documents or fields alone MongoDB answers as we do"
HALF_DONE = "of a write that fails MongoDB leaves behind what it has written so far"
PLACE_KEPT = "a field that one stage takes away, or makes documents without, and a later one sets keeps its place in MongoDB"
NOT_ASKED_FOR = "what is read before a $limit ends it, and fails; without the $limit MongoDB fails as we do"
COLUMNS = "MongoDB keeps the fields of measurements in the order of a hash table"
LED_ASTRAY = "where a field of the path is missing, `.$` of MongoDB 6.0 goes on with the rest of the path in the document around it"
NAMED_COLUMN = "MongoDB keeps partitions apart by a field of a made-up name, which `$$ROOT` and an empty result show"
BY_POSITION = "MongoDB 6.0 sorts ahead of an $unwind even by the field that the $unwind numbers elements in"
SORTED_AHEAD = "MongoDB sorts ahead of an $unwind or a $match that takes away what cannot be sorted"
NEVER_MET = "a condition that nothing meets, where MongoDB moves it ahead of stages that would fail"
COUNTED = "MongoDB counts all documents of an ordered insert into a time-series collection of which one fails"
LISTED = "MongoDB takes options of an index that it cannot list"
READ_AHEAD = "MongoDB's $facet reads all that comes in, whatever a $limit in it asks for"
READ_IN_BATCHES = "MongoDB reads documents ahead of what later stages ask for, and fails with one of them; reading one at a time it answers as we do"
GRAPHS_KEPT = "what a $graphLookup has found for one document, and how a $lookup tests conditions, MongoDB keeps for the next; for each by itself it answers as we do"
UNIQUE_ARRAYS = "a unique index on MariaDB holds no arrays within arrays, so there is none over documents that have some; without it, MongoDB answers as we do"
UNIQUE_NUMBERS = "a unique index on MariaDB refuses arrays where a path has numbers in it, and arrays within arrays (67)"
FIRST_OF_EQUALS = "of equal numbers MongoDB's distinct gives the one that a compound index has first, MariaDB's the one that was written first"
ENGINE_SETS = "the elements of sets come in an order of the moment from MongoDB's second engine"
GROUP_ORDER = "groups come in no order, and what comes behind tells which was first"
IN_TURN = "in which order MongoDB tests the conditions that it has no index for, where it has one for `_id`"
TIES = "of documents that a $sort finds equal, a $limit behind it leaves which a heap has ahead; sorted without a limit they stand as with us"
TAKEN_AWAY = "documents from which $$REMOVE has taken a field are not equal to those that never had it, where MongoDB groups by whole documents"
KEY_BYTES = "the bytes of a collation's keys are those of another version of Unicode's tables"
PARTS_OF_SCHEMA = "MongoDB tests each part of a $jsonSchema where it comes among other conditions; which of them fails first differs"
MOVED = "a mistake that is met or not by where MongoDB moves a $match, and with what it joins it; each stage by itself, it answers as we do"
READ_BACK = "MongoDB 6.0 cannot read back $elemMatch with $all, or what nothing meets, where its optimizer writes out a $match"

TAKING = {"$densify", "$project", "$unset", "$unwind", "$replaceRoot", "$replaceWith", "$set", "$addFields", "$lookup"}
SETTING = {"$project", "$set", "$addFields", "$unwind", "$lookup", "$graphLookup", "$fill", "$setWindowFields"}
# The second engine's treatment of MinKey and MaxKey, of code as text, and its message about a group
# without a document.
ENGINE_MADE = re.compile(r"\{('': |'k': '', 'v': )M(in|ax)Key\(\)|error 4822806:")
# Features that it does not have.
ENGINE_MAKES = re.compile(r"M(in|ax)Key\(\)|Code\(|only supports strings, not javascript")
MADE_OF_KEYS = re.compile(r"\{'': (M(?:in|ax)Key\(\))\}")
MADE_OF_CODE = re.compile(r"Code\(('(?:[^'\\]|\\.)*'), None\)")
# A field's name of 16 random bytes, with what it holds.
MADE_UP = re.compile(r", '[A-Za-z0-9+/]{22}==': ('[^']*'|[^,{}\[\]]+)")
# A decimal, or the text made of one.
NUMBER = re.compile(r"'(-?)(\d+(?:\.\d+)?)(E[+-]\d+)?'")
# Stages whose results depend on which documents come first.
TELLING_FIRST = {"$skip", "$limit"}
# Conditions that match no document, and their positions.
NEVER = re.compile(r"'\$(all|in)': \[\]|'\$expr': (?!'\$|\{|\[[^\]]*[{$])|'\$filter': \{'input': None|'\$jsonSchema'|'\$sampleRate'|'\$alwaysFalse'")
PARALLEL = "cannot sort with keys that are parallel arrays"


def same_but_for(pattern: re.Pattern, ours: str, theirs: str) -> bool:
    """Returns whether the two are equal apart from the matches. Elements of sets have any order."""
    parts = lambda text: sorted(re.split(r"[\[\]{}, ]+", text))
    return bool(pattern.search(theirs)) and parts(pattern.sub("", theirs)) == parts(ours)


def _made_by_engine(text: str) -> str:
    return MADE_OF_CODE.sub(r"\1", MADE_OF_KEYS.sub(r"\1", text))


def _rounded(match: re.Match) -> str:
    with decimal.localcontext(prec=31):
        return str((+decimal.Decimal("".join(part or "" for part in match.groups()))).normalize())


def _last_digit(command, ours: str, theirs: str) -> bool:
    if not re.search(r"\$(pow|exp|ln|log|log10|sqrt|a?(sin|cos|tan)h?|atan2|(degrees|radians)To)", str(command)):
        return False
    lines = lambda text: sorted(NUMBER.sub(_rounded, text).strip("[]").replace("}, {", "}\n{").split("\n"))
    return "Decimal128" in theirs + str(command) + ours and lines(ours) == lines(theirs)


def _by_position(command, ours: str, theirs: str) -> bool:
    stages = command.get("pipeline", [])
    unwound = [stage["$unwind"].get("includeArrayIndex") for stage in stages if isinstance(stage.get("$unwind"), dict)]
    names = {name.split(".")[0] for name in unwound if isinstance(name, str)}
    sorts = [path for stage in stages for path in stage.get("$sort", ())]
    parted = str([stage["$setWindowFields"].get("partitionBy") for stage in stages if "$setWindowFields" in stage])
    reads = lambda name: any(path.split(".")[0] == name for path in sorts) or re.search(rf"'\${re.escape(name)}\b", parted)
    return not ours.startswith("error") and any(map(reads, names))


def _group_order(command, ours: bytes, theirs: bytes, setup=()) -> bool:
    """Returns whether documents are equal in another order, or equally many if a stage depends on
    the order."""
    names = _stages([*setup, command])
    batches = []
    for answer in (ours, theirs):
        try:
            cursor = bson.decode(answer, PLAIN).get("cursor", {})
        except bson.errors.InvalidBSON:
            return False
        batches.append(cursor.get("firstBatch"))
    first = next((place for place, name in enumerate(names) if name in (*UNORDERED, "$bucket")), None)
    if first is None or None in batches or len(batches[0]) != len(batches[1]):
        return False
    ours, theirs = (sorted(map(str, batch)) for batch in batches)
    ended = cursor.get("id") == 0 and not {"$out", "$merge"} & set(names)
    # A `find` of a view has them as options.
    told = not TELLING_FIRST.isdisjoint(names[first:]) or "find" in command and (command.get("skip") or command.get("limit"))
    return bool(ours == theirs or not ended or told)


def _stages(command) -> list[str]:
    """The names of all stages, those of pipelines within stages in their places."""
    if isinstance(command, dict):
        return [name for key, value in command.items() for name in [key, *_stages(value)]]
    return [name for value in command for name in _stages(value)] if isinstance(command, list) else []


def _place_kept(command, ours: bytes, theirs: bytes, setup=()) -> bool:
    """`setup` contains a view's stages, which precede those of a command that reads it."""
    names = _stages([*setup, command]) if command.get("aggregate") == "v" else _stages(command)
    first = next((place for place, name in enumerate(names) if name in TAKING), len(names))
    return not SETTING.isdisjoint(names[first + 1 :]) and _but_for_fields(command, ours, theirs)


def _hash_order(command, ours: bytes, theirs: bytes, setup=()) -> bool:
    """`setup` contains a view's stages."""
    outputs = re.findall(r"'(?:\$setWindowFields|\$fill)': \{.*?'output': \{", str([command, setup]))
    return bool(outputs) and _but_for_fields(command, ours, theirs)


def _but_for_fields(command, ours: bytes, theirs: bytes) -> bool:
    """Returns whether two replies that are not errors are equal with the fields of documents
    sorted."""
    if code_of(ours) or code_of(theirs):
        return False
    replies = []
    for answer in (ours, theirs):
        try:
            reply = loosely(bson.decode(answer, PLAIN))
        except bson.errors.InvalidBSON:
            return False
        replies.append(bson.encode(reply, codec_options=PLAIN))
    return same(command, *replies)


def _equal_values(ours: bytes, theirs: bytes) -> bool:
    """Returns whether `distinct` returned equal values, numbers maybe of other types."""
    number = lambda value: value.to_decimal() if isinstance(value, bson.Decimal128) else value
    ours, theirs = ([number(value) for value in bson.decode(answer, PLAIN).get("values", [])] for answer in (ours, theirs))
    return bool(ours) and ours == theirs


def _same_documents(command, ours: bytes, theirs: bytes) -> bool:
    """Like `same`, for replies of any collection."""
    batches = [None if code_of(answer) else batch_of(RawBSONDocument(answer, RAW)) for answer in (ours, theirs)]
    return same(command, ours, theirs) if None in batches else same_batch(*batches, command)


def _engine_of_schemas(command, ours: bytes, theirs: bytes) -> bool:
    names = _stages(command.get("pipeline", []))
    return names[:1] == ["$lookup"] and "$jsonSchema" in names and _but_for_fields(command, ours, theirs)


def _joined_order(command, ours: bytes, theirs: bytes) -> bool:
    """The same documents, those that the first stage joins to each in another order."""
    pipeline = command.get("pipeline")
    first = pipeline[0] if isinstance(pipeline, list) and pipeline else None
    join = first.get("$lookup") if isinstance(first, dict) else None
    if not isinstance(join, dict) or "localField" not in join or "pipeline" in join or code_of(ours) or code_of(theirs):
        return False

    def documents(answer: bytes):
        batch = bson.decode(answer, PLAIN)["cursor"]["firstBatch"]
        # One value alone finds its documents in their order.
        several = lambda document: isinstance(document.get(str(join["localField"]).split(".")[0]), (list, dict))
        loose = lambda document, name, value: several(document) and name == join.get("as") and isinstance(value, list)
        return [{name: sorted(map(str, value)) if loose(document, name, value) else value for name, value in document.items()} for document in batch]

    try:
        return documents(ours) == documents(theirs)
    except (bson.errors.InvalidBSON, KeyError):
        return False


def _counted(command, ours: bytes, theirs: bytes) -> bool:
    if "insert" not in command or b"must be present and contain a valid BSON UTC datetime" not in theirs:
        return False
    replies = [bson.decode(answer, PLAIN) for answer in (ours, theirs)]
    all_of_them = replies[1].pop("n", None) == len(command.get("documents", ()))
    replies[0].pop("n", None)
    return all_of_them and loosely(replies[0]) == loosely(replies[1])


def _key_bytes(command, ours: bytes, theirs: bytes) -> bool:
    """The same but for the keys that are taken in an index with a collation."""

    def without_keys(value, name=""):
        if isinstance(value, dict):
            return {key: without_keys(inner, key) for key, inner in value.items() if key != "keyValue"}
        if isinstance(value, list):
            return [without_keys(inner) for inner in value]
        return value.split(" dup key: ")[0] if name == "errmsg" else value

    if b"hexEncoded" not in ours or b"hexEncoded" not in theirs:
        return False
    return same(command, *(bson.encode(without_keys(bson.decode(answer, PLAIN)), codec_options=PLAIN) for answer in (ours, theirs)), messages=True)


def _graphs_kept(ours: bytes, by_themselves: list[bytes] | None) -> bool:
    """Returns whether we return the results of each document by itself. Results of a $graphLookup
    have no order."""
    batch = batch_of(RawBSONDocument(ours, RAW))
    loose = lambda documents: [settled(decoded(document)) for document in documents]
    return batch is not None and by_themselves is not None and identical(loose(batch), loose(by_themselves))


def _taken_away(command, ours: str, theirs: str, setup=()) -> bool:
    """Returns whether MongoDB has the same groups, some more than once."""
    told = str([command, *setup])
    groups = lambda text: sorted(set(text.strip("[]").replace("}, {", "}\n{").split("\n")))
    return all(name in told for name in ("$$REMOVE", "$$ROOT", "$group")) and len(theirs) > len(ours) and groups(ours) == groups(theirs)


def _rounded_grid(command, ours: str, theirs: str) -> bool:
    nine = lambda text: re.sub(r"-?\d+\.\d+(e[+-]\d+)?", lambda number: f"{float(number.group()):.9g}", text)
    return "$densify" in _stages(command) and not ours.startswith("error") and nine(ours) == nine(theirs)


def _led_astray(command, ours: str, theirs: str) -> bool:
    fields = command.get("projection", command.get("fields"))
    if not isinstance(fields, dict) or not re.match("error 5124[67]:", theirs) or ours.startswith("error"):
        return False
    inner = {name for path in fields if path.endswith(".$") for name in path.split(".")[1:-1]}
    return not inner.isdisjoint(path.split(".")[0] for path in fields if not path.endswith(".$"))


def _restricts_by_expression(command) -> bool:
    """Returns whether a $graphLookup restricts its search by an expression."""
    if isinstance(command, list):
        return any(map(_restricts_by_expression, command))
    if not isinstance(command, dict):
        return False
    search = command.get("$graphLookup")
    restriction = search.get("restrictSearchWithMatch") if isinstance(search, dict) else None
    return "$expr" in _stages(restriction) or any(map(_restricts_by_expression, command.values()))


def _needs_replication(command: dict) -> bool:
    """A concern that a standalone server cannot meet, a time of replication, or a transaction."""
    concern, level = command.get("writeConcern"), command.get("readConcern")
    waits = isinstance(concern, dict) and "w" in concern and concern["w"] not in (0, 1, "majority")
    if "txnNumber" in command:
        return True
    if isinstance(level, dict) and ("afterClusterTime" in level or "afterOpTime" in level):
        return True
    return waits or isinstance(level, dict) and level.get("level") in ("linearizable", "snapshot")


KNOWN = {
    REPLICATED: lambda command, ours, theirs: _needs_replication(command) and ours != theirs,
    LED_ASTRAY: _led_astray,
    NAMED_COLUMN: lambda command, ours, theirs: "$$ROOT" in str(command) and same_but_for(MADE_UP, ours, theirs),
    ROUNDED: _rounded_grid,
    LAST_DIGIT: _last_digit,
    BY_POSITION: _by_position,
    SORTED_AHEAD: lambda command, ours, theirs: not ours.startswith("error") and PARALLEL in theirs and {"$unwind", "$match"} & set(_stages(command)),
    NEVER_MET: lambda command, ours, theirs: ours.startswith("error") and theirs in ("[]", "{'n': 0}", "{'values': []}") and NEVER.search(str(command)),
    LISTED: lambda command, ours, theirs: "Could not parse catalog entry while replying to listIndexes" in theirs,
    ENGINE: lambda command, ours, theirs: "error 4822806: " in theirs and "$ifNull" in str(command) or ours != theirs and _made_by_engine(ours) == _made_by_engine(theirs),
    IN_TURN: lambda command, ours, theirs: not ours.startswith("error") and theirs.startswith("error") and _restricts_by_expression(command),
    # The regular expression library refuses truncated patterns too.
    NO_TEXT: lambda command, ours, theirs: "a message that is no text" in theirs or "expression in $regex" in theirs and "Result code: -10" in theirs,
    READ_BACK: lambda command, ours, theirs: re.search(r"Failed to optimize pipeline.*unknown operator: \$(alwaysFalse|and)", theirs) or "Failed to optimize" in theirs and "unknown top level operator: $" in theirs and "$all" in str(command),
}
# Differences in the order of fields: the replies are compared, not their printed form.
KNOWN_ORDERS = {KEY_BYTES: _key_bytes, COUNTED: _counted}


def known_reason(command: dict, ours: bytes, theirs: bytes, asked) -> str | None:
    """Why two answers differ. `asked` puts more questions to MongoDB."""
    our, their = shown(ours, 1 << 24), shown(theirs, 1 << 24)
    for reason, applies in KNOWN.items():
        if applies(command, our, their):
            return reason
    for reason, applies in KNOWN_ORDERS.items():
        if applies(command, ours, theirs):
            return reason
    if _hash_order(command, ours, theirs, asked.block.setup):
        return HASH_ORDER
    if asked.block.family.startswith("time-series"):
        # A time-series collection is a view.
        if _but_for_fields(command, ours, theirs):
            return COLUMNS
    # Operators of filters and of validators; values do not count.
    operators = {"$jsonSchema", "$expr"}
    if operators <= set(_stages([command, *asked.block.setup])) and our.startswith("error") != their.startswith("error"):
        return PARTS_OF_SCHEMA
    if _group_order(command, ours, theirs, asked.block.setup):
        return GROUP_ORDER
    if _place_kept(command, ours, theirs, asked.block.setup):
        return PLACE_KEPT
    if asked.wrote_before_failing():
        return HALF_DONE
    code = code_of(ours)
    if code and code_of(theirs) and any(code == code_of(answer) for answer in asked.alone()):
        return FIRST_MET
    if code and not code_of(theirs) and code == code_of(asked.unlimited() or b""):
        return NOT_ASKED_FOR
    if not code and code_of(theirs) and code_of(theirs) == code_of(asked.before_facet() or b""):
        return READ_AHEAD
    if code_of(theirs) and same(command, ours, asked.in_small_batches() or theirs):
        return READ_IN_BATCHES
    if not code and _graphs_kept(ours, asked.graphs_one_by_one()):
        return GRAPHS_KEPT
    if not code and not code_of(theirs) and same(command, ours, asked.sorted_without_limit() or theirs):
        return TIES
    if not code and _taken_away(command, our, their, asked.block.setup):
        return TAKEN_AWAY
    if asked.is_without_unique_index(ours):
        return UNIQUE_ARRAYS
    if asked.pair.store == "mariadb" and any(b"a unique index on MariaDB cannot hold" in mine for mine, _ in asked.pairs):
        return UNIQUE_NUMBERS
    if same(command, ours, asked.without_refused(ours) or theirs):
        return UNIQUE_NUMBERS
    answer = asked.unindexed()
    if "distinct" in command and asked.pair.store == "mariadb" and asked.block.setup and _equal_values(ours, theirs):
        return FIRST_OF_EQUALS
    # A distinct is answered from the index alone, except by indexes that have each document's
    # fields by name.
    answered_alone = "distinct" in command and "$**" not in str(asked.block.setup)
    if not answered_alone and answer is not None and same(command, ours, answer):
        return BY_INDEX
    if not code and code_of(theirs) and asked.nothing_else_behind_count():
        return BEHIND_COUNT
    if code != code_of(theirs) and _same_documents(command, ours, asked.stage_by_stage() or theirs):
        return MOVED
    if _engine_of_schemas(command, ours, theirs):
        return ENGINE_OF_SCHEMAS
    if _joined_order(command, ours, theirs):
        return JOINED_ORDER
    pipelines = str([command, asked.block.setup])
    # The contents of the collections follow from the engine's reply to the command.
    made = any(ENGINE_MADE.search(shown(theirs, 1 << 24)) for _, theirs in asked.pairs)
    reason = ENGINE if made or ENGINE_MAKES.search(our) else ENGINE_ROOT if "$$ROOT" in pipelines else None
    if reason is None and re.search(r"'\$set(Intersection|Union|Difference)'", pipelines):
        reason = ENGINE_SETS
    answer = asked.classic(ours) if reason else None
    if answer is None:
        return None
    agrees = same(command, ours, answer) or _but_for_fields(command, ours, answer)
    return reason if agrees or _group_order(command, ours, answer, asked.block.setup) else None
