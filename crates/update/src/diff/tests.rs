use super::{apply, compute, describe};
use document::{Doc, DocBuf, DocWriter, Value};
use shorthand::document;

#[track_caller]
fn check(before: &str, after: &str, expected: &str) {
    let (before, after) = (document(before), document(after));
    let difference = compute(before.as_doc(), after.as_doc()).expect("a difference");
    assert_eq!(difference, document(expected));
    assert_eq!(applied(before.as_doc(), difference.as_doc()), after);
}

fn applied(before: Doc<'_>, difference: Doc<'_>) -> DocBuf {
    let mut bytes = Vec::new();
    apply(before, difference, &mut bytes).unwrap();
    DocBuf::from_vec(bytes).unwrap()
}

const LONG: &str = "a text that is long enough to make a difference worthwhile, whatever else the document has";

#[test]
fn fields_are_removed_updated_and_inserted() {
    let long = format!("'{LONG}'");
    check(
        &format!("{{_id: 1, t: {long}, a: 1, b: 2}}"),
        &format!("{{_id: 1, t: {long}, b: 3, c: 4}}"),
        "{d: {a: false}, u: {b: 3}, i: {c: 4}}",
    );
    check(
        &format!("{{_id: 1, t: {long}, a: {{t: {long}, b: 1}}}}"),
        &format!("{{_id: 1, t: {long}, a: {{t: {long}, b: 2}}}}"),
        "{sa: {u: {b: 2}}}",
    );
    check(&format!("{{t: {long}, a: 1, b: 2}}"), &format!("{{t: {long}, b: 2, a: 1}}"), "{i: {a: 1}}");
}

#[test]
fn arrays_are_changed_by_position() {
    let long = format!("'{LONG}'");
    check(
        &format!("{{t: {long}, a: [{long}, 1, 2, 3]}}"),
        &format!("{{t: {long}, a: [{long}, 5]}}"),
        "{sa: {a: true, l: 2, u1: 5}}",
    );
    check(
        &format!("{{t: {long}, a: [{long}, {{x: 1, t: {long}}}]}}"),
        &format!("{{t: {long}, a: [{long}, {{x: 2, t: {long}}}, 7]}}"),
        "{sa: {a: true, s1: {u: {x: 2}}, u2: 7}}",
    );
}

#[test]
fn a_large_difference_is_none() {
    let (before, after) = (document("{_id: 1, a: 1, b: 2}"), document("{_id: 1, c: 3, d: 4}"));
    assert_eq!(compute(before.as_doc(), after.as_doc()), None);
    let (before, after) = (document("{a: 1, a: 2}"), document("{a: 1, a: 3}"));
    assert_eq!(compute(before.as_doc(), after.as_doc()), None);
}

#[test]
fn a_description_has_dotted_paths() {
    let difference = document(
        "{d: {a: false}, u: {b: 1}, i: {c: {d: 1}}, se: {d: {f: false}, sg: {a: true, l: 3, u1: 5, s2: {u: {h: 6}}}}}",
    );
    let mut bytes = Vec::new();
    describe(difference.as_doc(), &mut DocWriter::begin(&mut bytes));
    let expected = "{updatedFields: {b: 1, c: {d: 1}, 'e.g.1': 5, 'e.g.2.h': 6}, removedFields: ['a', 'e.f'], \
                    truncatedArrays: [{field: 'e.g', newSize: 3}]}";
    assert_eq!(DocBuf::from_vec(bytes).unwrap(), document(expected));
}

#[test]
fn a_malformed_difference_is_an_error() {
    for difference in ["{d: 1}", "{x: {}}", "{sa: {u: {b: 1}}}", "{sb: {a: true, x1: 1}}", "{sb: {a: true, s9: {}}}"] {
        let mut bytes = Vec::new();
        let applied = apply(document("{a: 1, b: [1]}").as_doc(), document(difference).as_doc(), &mut bytes);
        assert!(applied.is_err(), "{difference}");
    }
}

#[test]
fn pushes_are_logged_as_a_whole_unless_they_append() {
    let logged = |before: &str, update: &str, after: &str| {
        let update = document(update);
        let update = crate::Update::parse(Value::Document(update.as_doc()), None, &query::Context::at(0)).unwrap();
        update.difference(document(before).as_doc(), document(after).as_doc()).unwrap()
    };
    let push = |clauses: &str| format!("{{$push: {{a: {{$each: [3], {clauses}}}}}}}");
    let whole = document("{u: {a: [1, 2, 3]}}");
    let appended = document("{sa: {a: true, u2: 3}}");
    for (clauses, expected) in
        [("$slice: 9", &appended), ("$position: 3", &appended), ("$position: 2", &whole), ("$sort: 1", &whole)]
    {
        assert_eq!(logged("{a: [1, 2]}", &push(clauses), "{a: [1, 2, 3]}"), *expected, "{clauses}");
    }
    // The slice removes the pushed element.
    assert_eq!(logged("{a: [1, 2]}", &push("$slice: 2"), "{a: [1, 2]}"), document("{u: {a: [1, 2]}}"));
    let two = "{$push: {a: {$each: [3, 4], $slice: 3}}}";
    assert_eq!(logged("{a: [1, 2]}", two, "{a: [1, 2, 3]}"), whole);
}
