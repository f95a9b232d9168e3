//! Updates and the document or error that each results in. All expectations were read off a 6.0
//! server.

use super::{Update, UpdateOutcome};
use document::{Doc, DocBuf, ObjectId, validate};
use error::Result;
use query::{Context, MatchDetails, Predicate};
use shorthand::{document, value};

const NOW_MS: i64 = 1_600_000_000_123;

struct Case<'c> {
    document: &'c str,
    update: &'c str,
    filters: Option<&'c str>,
    matched: Option<usize>,
}

impl Case<'_> {
    /// Returns the new document, `None` if nothing changes.
    fn run(&self) -> Result<Option<DocBuf>> {
        let context = Context::at(NOW_MS);
        let update = value(self.update);
        let filters = self.filters.map(value);
        let filters = filters.as_ref().and_then(|filters| filters.as_value().as_array());
        let update = Update::parse(update.as_value(), filters, &context)?;
        let details = MatchDetails { array_index: self.matched, ..MatchDetails::default() };
        let mut out = b"before".to_vec();
        let applied = update.apply(document(self.document).as_doc(), &details, &mut out)?;
        assert!(out.starts_with(b"before"));
        let written = out.split_off(6);
        match applied {
            UpdateOutcome::Unchanged => {
                assert!(written.is_empty());
                Ok(None)
            }
            UpdateOutcome::Changed => {
                validate::check(&written).unwrap();
                Ok(DocBuf::from_vec(written))
            }
        }
    }

    fn check(&self, expected: &str) {
        match self.run() {
            Ok(Some(changed)) => assert_eq!(changed, document(expected), "{} on {}", self.update, self.document),
            Ok(None) => assert_eq!("same", expected, "{} on {}", self.update, self.document),
            Err(error) => panic!("{} on {}: {error}", self.update, self.document),
        }
    }

    fn check_error(&self, code: i32, message: &str) {
        match self.run() {
            Ok(outcome) => panic!("{} on {}: no error, but {outcome:?}", self.update, self.document),
            Err(error) => assert_eq!((error.code().0, error.message()), (code, message), "{}", self.update),
        }
    }
}

fn check_update(document: &str, update: &str, expected: &str) {
    Case { document, update, filters: None, matched: None }.check(expected);
}

fn check_error(document: &str, update: &str, code: i32, message: &str) {
    Case { document, update, filters: None, matched: None }.check_error(code, message);
}

#[test]
fn set_replaces_adds_and_nests_fields() {
    check_update("{_id: 1, a: 1}", "{$set: {a: 2}}", "{_id: 1, a: 2}");
    check_update("{_id: 1, a: 1, b: 2}", "{$set: {a: 'longer'}}", "{_id: 1, a: 'longer', b: 2}");
    check_update("{_id: 1, a: 1}", "{$set: {a: 1}}", "same");
    check_update("{_id: 1, a: 1}", "{$set: {a: 1.0}}", "{_id: 1, a: 1.0}");
    check_update("{_id: 1}", "{$set: {}}", "same");
    check_update("{_id: 1}", "{$set: {a.b.c: 1}}", "{_id: 1, a: {b: {c: 1}}}");
    check_update("{_id: 1, a: {x: 1}}", "{$set: {a.b: 1}}", "{_id: 1, a: {x: 1, b: 1}}");
    check_update("{_id: 1, a: {}}", "{$set: {a.$b: 1}}", "{_id: 1, a: {$b: 1}}");
    check_update("{_id: 1, a: 1, a: 2}", "{$set: {a: 3}}", "{_id: 1, a: 3, a: 2}");
}

#[test]
fn new_fields_are_sorted_by_name_and_number() {
    check_update(
        "{z: 1}",
        "{$set: {b: 1, a: 2, 10: 1, 9: 1, x.b: 1, x.a: 2, B: 1}}",
        "{z: 1, 9: 1, 10: 1, B: 1, a: 2, b: 1, x: {a: 2, b: 1}}",
    );
    let many = "{$set: {n: 1, m: 1, l: 1, k: 1, j: 1, i: 1, h: 1, g: 1, f: 1, e: 1, d: 1}}";
    check_update("{k: 0, e: 0}", many, "{k: 1, e: 1, d: 1, f: 1, g: 1, h: 1, i: 1, j: 1, l: 1, m: 1, n: 1}");
}

#[test]
fn positions_in_arrays() {
    check_update("{a: [1, 2]}", "{$set: {a.0: 5}}", "{a: [5, 2]}");
    check_update("{a: [1, 2]}", "{$set: {a.4: 1}}", "{a: [1, 2, null, null, 1]}");
    check_update("{a: [1]}", "{$set: {a.2.x: 1}}", "{a: [1, null, {x: 1}]}");
    check_update("{a: [1, 2]}", "{$set: {a.01: 1}}", "{a: [1, 1]}");
    check_update("{a: []}", "{$set: {a.1: 1, a.0: 2}}", "{a: [2, 1]}");
    check_update("{a: [0, 0]}", "{$set: {a.1: 1, a.01: 2}}", "{a: [0, 2]}");
    check_update("{a: [1, 2]}", "{$unset: {a.0: 1}}", "{a: [null, 2]}");
    check_update("{a: [1, 2]}", "{$unset: {a.7: 1, a.x: 1}}", "same");
    check_update("{a: [1, null]}", "{$unset: {'a.$[]': 1}}", "{a: [null, null]}");
    check_update("{a: [1, null]}", "{$unset: {a.0: 1, a.1: 1}}", "{a: [null, null]}");
    check_error("{a: [1]}", "{$set: {a.1500002: 1}}", 34, "can't backfill more than 1500000 elements");
    check_error("{a: [1, 2]}", "{$set: {a.b: 1}}", 28, "Cannot create field 'b' in element {a: [ 1, 2 ]}");
    check_error("{a: [1]}", "{$set: {a.-1: 1}}", 28, "Cannot create field '-1' in element {a: [ 1 ]}");
}

#[test]
fn paths_that_cannot_be_created() {
    check_error("{a: 1}", "{$set: {a.b: 1}}", 28, "Cannot create field 'b' in element {a: 1}");
    check_error("{a: {b: 1}}", "{$set: {a.b.c.d: 1}}", 28, "Cannot create field 'c' in element {b: 1}");
    check_error("{a: 1}", "{$set: {'': 1}}", 56, "An empty update path is not valid.");
    check_error(
        "{a: 1}",
        "{$set: {a..b: 1}}",
        56,
        "The update path 'a..b' contains an empty field name, which is not allowed.",
    );
    check_error("{a: 5}", "{$pop: {a.b: 1}}", 28, "Cannot use the part (b) of (a.b) to traverse the element ({a: 5})");
    check_update("{a: 5}", "{$unset: {a.b: 1}}", "same");
    check_update("{a: 5}", "{$setOnInsert: {a.b: 1}}", "same");
    let dollar = "The dollar ($) prefixed field '$a' in '$a' is not allowed in the context of an update's replacement \
                  document. Consider using an aggregation pipeline with $replaceWith.";
    check_error("{a: 1}", "{$set: {$a: 1}}", 52, dollar);
    check_update("{$a: 1}", "{$unset: {$a: 1}}", "{}");
}

#[test]
fn operators_that_contradict_each_other() {
    let conflict = |update, path, at| {
        check_error("{a: 1}", update, 40, &format!("Updating the path '{path}' would create a conflict at '{at}'"));
    };
    conflict("{$set: {a: 1}, $inc: {a: 1}}", "a", "a");
    conflict("{$set: {a: 1, a.b: 1}}", "a.b", "a");
    conflict("{$set: {a.b: 1}, $inc: {a: 1}}", "a", "a");
    conflict("{$inc: {a.$[].b: 2, a.0.c: 5}}", "a.0.c", "a");
    conflict("{$inc: {a.$[].b: 2}, $set: {a.$[].b: 5}}", "a.$[].b", "a.$[].b");
    conflict("{$rename: {a: 'b', b: 'a'}}", "b", "b");
}

#[test]
fn updates_that_do_not_parse() {
    check_error(
        "{}",
        "{$foo: {a: 1}}",
        9,
        "Unknown modifier: $foo. Expected a valid update modifier or pipeline-style update specified as an array",
    );
    check_error(
        "{}",
        "{$set: 5}",
        9,
        "Modifiers operate on fields but we found type int instead. For example: {$mod: {<field>: ...}} not {$set: 5}",
    );
    check_error("{}", "{$inc: {a: 'x'}}", 14, "Cannot increment with non-numeric argument: {a: \"x\"}");
    check_error("{}", "{$pop: {a: 2}}", 9, "$pop expects 1 or -1, found: 2");
    check_error("{}", "{$pullAll: {a: 1}}", 2, "$pullAll requires an array argument but was given a int");
    check_error(
        "{}",
        "{$set: {$.a: 1}}",
        2,
        "Cannot have positional (i.e. '$') element in the first position in path '$.a'",
    );
    check_error("{}", "{$set: {a.$[x]: 2}}", 2, "No array filter found for identifier 'x' in path 'a.$[x]'");
}

#[test]
fn the_id_cannot_change() {
    let immutable = |update, path| {
        let message = format!("Performing an update on the path '{path}' would modify the immutable field '_id'");
        check_error("{_id: {a: 1, b: [1]}}", update, 66, &message);
    };
    immutable("{$set: {_id: 2}}", "_id");
    immutable("{$set: {_id.a: 2}}", "_id.a");
    immutable("{$unset: {_id: 2}}", "_id");
    immutable("{$push: {_id.b: 2}}", "_id.b");
    immutable("{$rename: {_id.a: 'x'}}", "_id.a");
    check_update("{_id: {a: 1, b: [1]}}", "{$set: {_id.a: 1}}", "same");
    check_update("{_id: 1}", "{$mul: {_id: 1}}", "same");
}

#[test]
fn arithmetic() {
    check_update("{a: 1}", "{$inc: {a: 2}}", "{a: 3}");
    check_update("{a: 1}", "{$inc: {a: 0}}", "same");
    check_update("{a: 1}", "{$inc: {a: 0.0}}", "{a: 1.0}");
    check_update("{a: 2147483647}", "{$inc: {a: 2}}", "{a: 2147483649L}");
    check_update("{a: 7L}", "{$inc: {a: 2}}", "{a: 9L}");
    check_update("{}", "{$inc: {a: 5L}}", "{a: 5L}");
    check_update("{}", "{$mul: {a: 5.5}}", "{a: 0.0}");
    check_update("{a: 3}", "{$mul: {a: 2.5}}", "{a: 7.5}");
    check_error(
        "{_id: 1, a: 9223372036854775807L}",
        "{$inc: {a: 2}}",
        2,
        "Failed to apply $inc operations to current value ((NumberLong)9223372036854775807) for document {_id: 1}",
    );
    check_error(
        "{_id: 1, a: 'x'}",
        "{$inc: {a: 1}}",
        14,
        "Cannot apply $inc to a value of non-numeric type. {_id: 1} has the field 'a' of non-numeric type string",
    );
}

#[test]
fn minimum_maximum_bits_and_dates() {
    check_update("{a: 5}", "{$min: {a: 3}}", "{a: 3}");
    check_update("{a: 5}", "{$min: {a: 5.0}}", "same");
    check_update("{a: 5}", "{$max: {a: 'x'}}", "{a: 'x'}");
    check_update("{}", "{$max: {a: 'x'}}", "{a: 'x'}");
    check_update("{a: 5}", "{$bit: {a: {and: 3, or: 8}}}", "{a: 9}");
    check_update("{}", "{$bit: {a: {xor: 3L}}}", "{a: 3L}");
    check_update("{a: 5}", "{$bit: {a: {or: 5}}}", "same");
    check_update("{a: 1}", "{$currentDate: {a: true}}", "{a: Date(1600000000123)}");
    check_update("{a: 1}", "{$currentDate: {a: {$type: 'timestamp'}}}", "{a: Timestamp(1600000000, 124)}");
    check_error(
        "{_id: 1, a: 1.5}",
        "{$bit: {a: {and: 3}}}",
        2,
        "Cannot apply $bit to a value of non-integral type._id: 1 has the field a of non-integer type double",
    );
}

#[test]
fn rename_moves() {
    check_update("{a: 5}", "{$rename: {a: 'b'}}", "{b: 5}");
    check_update("{a: 5, b: 3, c: 1}", "{$rename: {a: 'b'}}", "{b: 5, c: 1}");
    check_update("{a: {b: 1}}", "{$rename: {a.b: 'c'}}", "{a: {}, c: 1}");
    check_update("{a: 5}", "{$rename: {a: 'b.c'}}", "{b: {c: 5}}");
    check_update("{a: 5}", "{$rename: {x: 'b'}}", "same");
    let in_array = |update, role, path| {
        check_error(
            "{_id: 1, a: [{b: 1}], c: 1}",
            update,
            2,
            &format!(
                "The {role} field cannot be an array element, '{path}' in doc with _id: 1 has an array field called 'a'"
            ),
        );
    };
    in_array("{$rename: {a.0.b: 'd'}}", "source", "a.0.b");
    in_array("{$rename: {c: 'a.0'}}", "destination", "a.0");
    in_array("{$rename: {c: 'a.0.b'}}", "destination", "a.0.b");
    in_array("{$rename: {c: 'a.b'}}", "destination", "a.b");
    check_error(
        "{a: 1}",
        "{$rename: {a.b: 'c'}}",
        28,
        "cannot use the part (a of a.b) to traverse the element ({a: 1})",
    );
    check_error("{a: 1}", "{$rename: {a: 'a'}}", 2, "The source and target field for $rename must differ: a: \"a\"");
}

#[test]
fn push() {
    check_update("{a: [1]}", "{$push: {a: [4]}}", "{a: [1, [4]]}");
    check_update("{}", "{$push: {a: 4}}", "{a: [4]}");
    check_update("{a: [1, 2, 3]}", "{$push: {a: {$each: [4, 5], $slice: -2}}}", "{a: [4, 5]}");
    check_update("{a: [1, 2, 3]}", "{$push: {a: {$each: [4, 5], $slice: 0}}}", "{a: []}");
    check_update("{a: [1, 2, 3]}", "{$push: {a: {$each: [4, 5], $position: -1}}}", "{a: [1, 2, 4, 5, 3]}");
    check_update("{a: [1, 2, 3]}", "{$push: {a: {$each: [4], $position: 9}}}", "{a: [1, 2, 3, 4]}");
    check_update("{a: [1, 2, 3]}", "{$push: {a: {$each: [4, 0], $sort: -1}}}", "{a: [4, 3, 2, 1, 0]}");
    check_update("{a: [1, 2, 3]}", "{$push: {a: {$each: [9], $position: 1, $slice: 3, $sort: -1}}}", "{a: [9, 3, 2]}");
    check_update("{a: [1]}", "{$push: {a: {$each: []}}}", "same");
    check_update("{a: [1]}", "{$push: {a: {$each: [], $slice: 7}}}", "same");
    check_update("{}", "{$push: {a: {$each: [], $slice: 7}}}", "{a: []}");
    check_update(
        "{a: []}",
        "{$push: {a: {$each: [{a: 1, b: 2}, {a: 1, b: 1}, {a: 0, b: 9}], $sort: {a: 1, b: -1}}}}",
        "{a: [{a: 0, b: 9}, {a: 1, b: 2}, {a: 1, b: 1}]}",
    );
    check_update(
        "{a: []}",
        "{$push: {a: {$each: [{a: {b: 1}}, {a: [5, 0]}, 5, {a: null}, {}], $sort: {a: -1}}}}",
        "{a: [{a: [5, 0]}, {a: {b: 1}}, 5, {a: null}, {}]}",
    );
    check_error(
        "{_id: 1, a: 5}",
        "{$push: {a: 4}}",
        2,
        "The field 'a' must be an array but is of type int in document {_id: 1}",
    );
    check_error("{}", "{$push: {a: {$each: [], $foo: 1}}}", 2, "Unrecognized clause in $push: $foo");
}

#[test]
fn sets_and_removal() {
    check_update("{a: [1, 2]}", "{$addToSet: {a: 1.0}}", "same");
    check_update("{a: [1, 2]}", "{$addToSet: {a: {$each: [1, 4, 4, 5]}}}", "{a: [1, 2, 4, 5]}");
    check_update("{a: [{x: 1}]}", "{$addToSet: {a: {x: 1.0}}}", "same");
    check_update("{}", "{$addToSet: {a: {$each: [1, 1.0, 2]}}}", "{a: [1, 2]}");
    check_update("{a: [1, 2, 3]}", "{$pop: {a: 1}}", "{a: [1, 2]}");
    check_update("{a: [1, 2, 3]}", "{$pop: {a: -1}}", "{a: [2, 3]}");
    check_update("{a: []}", "{$pop: {a: -1}}", "same");
    check_update("{a: [1, 2, 1, 3]}", "{$pullAll: {a: [1, 3]}}", "{a: [2]}");
    check_update("{a: [1, [1], 1.0]}", "{$pull: {a: 1}}", "{a: [[1]]}");
    check_update("{a: [[1, 6], [2]]}", "{$pull: {a: [2]}}", "{a: [[1, 6]]}");
    check_error("{a: 5}", "{$pull: {a: 1}}", 2, "Cannot apply $pull to a non-array value");
}

#[test]
fn positional() {
    let case = |document, update| Case { document, update, filters: None, matched: Some(1) };
    case("{a: [1, 2]}", "{$set: {a.$: 5}}").check("{a: [1, 5]}");
    case("{a: [{b: 1}, {b: 2}]}", "{$inc: {a.$.b: 5, a.0.b: 1}}").check("{a: [{b: 2}, {b: 7}]}");
    case("{a: [{b: 1}, {b: 2}]}", "{$inc: {a.$.b: 5, a.1.c: 1}}").check("{a: [{b: 1}, {b: 7, c: 1}]}");
    case("{a: [1, 2]}", "{$set: {a.$: 5, a.1: 6}}").check_error(40, "Update created a conflict at 'a.1'");
    check_error(
        "{a: [1]}",
        "{$set: {a.$: 1}}",
        2,
        "The positional operator did not find the match needed from the query.",
    );
}

#[test]
fn all_elements() {
    check_update("{a: [1, 2]}", "{$inc: {a.$[]: 2}}", "{a: [3, 4]}");
    check_update("{a: [{b: [1, 2]}, {b: []}]}", "{$inc: {a.$[].b.$[]: 2}}", "{a: [{b: [3, 4]}, {b: []}]}");
    check_error("{a: 1}", "{$set: {a.$[]: 2}}", 2, "Cannot apply array updates to non-array element a: 1");
    check_error(
        "{b: 1}",
        "{$set: {a.$[]: 2}}",
        2,
        "The path 'a' must exist in the document in order to apply array updates.",
    );
    check_error("{a: [{b: 1}, 2]}", "{$set: {a.$[].b: 2}}", 28, "Cannot create field 'b' in element {1: 2}");
}

#[test]
fn replacement() {
    check_update("{_id: 1, a: 1}", "{b: 2}", "{_id: 1, b: 2}");
    check_update("{_id: 1, a: 1}", "{b: 2, _id: 1.0}", "{_id: 1.0, b: 2}");
    check_update("{_id: 1, a: 1}", "{_id: 1, a: 1}", "same");
    check_update("{_id: 1, a: 1}", "{a: 1}", "{_id: 1, a: 1}");
    check_update("{_id: 1}", "{a: Timestamp(0, 0)}", "{_id: 1, a: Timestamp(1600000000, 124)}");
    check_error(
        "{_id: 1}",
        "{_id: 2}",
        66,
        "After applying the update, the (immutable) field '_id' was found to have been altered to _id: 2",
    );
    check_error("{_id: 1}", "{_id: [1]}", 53, "The '_id' value cannot be of type array");
}

#[test]
fn upsert_without_filter() {
    let context = Context::at(NOW_MS);
    let upsert = |update: &str| {
        let update = Update::parse(value(update).as_value(), None, &context).unwrap();
        let mut out = Vec::new();
        update.upsert(&Predicate::everything(), ObjectId([7; 12]), &mut out).unwrap();
        Doc::from_bytes(&out).unwrap().to_owned()
    };
    assert_eq!(upsert("{$setOnInsert: {_id: 'x', q.w: 3}}"), document("{_id: 'x', q: {w: 3}}"));
    assert_eq!(upsert("{a: 1, _id: 5}"), document("{_id: 5, a: 1}"));
    assert_eq!(upsert("{a: 1}").as_doc().get("_id"), Some(document::Value::ObjectId(ObjectId([7; 12]))));
}

#[test]
fn too_deep() {
    let path = vec!["a"; 180].join(".");
    let run = |path: &str| {
        let update = format!("{{$set: {{{path}: 1}}}}");
        Case { document: "{}", update: &update, filters: None, matched: None }.run().map(|_| ())
    };
    assert!(run(&path).is_ok());
    let nested = |levels: usize| format!("{}{{}}{}", "{a: ".repeat(levels), "}".repeat(levels));
    let replace = |levels: usize| {
        let update = nested(levels);
        let case = Case { document: "{_id: 1}", update: &update, filters: None, matched: None };
        case.run().map(|_| ()).map_err(|error| error.code().0)
    };
    assert_eq!((replace(180), replace(181)), (Ok(()), Err(15)));
    assert_eq!(run(&format!("{path}.a")).map_err(|error| error.code().0), Err(15));
    assert_eq!(run(&vec!["a"; 100_000].join(".")).map_err(|error| error.code().0), Err(15));
}

#[test]
fn array_filters_and_pull_conditions() {
    check_update("{a: [[1, 6], [2]]}", "{$pull: {a: {$gte: 5}}}", "{a: [[2]]}");
    check_update("{a: [{x: 1, y: 2}, {x: 2}, 5]}", "{$pull: {a: {x: 1}}}", "{a: [{x: 2}, 5]}");
    check_update("{a: [{z: 1}, 5, null]}", "{$pull: {a: {z: null}}}", "same");
    check_update("{a: ['abc', 'd']}", "{$pull: {a: /b/}}", "{a: ['d']}");
    check_update("{a: [1, {}, {x: 1}]}", "{$pull: {a: {}}}", "{a: [1]}");
    let filtered = |document, update, filters| Case { document, update, filters: Some(filters), matched: None };
    filtered("{a: [1, 2, 3]}", "{$set: {a.$[x]: 0}}", "[{x: {$gte: 2}}]").check("{a: [1, 0, 0]}");
    filtered("{a: [{b: 1}, {c: 3}, {b: 5}]}", "{$inc: {a.$[x].b: 2}}", "[{x.b: {$lt: 4}}]")
        .check("{a: [{b: 3}, {c: 3}, {b: 5}]}");
    filtered("{a: [1, 2, 3]}", "{$set: {a.$[x]: 2, a.$[y]: 5}}", "[{x: 1}, {y: 3}]").check("{a: [2, 2, 5]}");
    filtered("{a: [1]}", "{$set: {a.$[x]: 2, a.$[y]: 5}}", "[{x: 1}, {y: 1}]")
        .check_error(40, "Update created a conflict at 'a.0'");
    filtered("{}", "{$set: {a.$[x]: 2}}", "[{x: 1}, {x: 2}]")
        .check_error(9, "Found multiple array filters with the same top-level field name x");
    filtered("{}", "{$set: {a.$[x]: 2}}", "[{x: 1}, {y: 2}]")
        .check_error(9, "The array filter for identifier 'y' was not used in the update { $set: { a.$[x]: 2 } }");
    filtered("{}", "{$set: {a.$[x]: 2}}", "[{x.a: 1, y: 1}]").check_error(
        9,
        "Error parsing array filter :: caused by :: Expected a single top-level field name, found 'x' and 'y'",
    );
}

#[test]
fn upsert_takes_equalities_from_the_filter() {
    let context = Context::at(NOW_MS);
    let run = |filter: &str, update: &str| -> Result<DocBuf> {
        let predicate = Predicate::parse(document(filter).as_doc(), &context)?;
        let mut out = Vec::new();
        let update = Update::parse(value(update).as_value(), None, &context)?;
        update.upsert(&predicate, ObjectId([7; 12]), &mut out)?;
        validate::check(&out).unwrap();
        Ok(DocBuf::from_vec(out).unwrap())
    };
    let check = |filter, update, expected| assert_eq!(run(filter, update).unwrap(), document(expected), "{filter}");
    let check_code = |filter, update, code| assert_eq!(run(filter, update).unwrap_err().code().0, code, "{filter}");
    check("{_id: 1, z: 1, b: 2, a.x: 3}", "{$set: {k: 1}}", "{_id: 1, a: {x: 3}, b: 2, z: 1, k: 1}");
    check("{_id: {$eq: 1}, a: {$in: [4]}, b: {$gt: 5}}", "{$set: {k: 1}}", "{_id: 1, a: 4, k: 1}");
    check("{_id.a: 1, _id.b: 2}", "{$inc: {k: 1}}", "{_id: {a: 1, b: 2}, k: 1}");
    check("{_id: 1, $or: [{a: 1}]}", "{$inc: {a: 1}}", "{_id: 1, a: 2}");
    check("{_id: 1, a: 1}", "{b: 2}", "{_id: 1, b: 2}");
    check("{_id: 1, a..b: 2}", "{$set: {k: 1}}", "{_id: 1, a: {'': {b: 2}}, k: 1}");
    check_code("{a: 1, a.b: 1}", "{$set: {k: 1}}", 54);
    check_code("{$and: [{a: 1}, {a: 2}]}", "{$set: {k: 1}}", 54);
    check_code("{_id.a: 1}", "{k: 1}", 111);
    check_code("{_id: 1}", "{_id: 2}", 66);
    check_code("{_id: 1}", "{$set: {_id: 2}}", 66);
    check_code("{_id: [1]}", "{$set: {k: 2}}", 53);
    check_code("{$expr: {$eq: ['$a', 5]}}", "{$set: {k: 2}}", 224);
}

#[test]
fn pipelines() {
    check_update("{_id: 1, a: 1}", "[{$set: {b: '$a'}}, {$unset: 'a'}]", "{_id: 1, b: 1}");
    check_update("{_id: 1, a: 1}", "[{$set: {a: 1}}]", "same");
    check_update("{_id: 1, a: 1}", "[]", "same");
    check_update("{_id: 1, a: 1}", "[{$replaceWith: {x: 1}}]", "{_id: 1, x: 1}");
    check_update("{_id: 1, a: 1}", "[{$project: {_id: 0, a: 1}}]", "{_id: 1, a: 1}");
    check_update("{_id: 1, a: 1}", "[{$set: {at: '$$NOW'}}]", "{_id: 1, a: 1, at: Date(1600000000123)}");
    let altered = "After applying the update, the (immutable) field '_id' was found to have been altered to _id: 2";
    check_error("{_id: 1}", "[{$set: {_id: 2}}]", 66, altered);
    check_error("{_id: 1}", "[{$match: {}}]", 72, "$match is not allowed to be used within an update");
    check_error("{_id: 1}", "[{$count: 'n'}]", 72, "$group is not allowed to be used within an update");
    check_error("{_id: 1}", "[{$foo: 1}]", 40324, "Unrecognized pipeline stage name: '$foo'");
    check_error("{_id: 1}", "[{$set: {_id: [1]}}]", 53, "The '_id' value cannot be of type array");
}

/// With quadratic comparisons, these take minutes.
#[test]
fn long_lists_take_linear_time() {
    let list = |range: std::ops::Range<i32>| range.map(|number| format!("'s{number}'")).collect::<Vec<_>>().join(", ");
    let document = format!("{{_id: 1, a: [{}]}}", list(0..20_000));
    let all = format!("{{_id: 1, a: [{}]}}", list(0..40_000));
    check_update(&document, &format!("{{$addToSet: {{a: {{$each: [{}]}}}}}}", list(10_000..40_000)), &all);
    check_update(&all, &format!("{{$pullAll: {{a: [{}]}}}}", list(20_000..40_000)), &document);
}
