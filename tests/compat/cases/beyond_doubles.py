"""Functions of real numbers on decimals outside of the range of doubles, and other values at the
ends of their ranges."""

from bson import Decimal128

from compat.case import COLLECTION, commands, differs

VAST = [Decimal128(text) for text in ("1E+400", "-1E+400", "1E-400", "9.99E+6144", "1E-6176", "1E+309", "14150", "-14500", "2", "Infinity", "-Infinity", "NaN", "0", "-5")]
LEAST = Decimal128("1E-6176")
OF_ONE = ["ln", "log10", "sqrt", "exp", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh", "degreesToRadians"]


def computed(expression):
    return {"aggregate": COLLECTION, "pipeline": [{"$project": {"_id": 0, "r": expression}}], "cursor": {}}


BLOCKS = [
    commands("decimals beyond doubles", [{"_id": 1, "a": 1}],
        *(computed({f"${name}": number}) for name in OF_ONE for number in VAST if (name, number) != ("asinh", LEAST)),
        differs(computed({"$asinh": LEAST}), "MongoDB's library gives zero for the least number there is"),
        *(computed({"$log": pair}) for number in VAST for pair in ([number, 2], [number, Decimal128("3E+400")], [2, number], [number, 10])),
        *(computed({"$pow": pair}) for number in VAST for pair in ([number, 2], [2, number], [Decimal128("1.0001"), number])),
        *(computed({"$atan2": pair}) for number in VAST for pair in ([number, 1], [1, number]))),
    commands("expression $toHashedIndexKey", [{"_id": 1, "a": 1, "s": "abc", "l": [1, 2], "o": {"x": 1}}],
        *(computed({"$toHashedIndexKey": operand}) for operand in (1, 1.7, [1], [], "$a", "$s", "$l", "$o", "$nope", None, ["$a"], {}, {"$add": ["$a", 1]}, {"$literal": {"$a": 1}}, "abc",
            Decimal128("1.2"), "$$ROOT", True))),
]
