"""`$jsonSchema`: schemas of the whole document and of a property, valid and invalid, and the order
of errors."""

from bson import Decimal128, Int64

from compat.case import filters

NAN, INFINITY = float("nan"), float("inf")

SCHEMA_DOCUMENTS = [
    {"_id": 1, "a": {"b": 1}}, {"_id": 2, "a.b": 1}, {"_id": 3, "a.b": "x"}, {"_id": 4, "a": {"b": "x"}},
    {"_id": 5, "a": [{"b": "x"}]}, {"_id": 6, "a": [{"b": 1}]}, {"_id": 7, "a": "xé"}, {"_id": 8, "a": 3}, {"_id": 9, "a": [1, 2, 3]},
    {"_id": 10, "a": [{"x": 1, "y": 2}, {"y": 2, "x": 1}]}, {"_id": 11, "a": None}, {"_id": 12}, {"_id": 13, "a": NAN},
    {"_id": 14, "a": 0.3}, {"_id": 15, "a": [1, 1.0]}, {"_id": 16, "a": Decimal128("0.3")}, {"_id": 17, "a": True},
]  # fmt: skip

# Schemas of the whole document, good and bad.
WHOLE = [
    1, {"type": 1}, {"type": "foo"}, {"type": "integer"}, {"bsonType": "int"}, {"bsonType": "foo"}, {"bsonType": ["int", "foo"]},
    {"type": "int"}, {"type": []}, {"type": ["string", "string"]}, {"type": ["string", 1]}, {"type": "string", "bsonType": "string"},
    {"bsonType": 1}, {"foo": 1}, {"$ref": 1}, {"format": 1}, {"default": 1}, {"id": 1}, {"definitions": 1}, {"$schema": 1},
    {"minimum": "a"}, {"minimum": 1, "exclusiveMinimum": 1}, {"exclusiveMinimum": True}, {"minimum": 1, "exclusiveMinimum": True},
    {"exclusiveMaximum": True}, {"maximum": "x"}, {"maximum": 1, "exclusiveMaximum": "x"}, {"multipleOf": 0}, {"multipleOf": -1},
    {"multipleOf": "x"}, {"multipleOf": 1.5}, {"multipleOf": NAN}, {"multipleOf": INFINITY}, {"minLength": -1}, {"minLength": 1.5},
    {"minLength": "x"}, {"minLength": 3.0}, {"maxLength": -1}, {"pattern": 1}, {"pattern": "("}, {"minItems": -1}, {"maxItems": "x"},
    {"uniqueItems": 1}, {"minProperties": -1}, {"maxProperties": "x"}, {"required": []}, {"required": 1}, {"required": [1]},
    {"required": ["a", "a"]}, {"properties": 1}, {"properties": {"a": 1}}, {"properties": {"a": {"foo": 1}}},
    {"patternProperties": 1}, {"patternProperties": {"(": {}}}, {"patternProperties": {"a": 1}}, {"additionalProperties": 1},
    {"additionalProperties": {"foo": 1}}, {"items": 1}, {"items": [1]}, {"items": {"foo": 1}}, {"items": []},
    {"additionalItems": 1}, {"additionalItems": {"foo": 1}}, {"dependencies": 1}, {"dependencies": {"a": 1}},
    {"dependencies": {"a": []}}, {"dependencies": {"a": [1]}}, {"dependencies": {"a": ["b", "b"]}},
    {"dependencies": {"a": {"foo": 1}}}, {"enum": 1}, {"enum": []}, {"enum": [1, 1]}, {"enum": [1, 1.0]},
    {"enum": [{"a": 1, "b": 1}, {"b": 1, "a": 1}]}, {"allOf": 1}, {"allOf": []}, {"allOf": [1]}, {"anyOf": []}, {"oneOf": []},
    {"not": 1}, {"not": {"foo": 1}}, {"title": 1}, {"description": 1}, {"encrypt": {}}, {"encryptMetadata": {}},
    {"properties": {"": {}}}, {"properties": {"a.b": {"type": "string"}}}, {"required": ["a.b"]}, {"const": 1}, {"contains": 1},
    {"required": ["a.b"], "properties": {"a.b": {"type": "string"}}}, {"minimum": None}, {"type": "null"}, {"type": "any"},
    {"bsonType": "any"}, {"bsonType": "number"}, {"bsonType": "missing"}, {"bsonType": []}, {"bsonType": ["int", "int"]},
    {"minLength": 1e30}, {"minLength": Decimal128("3")}, {"minItems": Int64(3)}, {"bsonType": 16}, {"properties": {"$a": {}}},
    {"title": "a", "title2": "b"}, {"additionalProperties": {}}, {"type": "array"}, {"type": "object"},
    {"bsonType": ["array", "object"]}, {"minimum": 5}, {"enum": [1]}, {"enum": [1, {"_id": 12}]},
    {"enum": [{"a": {"b": 1}, "_id": 1.0}]}, {"additionalProperties": False},
    {"properties": {"_id": {}, "a": {}}, "additionalProperties": False},
    {"patternProperties": {"^_": {}, "\\.": {}}, "additionalProperties": {"type": "string"}},
    {"patternProperties": {"a": {"type": "string"}}}, {"dependencies": {"a": ["b"]}}, {"dependencies": {"a.b": ["c"]}},
    {"dependencies": {"a": {"properties": {"a": {"type": "string"}}}}}, {"not": {"required": ["a"]}}, {"minProperties": 2},
    {"maxProperties": 1}, {"encrypt": {"foo": 1}}, {"encrypt": {"bsonType": "int"}}, {"encrypt": {"algorithm": "x"}},
    {"encrypt": {}, "type": "string"},
    # The order of errors.
    {"properties": {"a": {"foo": 1}}, "minimum": "x"}, {"minimum": "x", "foo": 1}, {"title": 1, "foo": 1},
    {"title": 1, "type": 1}, {"type": 1, "minimum": "x"}, {"allOf": 1, "items": 1, "required": 1}, {"allOf": 1, "items": 1},
    {"required": 1, "properties": 1, "minProperties": "x"}, {"patternProperties": 1, "additionalProperties": 1},
    {"minProperties": "x", "maxProperties": "y", "dependencies": 1}, {"items": 1, "minItems": "x", "maxItems": "x"},
    {"allOf": 1, "anyOf": 1, "oneOf": 1, "not": 1, "enum": 1}, {"not": 1, "enum": 1}, {"minLength": "x", "pattern": 1},
    {"multipleOf": "x", "minLength": "y"}, {"maximum": "x", "multipleOf": "y"},
]  # fmt: skip

# Schemas of the property `a`.
PROPERTY = [
    {"pattern": "("}, {"pattern": "x"}, {"uniqueItems": True}, {"multipleOf": 0.1}, {"multipleOf": Decimal128("0.1")},
    {"multipleOf": NAN}, {"multipleOf": INFINITY}, {"minLength": 2}, {"minLength": 3}, {"maxLength": 2}, {"maximum": 2},
    {"maximum": 3, "exclusiveMaximum": True}, {"minimum": NAN}, {"minimum": 1}, {"additionalItems": False},
    {"items": [{"type": "number"}], "additionalItems": False}, {"items": {"type": "number"}, "additionalItems": False},
    {"items": [{}], "additionalItems": {"type": "string"}}, {"encrypt": {}}, {"enum": [{"x": 1}, [1, 2, 3], None]},
    {"enum": [[{"y": 2, "x": 1}, {"y": 2, "x": 1}]]}, {"not": {"type": "string"}}, {"oneOf": [{"type": "string"}, {"minLength": 2}]},
    {"anyOf": [{"type": "string"}, {"minimum": 2}]}, {"allOf": [{"type": "number"}, {"minimum": 2}]}, {"minProperties": 1},
    {"maxProperties": 0}, {"minItems": 2}, {"maxItems": 1}, {"required": ["b"]}, {"type": "boolean"}, {"type": ["boolean", "null"]},
    {"bsonType": "bool"}, {"bsonType": ["decimal", "double"]}, {"properties": {"b": {"type": "string"}}},
    {"properties": {"b": {"type": "string"}}, "required": ["b"], "additionalProperties": False},
    {"items": {"properties": {"b": {"type": "string"}}}}, {"dependencies": {"b": ["c"]}},
]  # fmt: skip


BLOCKS = [
    filters(
        "$jsonSchema",
        SCHEMA_DOCUMENTS,
        *({"$jsonSchema": schema} for schema in WHOLE),
        *({"$jsonSchema": {"properties": {"a": schema}}} for schema in PROPERTY),
        {"a": {"$elemMatch": {"$jsonSchema": {"properties": {"b": {"type": "string"}}}}}},
        {"$or": [{"$jsonSchema": {"required": ["a.b"]}}, {"_id": 12}]},
        {"a": {"$jsonSchema": {}}},
        {"a": {"$not": {"$jsonSchema": {}}}},
    ),
]
