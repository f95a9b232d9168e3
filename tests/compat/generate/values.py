"""Random values, documents and paths, dense in small values so that they meet."""

import random

import bson
from bson import Binary, Code, DatetimeMS, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

# Fields of any type, and fields that mostly have the type of their letter: number, string, list,
# date, object.
MIXED = ["a", "b", "c"]
TYPED = {"n": "number", "s": "text", "l": "numbers", "d": "date", "o": "object"}

DATES_MS = [
    0, -1, 1_577_836_800_000, 1_582_934_399_999, 1_585_443_600_000, 1_603_584_000_000, 1_609_459_199_999, -2_208_988_800_001,
    951_782_400_000, 1_330_560_000_000, 253_402_300_799_999, 1_456_704_000_123, 1_700_000_000_000,
]
OBJECT_ID = ObjectId("5f5b2f1e1c9d440000a1b2c3")


class Values:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *options):
        return self.random.choice(options)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def some(self, make, least: int, most: int) -> list:
        return [make() for _ in range(self.random.randint(least, most))]

    def number(self):
        r = self.random
        return self.pick(
            r.randint(-3, 5), r.randint(-3, 5), r.randint(0, 20), Int64(r.randint(-3, 5)), float(r.randint(-3, 5)), r.randint(-30, 50) / 10,
            Decimal128(str(r.randint(-3, 5))), self.odd_number() if self.chance(0.4) else r.randint(0, 3),
        )

    def odd_number(self):
        r = self.random
        return self.pick(
            Decimal128("2.5"), Decimal128("1.50"), Decimal128("NaN"), Decimal128("Infinity"), Decimal128("-0"), Decimal128("1E+3"),
                Decimal128("1E-7"),
            r.randint(-(2**31), 2**31 - 1), 2**31 - 1, -(2**31), Int64(2**31), Int64(2**53 + r.randint(-1, 1)), Int64(2**63 - 1),
                Int64(-(2**63)),
            float(2**53), float("nan"), float("inf"), float("-inf"), -0.0, 0.1, 1e300, 5e-324, 1e-7, 123456789.125,
        )

    def text(self) -> str:
        return "".join(self.pick("a", "b", "A", "é", "1", " ", ".") for _ in range(self.random.randint(0, 4)))

    def date(self) -> DatetimeMS:
        return DatetimeMS(self.pick(*DATES_MS) if self.chance(0.7) else self.random.randint(-(10**12), 2 * 10**12))

    def numbers(self) -> list:
        return self.some(self.number, 0, 4)

    def object(self) -> dict:
        return {name: self.scalar() for name in self.random.sample(MIXED, self.random.randint(0, 3))}

    def scalar(self):
        if self.chance(0.4):
            return self.number()
        if self.chance(0.4):
            return self.text()
        return self.pick(
            None, None, True, False, self.date(), self.date(), OBJECT_ID, MinKey(), MaxKey(), Regex("a"), Regex("^A", "i"),
            Binary(b"ab"), Binary(bytes(16), 4), Timestamp(5, 1), Code("f"),
        )

    def value(self, depth: int = 2):
        if depth and self.chance(0.25):
            return self.some(lambda: self.value(depth - 1), 0, 3)
        if depth and self.chance(0.25):
            return {name: self.value(depth - 1) for name in self.random.sample(MIXED, self.random.randint(0, 2))}
        return self.scalar()

    def document(self, number) -> dict:
        document = {"_id": number}
        names = [*MIXED, *TYPED]
        self.random.shuffle(names)
        for name in names:
            if self.chance(0.25):
                continue
            make = getattr(self, TYPED[name]) if name in TYPED and self.chance(0.9) else self.value
            document[name] = make()
        if self.chance(0.1):
            document[self.pick("0", "x", "")] = self.value()
        return document

    def documents(self, least: int, most: int) -> list[dict]:
        return [self.document(number) for number in range(self.random.randint(least, most))]

    def name(self) -> str:
        return self.pick(*MIXED, *TYPED)

    def path(self) -> str:
        """A path with numeric parts as well."""
        parts = [self.name()]
        while self.chance(0.3) and len(parts) < 4:
            parts.append(self.pick(*MIXED, *MIXED, "0", "1"))
        return ".".join(parts)

    def plain_path(self) -> str:
        """A path without numbers, as expressions like them."""
        return ".".join([self.name(), *self.some(lambda: self.pick(*MIXED), 0, 1)])


def size(value) -> int:
    return len(bson.encode({"": value}))
