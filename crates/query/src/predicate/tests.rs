use super::{MatchDetails, Predicate};
use crate::Context;
use shorthand::document as doc;

fn parse(filter: &str) -> error::Result<Predicate> {
    Predicate::parse(doc(filter).as_doc(), &Context::at(0))
}

/// Checks a filter against documents that match and documents that don't.
fn check_match(filter: &str, matching: &[&str], others: &[&str]) {
    let predicate = parse(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
    for (documents, expected) in [(matching, true), (others, false)] {
        for document in documents {
            let found = predicate.matches(doc(document).as_doc());
            assert_eq!(found, Ok(expected), "{filter} on {document}");
        }
    }
}

fn check_refused(filter: &str, code: i32, message: &str) {
    match parse(filter) {
        Ok(predicate) => panic!("{filter} is not refused: {predicate:?}"),
        Err(error) => assert_eq!((error.code().0, error.message()), (code, message), "{filter}"),
    }
}

#[test]
fn equality() {
    check_match("{'a': 1}", &["{'a': 1}", "{'a': 1.0}", "{'a': [0, 1]}"], &["{}", "{'a': '1'}", "{'a': [[1]]}"]);
    check_match("{'a': 'x'}", &["{'a': 'x'}", "{'a': ['y', 'x']}"], &["{'a': 'X'}", "{'a': null}"]);
    check_match("{'a': null}", &["{}", "{'a': null}", "{'a': [null]}"], &["{'a': 0}", "{'a': []}"]);
    check_match("{'a': [1, 2]}", &["{'a': [1, 2]}", "{'a': [[1, 2]]}"], &["{'a': [2, 1]}", "{'a': 1}"]);
    check_match("{'a': {'b': 1}}", &["{'a': {'b': 1.0}}"], &["{'a': {'b': 1, 'c': 2}}", "{'a': {'c': 1}}"]);
    check_match("{'a': {'$ne': 1}}", &["{}", "{'a': 2}", "{'a': []}"], &["{'a': 1}", "{'a': [2, 1]}"]);
    check_match("{}", &["{}", "{'a': 1}"], &[]);
    check_match("{'a': NaN}", &["{'a': NaN}"], &["{'a': 1}"]);
}

#[test]
fn ordering() {
    check_match("{'a': {'$gt': 1}}", &["{'a': 2}", "{'a': [0, 2]}", "{'a': 1.5}"], &["{'a': 1}", "{'a': '2'}", "{}"]);
    check_match("{'a': {'$lt': 5}}", &["{'a': 2}"], &["{'a': NaN}", "{'a': null}"]);
    check_match("{'a': {'$gte': null}}", &["{}", "{'a': null}"], &["{'a': 0}"]);
    check_match("{'a': {'$gt': null}}", &[], &["{}", "{'a': null}", "{'a': 0}"]);
    check_match("{'a': {'$gt': MinKey}}", &["{}", "{'a': 0}"], &["{'a': MinKey}"]);
    check_match("{'a': {'$lt': [1, 3]}}", &["{'a': [1, 2]}"], &["{'a': [1, 3]}", "{'a': 1}"]);
    check_match("{'a': {'$gt': 1, '$lt': 3}}", &["{'a': 2}", "{'a': [0, 5]}"], &["{'a': 3}"]);
}

#[test]
fn paths() {
    check_match("{'a.b': 1}", &["{'a': {'b': 1}}", "{'a': [{'b': 0}, {'b': [1]}]}"], &["{'a': [[{'b': 1}]]}"]);
    check_match("{'a.0': 1}", &["{'a': [1]}", "{'a': {'0': 1}}", "{'a': [{'0': 1}]}"], &["{'a': [[1]]}", "{'a': 1}"]);
    check_match("{'a.0.b': 1}", &["{'a': [{'b': 1}]}", "{'a': [[{'b': 1}]]}"], &["{'a': [0, {'b': 1}]}"]);
    check_match("{'a.b': null}", &["{}", "{'a': 1}", "{'a': [{}]}"], &["{'a': []}", "{'a': [1]}", "{'a': {'b': 1}}"]);
    check_match("{'a.b': {'$exists': false}}", &["{'a': []}", "{'a': [1]}"], &["{'a': [{}, {'b': 1}]}"]);
}

#[test]
fn logic() {
    check_match("{'$or': [{'a': 1}, {'b': 1}]}", &["{'a': 1}", "{'b': 1}"], &["{}"]);
    check_match("{'$nor': [{'a': 1}, {'b': 1}]}", &["{}"], &["{'a': 1}", "{'b': 1}"]);
    check_match("{'$and': [{'a': 1}, {'b': 1}]}", &["{'a': 1, 'b': 1}"], &["{'a': 1}"]);
    check_match("{'a': {'$not': {'$gt': 1, '$lt': 5}}}", &["{}", "{'a': 7}"], &["{'a': 3}", "{'a': [0, 7]}"]);
    check_match("{'a': {'$not': {'$regex': '^x'}}}", &["{}", "{'a': 'y'}"], &["{'a': 'xy'}"]);
    check_match("{'$expr': {'$gt': ['$a', '$b']}}", &["{'a': 2, 'b': 1}", "{'a': 1}"], &["{'a': 1, 'b': 1}"]);
    check_match("{'$alwaysFalse': 1}", &[], &["{}"]);
}

#[test]
fn lists() {
    check_match("{'a': {'$in': [1, 'x', null]}}", &["{'a': 1.0}", "{'a': ['x']}", "{}"], &["{'a': 2}", "{'a': 'y'}"]);
    check_match("{'a': {'$nin': [1, 2]}}", &["{}", "{'a': 3}"], &["{'a': 1}", "{'a': [3, 2]}"]);
    check_match("{'a': {'$in': [/^x/i, 5]}}", &["{'a': 'Xy'}", "{'a': 5}"], &["{'a': 'yx'}"]);
    check_match("{'a': {'$in': []}}", &[], &["{}", "{'a': 1}"]);
    check_match("{'a': {'$all': [1, 2]}}", &["{'a': [2, 3, 1]}"], &["{'a': 1}", "{'a': [1]}"]);
    check_match("{'a': {'$all': []}}", &[], &["{}", "{'a': []}"]);
    check_match(
        "{'a': {'$all': [{'$elemMatch': {'b': 1}}, {'$elemMatch': {'b': 2}}]}}",
        &["{'a': [{'b': 1}, {'b': 2}]}"],
        &["{'a': [{'b': 1}]}"],
    );
}

#[test]
fn arrays() {
    check_match("{'a': {'$size': 2}}", &["{'a': [1, 2]}"], &["{'a': 2}", "{'a': [[1, 2]]}", "{}"]);
    check_match("{'a': {'$elemMatch': {'$gt': 1, '$lt': 3}}}", &["{'a': [0, 2]}"], &["{'a': [0, 5]}", "{'a': 2}"]);
    check_match(
        "{'a': {'$elemMatch': {'b': 1, 'c': 2}}}",
        &["{'a': [{'b': 1, 'c': 2}]}"],
        &["{'a': [{'b': 1}, {'c': 2}]}"],
    );
    check_match("{'a': {'$elemMatch': {'0': 1}}}", &["{'a': [[1]]}"], &["{'a': [1]}"]);
}

#[test]
fn kinds_numbers_bits() {
    check_match("{'a': {'$type': 'number'}}", &["{'a': 1}", "{'a': [1.5]}"], &["{'a': '1'}", "{}"]);
    check_match("{'a': {'$type': [2, 'array']}}", &["{'a': 'x'}", "{'a': []}"], &["{'a': 1}"]);
    check_match("{'a': {'$mod': [4, 1]}}", &["{'a': 5}", "{'a': 5.9}", "{'a': [1]}"], &["{'a': 4}", "{'a': '5'}"]);
    check_match("{'a': {'$bitsAllSet': 5}}", &["{'a': 7}", "{'a': 5.0}"], &["{'a': 4}", "{'a': 5.5}"]);
    check_match("{'a': {'$bitsAnyClear': [0, 70]}}", &["{'a': 2}"], &["{'a': -1}"]);
}

#[test]
fn regular_expressions() {
    check_match("{'a': {'$regex': '^ab'}}", &["{'a': 'abc'}", "{'a': ['x', 'ab']}"], &["{'a': 'xab'}", "{'a': 1}"]);
    check_match("{'a': {'$regex': 'b'}}", &["{'a': 'abc'}"], &["{'a': 'ac'}"]);
    check_match("{'a': {'$regex': 'B+', '$options': 'i'}}", &["{'a': 'abbc'}"], &["{'a': 'ac'}"]);
    let predicate = parse("{'a': {'$regex': '^(a+)+$'}}").unwrap();
    let document = doc(&format!("{{'a': '{}b'}}", "a".repeat(40)));
    let error = predicate.matches(document.as_doc()).expect_err("backtracking without end");
    assert_eq!(error.code().0, 51156);
}

#[test]
fn refusals() {
    let cases = [
        ("{'a': {'$foo': 1}}", 2, "unknown operator: $foo"),
        ("{'a': {'$in': 1}}", 2, "$in needs an array"),
        ("{'a': {'$in': [{'$a': 1}]}}", 2, "cannot nest $ under $in"),
        ("{'$and': []}", 2, "$and/$or/$nor must be a nonempty array"),
        ("{'$or': [1]}", 2, "$or/$and/$nor entries need to be full objects"),
        ("{'a': {'$type': 'foo'}}", 2, "Unknown type name alias: foo"),
        ("{'a': {'$type': 1.5}}", 2, "Invalid numerical type code: 1.5"),
        ("{'a': {'$options': 'i'}}", 2, "$options needs a $regex"),
        ("{'a': {'$regex': 'a', '$options': 'q'}}", 51108, " invalid flag in regex options: q"),
        ("{'a': {'$mod': [0, 1]}}", 2, "divisor cannot be 0"),
        ("{'a': {'$size': -1}}", 2, "Failed to parse $size. Expected a non-negative number in: $size: -1"),
        ("{'a': {'$size': 1e30}}", 2, "Failed to parse $size. Cannot represent as a 64-bit integer: $size: 1e+30.0"),
        ("{'a': {'$elemMatch': {'$gt': 1, 'b': 1}}}", 2, "unknown operator: b"),
        ("{'a': {'$ne': /x/}}", 2, "Can't have regex as arg to $ne."),
    ];
    for (filter, code, message) in cases {
        check_refused(filter, code, message);
    }
}

#[test]
fn nesting_is_bounded() {
    let mut document = doc("{'a': 1}");
    for _ in 0..101 {
        let mut outer = document::DocBuf::new();
        outer.append("$nor", &document::array![&document]);
        document = outer;
    }
    let error = Predicate::parse(document.as_doc(), &Context::at(0)).expect_err("too deep");
    assert_eq!(error.code().0, 2);
}

#[test]
fn array_index_for_the_positional_operator() {
    let check = |filter: &str, document: &str, expected| {
        let mut details = MatchDetails::default();
        let matched = parse(filter).unwrap().matches_with(doc(document).as_doc(), &mut details);
        assert_eq!((matched, details.array_index), (Ok(true), expected), "{filter} on {document}");
    };
    check("{'a': 3}", "{'a': [1, 2, 3]}", Some(2));
    check("{'a': 3}", "{'a': 3}", None);
    check("{'a.b': 9}", "{'a': [{'b': [1]}, {'b': [7, 8, 9]}]}", Some(1));
    check("{'a': {'$elemMatch': {'$gt': 1}}}", "{'a': [0, 2]}", Some(1));
    // The last test of a conjunction decides, in MongoDB's order of tests.
    check("{'b': 5, 'a': 3}", "{'a': [1, 2, 3], 'b': [4, 5, 6]}", Some(1));
    check("{'b': 5, 'a': {'$gt': 2}}", "{'a': [1, 2, 3], 'b': [4, 5, 6]}", Some(2));
}

#[test]
fn json_schema() {
    let document = "{'$jsonSchema': {'required': ['a'], 'properties': {'a': {'bsonType': 'int', 'minimum': 3}}}}";
    check_match(document, &["{'a': 3}", "{'a': 4, 'b': 1}"], &["{}", "{'a': 2}", "{'a': 3.5}", "{'a': '3'}"]);
    // A schema of a property, with valid and invalid documents.
    let check = |schema: &str, right: &[&str], wrong: &[&str]| {
        let within = |values: &[&str]| values.iter().map(|value| format!("{{'a': {value}}}")).collect::<Vec<_>>();
        let (right, wrong) = (within(right), within(wrong));
        let (right, wrong): (Vec<_>, Vec<_>) =
            (right.iter().map(|s| &**s).collect(), wrong.iter().map(|s| &**s).collect());
        check_match(&format!("{{'$jsonSchema': {{'properties': {{'a': {schema}}}}}}}"), &right, &wrong);
    };
    check("{'type': ['string', 'boolean']}", &["'x'", "true"], &["1", "null"]);
    check("{'bsonType': ['number', 'bool']}", &["1.5", "false"], &["'x'"]);
    check("{'maximum': 2, 'exclusiveMaximum': true}", &["1", "'x'", "[9]"], &["2", "2.5", "NaN"]);
    check("{'minimum': NaN}", &["NaN", "'x'"], &["1"]);
    check("{'multipleOf': 0.1}", &["0.3", "2", "'x'"], &["0.25", "NaN"]);
    check("{'minLength': 2, 'maxLength': 3}", &["'xé'", "1"], &["'é'", "'abcd'"]);
    check("{'pattern': '^x.y$'}", &["'x-y'", "5"], &["'xy'"]);
    check("{'minItems': 1, 'maxItems': 2}", &["[1]", "[1, 2]", "{}"], &["[]", "[1, 2, 3]"]);
    check("{'uniqueItems': true}", &["[1, 2]", "[]"], &["[1, 1.0]", "[{'x': 1, 'y': [2]}, {'y': [2.0], 'x': 1}]"]);
    check("{'items': {'type': 'number'}, 'additionalItems': false}", &["[1, 2]", "1"], &["[1, 'x']"]);
    check("{'items': [{'type': 'number'}], 'additionalItems': false}", &["[1]", "[]"], &["['x']", "[1, 2]"]);
    check("{'items': [{}], 'additionalItems': {'type': 'string'}}", &["[1, 'x']"], &["[1, 2]"]);
    check("{'additionalItems': false}", &["[1, 2]"], &[]);
    check("{'minProperties': 1, 'maxProperties': 2}", &["{'x': 1}", "[]"], &["{}", "{'x': 1, 'y': 1, 'z': 1}"]);
    check("{'properties': {'b': {}}, 'additionalProperties': false}", &["{'b': 1}", "1"], &["{'c': 1}"]);
    check(
        "{'patternProperties': {'^b': {'type': 'number'}}, 'additionalProperties': {'type': 'string'}}",
        &["{'b1': 1, 'c': 'x'}"],
        &["{'b1': 'x'}", "{'c': 1}"],
    );
    check("{'dependencies': {'b': ['c']}}", &["{'b': 1, 'c': 1}", "{'c': 1}", "1"], &["{'b': 1}"]);
    check("{'dependencies': {'b': {'required': ['d']}}}", &["{'b': 1, 'd': 1}", "{}"], &["{'b': 1}"]);
    check("{'enum': [null, {'x': 1, 'y': 2}, [1, 2]]}", &["null", "{'y': 2, 'x': 1.0}", "[1, 2]"], &["1", "[2, 1]"]);
    check("{'oneOf': [{'type': 'string'}, {'minLength': 2}]}", &["'x'", "1"], &["'xy'"]);
    check("{'anyOf': [{'type': 'string'}, {'minimum': 2}]}", &["'x'", "2", "null"], &["1"]);
    check("{'allOf': [{'minimum': 2}, {'maximum': 3}], 'not': {'multipleOf': 3}}", &["2"], &["1", "4", "3", "'x'"]);
}

#[test]
fn a_schema_about_the_whole_document() {
    let everything = &["{}", "{'a': 1}"];
    for schema in ["{'minimum': 5}", "{'type': 'object'}", "{'pattern': '('}", "{'bsonType': ['array', 'object']}"] {
        check_match(&format!("{{'$jsonSchema': {schema}}}"), everything, &[]);
    }
    check_match("{'$jsonSchema': {'enum': [1, {'a': 1}]}}", &["{'a': 1.0}"], &["{}", "{'a': 2}"]);
    check_match("{'$jsonSchema': {'type': 'array'}}", &[], everything);
    check_match(
        "{'a': {'$elemMatch': {'$jsonSchema': {'required': ['b']}}}}",
        &["{'a': [{'b': 1}]}"],
        &["{'a': [{}]}"],
    );
    // A property's name with dots is a path, except for `additionalProperties`.
    let dotted = "{'$jsonSchema': {'required': ['a.b'], 'properties': {'a.b': {'type': 'string'}}}}";
    check_match(dotted, &["{'a': {'b': 'x'}}", "{'a': [{'b': 'x'}]}"], &["{'a.b': 'x'}", "{'a': {'b': 1}}", "{}"]);
}

#[test]
fn sample_rate() {
    check_match("{'$sampleRate': 1}", &["{}"], &[]);
    check_match("{'$or': [{'$sampleRate': 0.0}, {'a': 1}]}", &["{'a': 1}"], &["{}"]);
    check_refused("{'$sampleRate': 1.5}", 2, "numeric argument to $sampleRate must be in [0, 1]");
    check_refused("{'$sampleRate': NaN}", 2, "numeric argument to $sampleRate must be in [0, 1]");
    check_refused("{'$sampleRate': 'x'}", 2, "argument to $sampleRate must be a numeric type");
    let predicate = parse("{'$sampleRate': 0.5}").unwrap();
    let matched = (0..1000).filter(|_| predicate.matches(doc("{}").as_doc()).unwrap()).count();
    assert!((300..700).contains(&matched), "{matched} of 1000");
}

#[test]
fn refused_schemas() {
    let cases = [
        ("{'type': 'integer'}", 9, "$jsonSchema type 'integer' is not currently supported."),
        ("{'type': 'int'}", 2, "Unknown type name alias: int"),
        (
            "{'type': 'string', 'bsonType': 'string'}",
            9,
            "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'",
        ),
        ("{'bsonType': ['int', 'int']}", 9, "$jsonSchema keyword 'bsonType' has duplicate value: int"),
        ("{'minimum': 'x', 'foo': 1}", 9, "Unknown $jsonSchema keyword: foo"),
        ("{'$ref': 1}", 9, "$jsonSchema keyword '$ref' is not currently supported"),
        (
            "{'exclusiveMinimum': true}",
            9,
            "$jsonSchema keyword 'minimum' must be a present if exclusiveMinimum is present",
        ),
        ("{'multipleOf': 0}", 9, "$jsonSchema keyword 'multipleOf' must have a positive value"),
        ("{'multipleOf': 'x', 'minLength': 'y'}", 9, "Expected a number in: minLength: \"y\""),
        ("{'required': ['a', 'a']}", 9, "$jsonSchema keyword 'required' array cannot contain duplicate values"),
        (
            "{'required': [1]}",
            14,
            "$jsonSchema keyword 'required' must be an array of strings, but found an element of type: int",
        ),
        ("{'properties': {'a': {'pattern': '('}}}", 51091, "Regular expression is invalid: missing )"),
        ("{'properties': {'a': {'multipleOf': Infinity}}}", 2, "divisor cannot be infinite"),
        ("{'patternProperties': {'(': {}}}", 2, "Invalid regular expression: missing )"),
        ("{'enum': [1, 1.0]}", 9, "$jsonSchema keyword 'enum' array cannot contain duplicate values."),
        ("{'allOf': []}", 2, "$jsonSchema keyword 'allOf' must be a non-empty array"),
        (
            "{'dependencies': {'a': ['b', 'b']}}",
            9,
            "array 'a' in $jsonSchema keyword 'dependencies' contains duplicate element: b",
        ),
    ];
    for (schema, code, message) in cases {
        check_refused(&format!("{{'$jsonSchema': {schema}}}"), code, message);
    }
    check_refused("{'$jsonSchema': 1}", 14, "$jsonSchema must be an object");
}
