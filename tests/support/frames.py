"""Frames with wrong lengths: valid ones, of which lengths are changed."""

import random
import struct
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Length:
    """A length within a frame, and the bytes that it counts."""

    at: int
    width: int
    start: int
    end: int


@dataclass
class Frame:
    name: str
    data: bytes
    lengths: list[Length] = field(default_factory=list)

    def value(self, length: Length) -> int:
        return int.from_bytes(self.data[length.at : length.at + length.width], "little")


def add_bson(frame: Frame, at: int) -> Frame:
    """Adds the lengths of the BSON document at `at`."""
    _document(frame, at)
    return frame


def _document(frame: Frame, at: int) -> int:
    end = at + struct.unpack_from("<i", frame.data, at)[0]
    frame.lengths.append(Length(at, 4, at, end))
    next_ = at + 4
    while frame.data[next_] and next_ < end - 1:
        kind, value = frame.data[next_], frame.data.index(0, next_ + 1) + 1
        if kind in (3, 4):
            next_ = _document(frame, value)
        elif kind in (2, 5):
            start = value + 4 + (kind == 5)
            next_ = start + struct.unpack_from("<i", frame.data, value)[0]
            frame.lengths.append(Length(value, 4, start, next_))
        else:
            next_ = value + {1: 8, 7: 12, 8: 1, 9: 8, 16: 4, 18: 8}[kind]
    return end


def _put(data: bytearray, length: Length, value: int):
    if length.at + length.width <= len(data):
        data[length.at : length.at + length.width] = (value % (1 << 8 * length.width)).to_bytes(length.width, "little")


def set_length(frame: Frame, length: Length, value: int) -> bytes:
    data = bytearray(frame.data)
    _put(data, length, value)
    return bytes(data)


def grow(frame: Frame, length: Length, by: int, cut: int = 0) -> bytes:
    """Grows a length and those around it, but sends no more bytes, and cuts some off the end."""
    data = bytearray(frame.data)
    for other in frame.lengths:
        if other == length or other.start <= length.at < other.end:
            _put(data, other, frame.value(other) + by)
    return bytes(data[: len(data) - cut] if cut else data)


def values(value: int, width: int) -> list[int]:
    largest = (1 << 8 * width) - 1
    return [value - 1, value + 1, value * 2, 0, 251, 252, 253, 254, largest, largest >> 1, (largest >> 1) + 1, 48_000_000, -value]


def changed(frame: Frame, chance: random.Random) -> bytes:
    """A frame with one changed length, or several that agree."""
    length = chance.choice(frame.lengths)
    if chance.random() < 0.5:
        return grow(frame, length, chance.randrange(1, 2000), chance.randrange(16))
    return set_length(frame, length, chance.choice(values(frame.value(length), length.width)))
