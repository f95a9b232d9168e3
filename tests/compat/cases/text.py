"""`$text`: words and their stems in many languages, phrases, negations, weights, languages of
documents, scores, and valid positions."""

import random

from compat.case import commands, differs, script

SCORE = {"s": {"$meta": "textScore"}}


def text(search, **options):
    return {"$text": {"$search": search, **{f"${name}": value for name, value in options.items()}}}


def index(*fields, key=None, **options):
    """`createIndexes` of a text index over some fields."""
    return {"createIndexes": "c", "indexes": [{"key": key or dict.fromkeys(fields, "text"), "name": "words", **options}]}


def scores(search, query=(), **options):
    """Returns the matches with their scores, sorted."""
    return {"find": "c", "filter": {**text(search, **options), **dict(query)}, "projection": SCORE, "sort": {"_id": 1}, "batchSize": 1000}


def unsorted(command):
    """A search whose order is that of the index's keys."""
    return differs(command, "MariaDB reads in natural order: nobody sorts", "mariadb")


def searches(family, documents, *cases, create=None):
    """Searches, by scores. A case is the search string, `(search, options)`, or a command."""

    def command(case):
        if isinstance(case, str):
            return scores(case)
        return scores(case[0], **case[1]) if isinstance(case, tuple) else case

    return commands(family, documents, *(command(case) for case in cases), setup=[create or index("t")])


def numbered(*texts, field="t"):
    return [{"_id": number, field: held} for number, held in enumerate(texts)]


COFFEE = numbered(
    "coffee shop", "Coffee cake and coffee", "cake", "The coffee is hot", "Café latte", "a coffee-cake, hot", "shops", ["coffee", "cake cake"],
    "", None, 5, {"u": "coffee"}, "coffee coffee coffee coffee", "isn't it", "self-made", "COFFEE", "hot hot coffee cake shop", "the", "naïve résumé",
    "coffee shop coffee shop", "don't", "running runs ran", "x" * 300, "x" * 300 + "y", "a_b c", "foo.bar@example.com", "12 12.5 v2",
)  # fmt: skip

LANGUAGES = {
    "danish": "løbende bøger husene og kagerne er gode", "dutch": "de fietsen en huizen lopende mogelijkheden", "english": "running jumps easily generously skies dying",
    "finnish": "talossa juoksemassa kirjoista ja hyvää", "french": "les continuellement chevaux mangeait évidemment l'arbre", "german": "die Häuser aufeinander laufenden Bücher größer",
    "hungarian": "házakban könyveket és szépségû erdõbõl kertből", "italian": "parlando bellissime città abbandonata", "norwegian": "husene bøkene løpende og havnedistrikt",
    "portuguese": "evolução biología tecnologias correndo solución naciones", "romanian": "caselor frumoasele alergând și cărțile", "russian": "бегущие книги домами важнейшие ёлка",
    "spanish": "corriendo libros casas naciones rápidamente", "swedish": "husen böckerna springande och möjligheterna", "turkish": "evlerimiz kitapları İSTANBUL ISPARTA koşuyor", "none": "running the houses Straße",
}  # fmt: skip

WORDS = [
    "tea", "teas", "coffee", "cake", "cakes", "the", "and", "running", "run", "Runner", "über", "uber", "naïve", "x-ray", "it's", "shop", "Shops", "house", "a", "l'eau",
    "gehen", "Häuser", "livres", "livre", "est", "und",
]  # fmt: skip


def random_documents(generator, count):
    def sentence():
        return " ".join(generator.choice(WORDS) for _ in range(generator.randint(0, 7)))

    def value(depth):
        kind = generator.randrange(10)
        if kind < 5 or depth > 2:
            return sentence()
        if kind < 7:
            return [value(depth + 1) for _ in range(generator.randint(0, 3))]
        if kind < 9:
            return fields(depth + 1)
        return generator.choice([None, 5, True])

    def fields(depth):
        names = generator.sample(["a", "b", "c", "d"], generator.randint(0, 4))
        found = {name: value(depth) for name in names}
        if generator.random() < 0.2:
            found["language"] = generator.choice(["french", "de", "none", "english"])
        return found

    return [{"_id": number, **fields(0)} for number in range(count)]


def random_search(generator):
    parts = []
    for _ in range(generator.randint(1, 4)):
        word = generator.choice(WORDS)
        kind = generator.randrange(8)
        if kind == 0:
            word = "-" + word
        elif kind == 1:
            word = f'"{word} {generator.choice(WORDS)}"'
        elif kind == 2:
            word = f'-"{word}"'
        parts.append(word)
    options = {}
    if generator.random() < 0.2:
        options["language"] = generator.choice(["french", "german", "none"])
    if generator.random() < 0.2:
        options["caseSensitive"] = True
    if generator.random() < 0.2:
        options["diacriticSensitive"] = True
    return " ".join(parts), options


def random_blocks():
    indexes = [
        index("a"), index("a", "b.c", "d"), index(key={"$**": "text"}), index("a", "a.b", weights={"a": 5, "a.b": 2}), index("a", "c", default_language="none"),
        index(key={"$**": "text"}, weights={"b": 7}, default_language="german"), index("b", "b.a", "b.a.c", language_override="d"),
    ]  # fmt: skip
    generator = random.Random(11)
    for create in indexes:
        documents = random_documents(generator, 120)
        if create["indexes"][0].get("language_override"):
            documents = [{name: held for name, held in document.items() if name != "d"} for document in documents]
        yield searches("text: random documents", documents, *(random_search(generator) for _ in range(60)), create=create)


# Differences between versions: letters and delimiters that are not ASCII, underscores, marks; short
# language names and none.
OLD = [{"_id": 1, "t": "Running the cafés quickly"}, {"_id": 2, "t": "café RUNS"}, {"_id": 3, "t": "cafe run ﬁsh Straße über"},
    {"_id": 4, "t": "naïve e-mail foo_bar don't İstanbul istanbul"}, {"_id": 5, "t": "a\xa0b ÜBER", "language": "german"},
    {"_id": 6, "n": {"t": "les cafés", "language": "french"}}]
FORMER = ["run", "RUNNING", "cafe", "café", "cafés", "uber", "über", "mail", "foo", "foo_bar", "don't", "dont", "istanbul", '"café runs"', "run -quickly", "the", "b"]
ARRAYS = [{"_id": 1, "a": [5, 6], "w": "hello"}, {"_id": 2, "a": {"0": 7}, "w": "hello"}, {"_id": 3, "a": [7], "w": "hello"}, {"_id": 4, "w": "hello"},
    {"_id": 5, "a": [], "w": "hello"}, {"_id": 6, "a": [{"b": 1}], "w": "hello"}, {"_id": 7, "a": [[5]], "w": "hello"}]

BLOCKS = [
    # In version 1 the language of an embedded document affects case and marks, and not the index.
    *(commands(f"text: version {version}", OLD[:-1] if version == 1 else OLD, *(scores(search, **options) for search in FORMER for options in ({}, {"caseSensitive": True}, {"diacriticSensitive": True})),
        scores("run", language="xx"), {"listIndexes": "c"}, setup=[index("t", "n.t", textIndexVersion=version, default_language=language)])
        for version in (1, 2, 3) for language in ("english", "none", "turkish", "fr")),
    script("text: versions", {"insert": "c", "documents": [{"_id": 1, "t": "run", "language": "xx"}]}, *(command for version in (0, 1, 2, 4) for command in (
        index("t", textIndexVersion=version), index("t", textIndexVersion=version, default_language="xx"), scores("run"), {"insert": "c", "documents": [
            {"_id": version, "t": "run", "language": "xx"}]}, {"dropIndexes": "c", "index": "words"})),
        {"createIndexes": "c", "indexes": [{"key": {"g": "2dsphere"}, "name": "g", "2dsphereIndexVersion": 1}]}, {"listIndexes": "c"}),
    # A number in the name of a field beside the words is a place in an array.
    commands("text: fields beside the words, in arrays", [], *({"insert": "c", "documents": [document]} for document in ARRAYS),
        setup=[index(key={"a.0": 1, "w": "text"})], writes=True),
    commands("text: fields beside the words, in arrays", [], *({"insert": "c", "documents": [document]} for document in ARRAYS),
        setup=[index(key={"w": "text", "a.0.b": 1})], writes=True),
    commands("text: fields beside the words, in arrays", [document for document in ARRAYS if document["_id"] != 7], *(scores("hello", {"a.0": value}) for value in (
        5, 7, {"b": 1})), setup=[index(key={"a.0": 1, "w": "text"})]),
    searches(
        "text: searches", COFFEE,
        "coffee", "cake", "coffee cake", "hot -coffee", "-coffee", "coffee -cake", '"coffee shop"', '"coffee shop" cake', '-"coffee shop" coffee', "shop", "shops", "cafe", "café",
        "CAFÉ", "the", "", " ", "-", '"', '""', '"coffee', "coffee\"shop\"", "coffee - cake", "coffee --cake", "self-made", "-self-made coffee", "isn't", "isn't it", "don't",
        '"coffee c', '"the coffee"', '"COFFEE IS"', "\\\"coffee shop\\\"", "résumé", "resume", "naive", "run", "x" * 300, "x" * 300 + "y", "a_b", "foo", "example", "12", "v2", "12.5",
        "coffee\tcake", "coffee\ncake", '-"coffee" cake', 'cake-"coffee"', 'cake -"coffee', '"coffee" "cake"', "coffee coffee", "hot,coffee;cake",
        ("Coffee", {"caseSensitive": True}), ("coffee", {"caseSensitive": True}), ("COFFEE cake", {"caseSensitive": True}), ('"Coffee cake"', {"caseSensitive": True}),
        ("coffee -Coffee", {"caseSensitive": True}), ("cafe", {"diacriticSensitive": True}), ("café", {"diacriticSensitive": True}), ("Café", {"caseSensitive": True, "diacriticSensitive": True}),
        ('"café"', {"diacriticSensitive": True}), ('"cafe latte"', {}), ("resume -naïve", {"diacriticSensitive": True}), ("running", {"language": "none"}), ("the", {"language": "none"}),
        ("coffee", {"language": "french"}), ("coffee", {"language": ""}), ("Running", {"caseSensitive": True}),
    ),
    *(
        searches("text: languages", numbered(sentence, sentence.upper(), *sentence.split()), sentence, *sentence.split(), create=index("t", default_language=language))
        for language, sentence in LANGUAGES.items()
    ),
    searches(
        "text: languages of documents",
        [
            {"_id": 1, "t": "running the est", "language": "french"}, {"_id": 2, "t": "running the est"}, {"_id": 3, "t": "running", "u": {"t": "the est", "language": "french"}},
            {"_id": 4, "language": "de", "u": [{"t": "Häuser"}, {"t": "houses", "language": "en"}]}, {"_id": 5, "t": "running the", "language": "NONE"}, {"_id": 6, "u": {"language": "russian", "v": {"t": "книги"}}},
        ],
        "running", "the", "est", "häuser", "houses", "книга", ("running", {"language": "french"}), ("est", {"language": "french"}), ("houses", {"language": "de"}), ("книга", {"language": "ru"}),
        ("Häuser", {"language": "german"}), ("the", {"language": "none"}), "french", "language",
        create=index(key={"$**": "text"}),
    ),
    searches(
        "text: weights",
        [
            {"_id": 1, "a": "tea", "b": "tea", "c": {"d": "tea tea"}}, {"_id": 2, "a": ["tea", "tea cake"], "c": [{"d": "tea"}, {"d": ["tea", ["tea"]]}]}, {"_id": 3, "b": "tea cake tea cake tea"},
            {"_id": 4, "c": "tea"}, {"_id": 5, "a": {"b": "tea"}}, {"_id": 6, "a": [["tea"]]}, {"_id": 7, "a": "Tea"}, {"_id": 8, "a": "tea "}, {"_id": 9, "a": "teas"}, {"_id": 10, "a": "´ tea ´"},
        ],
        "tea", "cake", "tea cake", "cake tea teas", "´",
        create=index("a", "b", "c.d", weights={"a": 3, "b": 10.7}),
    ),
    searches(
        "text: characters", numbered("İx ab", "IX", "ıx", "ŒUVRE", "ﬁn", "ǆ", "ς σ Σ", "ẞ ß ss", "x\u0301y", "한글 단어", "日本語 テキスト", "e\u0301te\u0301", "été", "tea\0cake", "\ufefftea", "µ μ", "a–b—c", "«quoted»", "¿qué?", "l’eau", "½ ² ①"),
        "ix", "İx", "ıx", "œuvre", "fin", "ﬁn", "σ", "ß", "ss", "xy", "한글", "日本語", "テキスト", "ete", "été", "tea", "cake", "μ", "b", "quoted", "que", "eau", "½", "²", "①", '"ix"', '"İx"', '"Ix"', '"ete"',
        create=index("t", default_language="none"),
    ),
    *random_blocks(),
    commands(
        "text: commands", COFFEE,
        {"count": "c", "query": text("coffee")}, {"count": "c", "query": text("coffee -cake")}, {"distinct": "c", "key": "t", "query": text("shop")},
        {"count": "c", "query": text("coffee"), "limit": 2}, {"count": "c", "query": text("coffee"), "skip": 2},
        unsorted({"find": "c", "filter": text("coffee")}), unsorted({"find": "c", "filter": text("cake coffee")}), unsorted({"find": "c", "filter": text("shop hot cake"), "limit": 3}),
        unsorted({"find": "c", "filter": text("coffee"), "skip": 2}), unsorted({"find": "c", "filter": {**text("coffee"), "_id": {"$gt": 3}}}), {"find": "c", "filter": {"_id": 1, **text("coffee")}}, {"find": "c", "filter": {"_id": 2, **text("coffee")}},
        {"find": "c", "filter": text("coffee"), "sort": {"s": {"$meta": "textScore"}, "_id": 1}, "projection": SCORE}, {"find": "c", "filter": text("coffee"), "sort": {"s": {"$meta": "textScore"}, "_id": -1}},
        {"find": "c", "filter": text("coffee"), "sort": {"s": {"$meta": "textScore"}, "_id": 1}, "projection": SCORE, "limit": 3, "skip": 1},
        {"find": "c", "filter": text("coffee"), "sort": {"t": 1, "_id": 1}}, {"find": "c", "filter": text("coffee"), "sort": {"$natural": 1}}, {"find": "c", "filter": text("coffee"), "hint": "words"},
        {"find": "c", "filter": text("coffee"), "hint": {"_id": 1}}, {"find": "c", "filter": {"$nor": [text("coffee")]}}, {"find": "c", "filter": {"$and": [text("coffee"), text("cake")]}},
        {"find": "c", "filter": {"$and": [text("coffee"), {"_id": {"$lt": 5}}]}, "sort": {"_id": 1}}, {"find": "c", "filter": {"$or": [text("coffee"), {"_id": 2}]}, "sort": {"_id": 1}},
        {"find": "c", "filter": {"$or": [text("coffee"), {"t": "cake"}]}}, {"find": "c", "filter": {"$or": [text("coffee"), text("cake")]}}, {"find": "c", "filter": {"t": {"$elemMatch": text("coffee")}}},
        {"find": "c", "filter": {"$or": [{"$and": [text("coffee"), {"_id": {"$lt": 4}}]}, {"_id": 9}]}, "sort": {"_id": 1}}, {"find": "c", "filter": {"$expr": {"$gt": ["$_id", 3]}, **text("hot")}, "sort": {"_id": 1}},
        {"find": "c", "filter": {}, "projection": SCORE}, {"find": "c", "filter": {"_id": 1}, "sort": {"s": {"$meta": "textScore"}}}, {"find": "other", "filter": text("coffee")},
        {"find": "c", "filter": {**text("coffee"), "t": {"$regex": "^C"}}}, {"find": "c", "filter": text("coffee"), "collation": {"locale": "fr"}, "sort": {"_id": 1}},
        {"find": "c", "filter": {"$text": 1}}, {"find": "c", "filter": {"$text": {}}}, {"find": "c", "filter": {"$text": {"$search": 1}}}, {"find": "c", "filter": {"$text": {"$search": "x", "y": 1}}},
        {"find": "c", "filter": text("x", language=1)}, {"find": "c", "filter": text("x", language="xx")}, {"find": "c", "filter": text("x", caseSensitive=1)}, {"find": "c", "filter": text("x", diacriticSensitive=None)},
        {"find": "c", "filter": {**text("coffee"), "loc": {"$near": [0, 0]}}}, {"find": "c", "filter": {}, "hint": "words", "sort": {"_id": 1}},
        {"find": "other", "filter": {"$text": {}}}, {"find": "other", "filter": text("x", language="xx")},
        setup=[index("t")],
    ),
    commands(
        "text: pipelines", {"c": COFFEE, "d": numbered("cake", "latte", "shop")},
        *({"aggregate": name, "pipeline": stages, "cursor": {}} for name, stages in [
            ("c", [{"$match": text("coffee")}, {"$project": SCORE}, {"$sort": {"_id": 1}}]), ("c", [{"$match": text("coffee")}, {"$sort": {"s": {"$meta": "textScore"}, "_id": 1}}]),
            ("c", [{"$match": text("coffee")}, {"$sort": {"s": {"$meta": "textScore"}, "_id": 1}}, {"$limit": 2}, {"$addFields": SCORE}]), ("c", [{"$match": text("coffee")}, {"$count": "n"}]),
            ("c", [{"$match": text("coffee")}, {"$group": {"_id": {"$meta": "textScore"}, "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}]), ("c", [{"$match": text("coffee")}, {"$group": {"_id": None, "s": {"$sum": {"$meta": "textScore"}}}}, {"$project": {"s": {"$gt": ["$s", 8]}}}]),
            ("c", [{"$sort": {"_id": 1}}, {"$match": text("coffee")}]), ("c", [{"$match": {"_id": 1}}, {"$match": text("coffee")}]), ("c", [{"$limit": 1}, {"$match": text("coffee")}]), ("c", [{"$match": text("coffee")}, {"$match": text("coffee")}]),
            ("c", [{"$facet": {"x": [{"$match": text("coffee")}]}}]), ("c", [{"$project": SCORE}]), ("c", [{"$match": {"_id": 1}}, {"$project": SCORE}]), ("c", [{"$match": text("coffee")}, {"$match": {"_id": {"$gt": 2}}}, {"$sort": {"_id": 1}}]),
            ("c", [{"$match": text("cake")}, {"$project": {"t": 1}}, {"$addFields": SCORE}, {"$sort": {"_id": 1}}]), ("c", [{"$match": text("coffee")}, {"$facet": {"x": [{"$count": "n"}], "y": [{"$project": SCORE}, {"$sort": {"_id": 1}}]}}]),
            ("d", [{"$match": text("cake")}]), ("d", [{"$lookup": {"from": "c", "pipeline": [{"$match": text("hot coffee")}, {"$project": SCORE}, {"$sort": {"_id": 1}}], "as": "x"}}, {"$sort": {"_id": 1}}]),
            ("d", [{"$unionWith": {"coll": "c", "pipeline": [{"$match": text("cake")}, {"$addFields": SCORE}]}}, {"$sort": {"_id": 1, "t": 1}}]), ("d", [{"$lookup": {"from": "d", "pipeline": [{"$match": text("cake")}], "as": "x"}}]),
            ("d", [{"$lookup": {"from": "c", "pipeline": [{"$sort": {"_id": 1}}, {"$match": text("cake")}], "as": "x"}}]), ("v", [{"$sort": {"_id": 1}}]), ("v", [{"$match": text("cake")}]), ("v", [{"$match": {"_id": {"$gt": 3}}}, {"$addFields": SCORE}, {"$sort": {"_id": 1}}]),
        ]),
        {"find": "v", "filter": {"_id": {"$lt": 5}}, "sort": {"_id": 1}}, {"find": "v", "filter": text("cake")},
        setup=[index("t"), {"create": "v", "viewOn": "c", "pipeline": [{"$match": text("coffee")}]}],
    ),
    commands(
        "text: writes", COFFEE,
        {"update": "c", "updates": [{"q": text("coffee"), "u": {"$set": {"z": 1}}, "multi": True}]}, {"update": "c", "updates": [{"q": text("nothing"), "u": {"$set": {"z": 1, "_id": 99}}, "upsert": True}]},
        {"update": "c", "updates": [{"q": text("coffee -cake"), "u": {"$set": {"t": "tea"}}, "multi": True}]}, {"update": "c", "updates": [{"q": {"_id": 2, **text("cake")}, "u": {"$set": {"t": "coffee"}}}]},
        {"delete": "c", "deletes": [{"q": text("coffee"), "limit": 0}]}, {"delete": "c", "deletes": [{"q": text("latte"), "limit": 1}]}, {"update": "c", "updates": [{"q": text("coffee"), "u": {"$set": {"z": 1}}, "hint": "words"}]},
        {"findAndModify": "c", "query": text("latte"), "update": {"$set": {"z": 1}}, "fields": SCORE}, {"findAndModify": "c", "query": text("latte"), "update": {"$set": {"t": "tea"}}, "fields": SCORE, "new": True},
        {"findAndModify": "c", "query": text("coffee"), "sort": {"s": {"$meta": "textScore"}, "_id": 1}, "update": {"$set": {"z": 1}}}, {"findAndModify": "c", "query": text("latte"), "remove": True},
        {"update": "other", "updates": [{"q": text("coffee"), "u": {"$set": {"z": 1}}}]}, {"delete": "other", "deletes": [{"q": text("coffee"), "limit": 0}]}, {"insert": "c", "documents": [{"_id": 50, "t": "coffee", "language": "xx"}]},
        {"insert": "c", "documents": [{"_id": 50, "t": "coffee", "language": 5}]}, {"insert": "c", "documents": [{"_id": 50, "language": "xx"}]}, {"insert": "c", "documents": [{"_id": 50, "u": {"language": "xx"}}]},
        {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"language": "xx"}}}]}, {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"language": "french"}}}]},
        setup=[index("t")], writes=True,
    ),
    searches(
        "text: compound indexes",
        [
            {"_id": 1, "x": 1, "t": "tea cake", "y": 2}, {"_id": 2, "x": 2, "t": "tea", "y": 5}, {"_id": 3, "t": "tea"}, {"_id": 4, "x": None, "t": "tea"}, {"_id": 5, "x": 1, "t": "coffee"},
            {"_id": 6, "x": "Q", "t": "tea"}, {"_id": 7, "x": 1.0, "t": "tea tea"}, {"_id": 8, "x": {"a": 1}, "t": "tea"},
        ],
        *(scores("tea coffee", query.items()) for query in [
            {}, {"x": 1}, {"x": {"$in": [1, 2]}}, {"x": {"$in": [1]}}, {"x": {"$eq": 1}}, {"x": None}, {"x": {"$gt": 0}}, {"x": 1, "y": {"$gt": 1}}, {"x": "q"}, {"x": "Q"}, {"x": [1]}, {"x": {"a": 1}}, {"x": {"$exists": True}},
            {"x": {"$regex": "Q"}}, {"$nor": [{"x": 2}]},
        ]),
        {"find": "c", "filter": {"$and": [{"x": 1}, text("tea")]}, "sort": {"_id": 1}}, {"find": "c", "filter": {"x": "q", **text("tea")}, "collation": {"locale": "en", "strength": 2}},
        {"find": "c", "filter": {"$or": [{"x": 1, **text("tea")}, {"_id": 2}]}, "sort": {"_id": 1}}, {"find": "c", "filter": {"x": 1, "$or": [text("tea"), {"_id": 2}]}}, {"count": "c", "query": {"x": 1, **text("tea")}},
        {"insert": "c", "documents": [{"_id": 9, "x": [1]}]}, {"insert": "c", "documents": [{"_id": 9, "x": 1, "y": [2], "t": "tea"}]}, unsorted({"find": "c", "filter": {"x": 1, **text("tea coffee")}}),
        create=index(key={"x": 1, "t": "text", "y": -1}),
    ),
    searches(
        "text: partial and hidden indexes", [{"_id": 1, "t": "tea", "a": 9}, {"_id": 2, "t": "tea", "a": 1}], scores("tea", {"a": {"$gt": 5}}.items()), scores("tea", {"a": 9}.items()),
        create=index("t", partialFilterExpression={"a": {"$gt": 5}}),
    ),
    searches("text: partial and hidden indexes", numbered("tea"), "tea", create=index("t", hidden=True)),
    script(
        "text: indexes come and go",
        index("t"), {"insert": "c", "documents": numbered("tea", "cake tea", "coffee")}, scores("tea"), {"listIndexes": "c"}, index("u"), index("t"), {"dropIndexes": "c", "index": "words"}, scores("tea"),
        index("t", default_language="none", weights={"u": 3}), scores("tea"), {"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$set": {"u": "tea"}}}]}, scores("tea"), {"delete": "c", "deletes": [{"q": {"_id": 0}, "limit": 1}]}, scores("tea"),
        {"dropIndexes": "c", "index": {"_fts": "text", "_ftsx": 1}}, {"createIndexes": "c", "indexes": [{"key": {"x": 1, "t": "text"}, "name": "two"}, {"key": {"u": "text"}, "name": "three"}]},
        {"listIndexes": "c"}, index(key={"$**": "text"}), scores("tea"), {"collMod": "c", "index": {"name": "words", "hidden": True}}, scores("tea"), {"collMod": "c", "index": {"name": "words", "hidden": False}}, scores("tea"),
        messages=False,
    ),
]  # fmt: skip
