"""Patterns of PCRE 8 that PCRE2, which Selkie has, refuses or reads otherwise."""

from bson import Regex

from compat.case import commands, filters
from compat.cases.values import numbered

TEXTS = numbered(["", "a", "ab", "abc", "AB", "A", "8", "\\8", "i", "I", "a{,3}", "{,5}", "aaa", "john.doe-x@ex-am.com", "+1 (555) 123-45",
    "user@site.org", "・", "中文", "über", "ÜBER", "-", "a-z", "x{zz}", "xzz", "\x00", "a\nb", "a b", "a#b", "12", "é", "ǅ", "R", "B", "X", "z",
    "λ", "Λ", "aba", "abba", "a\x0bb", "a\x85b", "\u2028", "K", "k", "\u212a", "ß", "{1}", "a{1", "a{1,2", "a{x}", "F", "T"])

EMAIL = r"^[\w-\.]+@([\w-]+\.)+[\w-]{2,4}$"
PATTERNS = [
    EMAIL, r"[\d-+() ]", r"[\d-a]", r"[\d--z]", "[[:digit:]-z]", r"[\p{L}-z]", r"[a-\d]", r"[a-\R]", "[]a]", r"[\E]a]", "[^]a]", r"[a\Q]-\E]",
    "a{,3}", "{,5}", "a{1, 2}", "a{ 1 }", "a{1", "a{x}", "a{1,2}", "a{2,}",
    *("\\" + letter for letter in "FIJMOTYijmqyLlUu"), r"[\i\F]", r"[\B]", r"[\R\X]", r"[\A\z]", r"[\b]",
    r"\8", r"\9", r"\88", r"(a)\8", r"(a)\1", r"\1", r"\12", r"[\8]", r"\x", r"\xg", r"\x41", r"\x{41}", r"\x{ 41 }", r"\x{zz}", r"\o{101}",
    Regex(r"\p{Lu}", "i"), Regex(r"\P{Lu}", "i"), Regex(r"[\p{Lu}8]", "i"), Regex(r"[^\p{Lu}8]", "i"), Regex(r"[^\p{Ll}]", "i"), r"(?i)\p{Lu}",
    r"((?i)a)\p{Lu}", r"\p{^Lu}", r"\p{ Lu }", r"\pL", r"\p{L&}", r"\p{Han}", r"\P{Han}", r"\p{Katakana}", r"\p{greek}", r"\p{Greek}",
    r"\p{Alphabetic}", r"\p{Adlam}", r"\p{Xwd}", r"\p{Lu",
    "(?x)a # b", "(?x)a # b\n", Regex("a # b", "x"), r"\Qa", r"\Qa\E", "(?x: a )b", Regex("a\x85b", "x"), Regex("a\u2028b", "x"), Regex("a\x0bb", "x"),
    "(?xx)a b", "(?X)a", r"(?X)\i", "(?^)a", "(?n)a", "(?-i)a", r"\N{U+41}", r"\N", "(*pla:a)a", "(*ACCEPT)*", "(*FAIL)", "(?[a])", "(?*a)",
    "(?<=a|bc)b", "(?<=(a|bc))b", "(?<=a*)b", r"(?<=\Ra)b", "(?<=a{2})b", "(?<!a{1,2})b", "(a|b(?1)?)a", "^(a|b|ab)(?1)$", "(?<n>a)(?&n)",
    "(?(VERSION>=10)a|b)", "(a)?(?(1)b|8)", "(?<" + "n" * 33 + ">a)", "(?<" + "n" * 32 + ">a)", "[[:<:]]a", "[[.a.]]", "a**", "a++b",
]
EACH = [pattern if isinstance(pattern, Regex) else Regex(pattern) for pattern in PATTERNS]
OPTIONS = {2: "i", 64: "x"}


def options(pattern: Regex) -> str:
    return "".join(letter for flag, letter in OPTIONS.items() if pattern.flags & flag)


BLOCKS = [
    filters("regular expressions of PCRE 8", TEXTS, *({"v": pattern} for pattern in EACH),
        *({"v": {"$in": ["a", pattern]}} for pattern in EACH[:24]), *({"v": {"$regex": "^" + pattern.pattern}} for pattern in EACH[:24])),
    commands("regular expressions of PCRE 8", TEXTS,
        *({"aggregate": "c", "pipeline": [{"$sort": {"_id": 1}},
            {"$project": {"r": {"$regexFindAll": {"input": "$v", "regex": pattern.pattern, "options": options(pattern)}}}}],
            "cursor": {"batchSize": 1000}} for pattern in EACH)),
    # By an index, whose bounds come of what a pattern begins with.
    commands("regular expressions of PCRE 8", TEXTS, *({"find": "c", "filter": {"v": Regex(pattern, flags)}, "sort": {"_id": 1}, "batchSize": 1000}
        for pattern, flags in ((r"^a{,3}", ""), (r"^\x61b", ""), (r"^a\i?", ""), (r"^[\w-.]+$", ""), ("^a \x0bb", "x"), (r"\Aa\8", ""))),
        setup=[{"createIndexes": "c", "indexes": [{"key": {"v": 1}, "name": "v_1"}]}]),
    commands("regular expressions of PCRE 8", [],
        {"create": "v", "validator": {"$jsonSchema": {"properties": {"mail": {"bsonType": "string", "pattern": EMAIL}}}}},
        {"insert": "v", "documents": [{"_id": 1, "mail": "jane.doe-x@ex-am.com"}]}, {"insert": "v", "documents": [{"_id": 2, "mail": "nobody"}]},
        {"create": "w", "validator": {"mail": {"$regex": EMAIL}}}, {"insert": "w", "documents": [{"_id": 2, "mail": "nobody"}]}, script=True),
]
