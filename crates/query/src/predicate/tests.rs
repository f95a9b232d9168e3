use super::{MatchDetails, Predicate};
use crate::Context;
use crate::shorthand::document as doc;

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
