use super::{Sort, Sorter};
use crate::Context;
use document::Value;
use shorthand::document;
use values::spill::Budget;

fn parse(spec: &str) -> error::Result<Sort> {
    Sort::parse(document(spec).as_doc(), &Context::at(0))
}

/// Sorts documents, in memory and on disk, and checks the order of their `_id`s.
fn check_sort(spec: &str, documents: &[&str], limit: Option<usize>, expected: &[i32]) {
    for budget in [Budget::from(usize::MAX), Budget::spilling_to_memory(1), Budget::spilling_to_memory(300)] {
        let mut sorter = Sorter::new(parse(spec).unwrap(), limit, budget.clone());
        for text in documents {
            sorter.push(document(text).as_doc()).unwrap_or_else(|error| panic!("{spec} on {text}: {error}"));
        }
        let mut sorted = sorter.finish().unwrap();
        let mut ids = Vec::new();
        while let Some(document) = sorted.take_next().unwrap() {
            match document.as_doc().get("_id") {
                Some(Value::Int32(id)) => ids.push(id),
                other => panic!("no id: {other:?}"),
            }
        }
        assert_eq!(ids, expected, "{spec} with {budget:?}");
    }
}

const MIXED: &[&str] = &[
    "{_id: 1, a: [1, 5], b: [1, 2]}",
    "{_id: 2, a: 3}",
    "{_id: 3}",
    "{_id: 4, a: null}",
    "{_id: 5, a: []}",
    "{_id: 6, a: 'x'}",
    "{_id: 7, a: [{c: 1}, {c: 9}]}",
    "{_id: 8, a: {c: 4}}",
    "{_id: 9, a: [[1, 2]]}",
    "{_id: 10, a: /x/}",
    "{_id: 11, a: [[]]}",
];

#[test]
fn mixed_types_sort_like_a_6_0_server() {
    check_sort("{a: 1}", MIXED, None, &[5, 3, 4, 1, 2, 6, 7, 8, 11, 9, 10]);
    check_sort("{a: -1}", MIXED, None, &[10, 9, 11, 7, 8, 6, 1, 2, 3, 4, 5]);
    check_sort("{'a.c': 1}", MIXED, None, &[1, 2, 3, 4, 5, 6, 9, 10, 11, 7, 8]);
    check_sort("{'a.c': -1}", MIXED, None, &[7, 8, 1, 2, 3, 4, 5, 6, 9, 10, 11]);
    check_sort("{'a.c': 1, a: 1}", MIXED, None, &[5, 3, 4, 1, 2, 6, 11, 9, 10, 7, 8]);
    check_sort("{'a.0': 1}", MIXED, None, &[11, 2, 3, 4, 5, 6, 8, 10, 1, 7, 9]);
    check_sort("{a: 1, 'a.c': -1}", MIXED, None, &[5, 3, 4, 1, 2, 6, 7, 8, 11, 9, 10]);
}

#[test]
fn limit_retains_the_first_and_is_stable() {
    check_sort("{a: 1}", MIXED, Some(3), &[5, 3, 4]);
    check_sort("{a: -1}", MIXED, Some(2), &[10, 9]);
    check_sort("{b: 1}", &["{_id: 1}", "{_id: 2}", "{_id: 3}"], Some(2), &[1, 2]);
}

#[test]
fn refusals() {
    let cases = [
        ("{a: 0}", 15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)"),
        ("{a: 'x'}", 15974, "Illegal key in $sort specification: a: \"x\""),
        ("{a: {b: 1}}", 17312, "$meta is the only expression supported by $sort right now"),
        ("{a: 1, $natural: 1}", 2, "Cannot include '$natural' in compound sort: { a: 1, $natural: 1 }"),
        ("{'': 1}", 40352, "FieldPath cannot be constructed with empty string"),
        ("{'a.': 1}", 40353, "FieldPath must not end with a '.'."),
        ("{$a: 1}", 16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField."),
    ];
    for (spec, code, message) in cases {
        let error = parse(spec).expect_err(spec);
        assert_eq!((error.code().0, error.message()), (code, message), "{spec}");
    }
    let parallel = parse("{a: 1, b: 1}").unwrap().key(document(MIXED[0]).as_doc(), &mut Vec::new());
    assert_eq!(parallel.expect_err("parallel arrays").message(), "cannot sort with keys that are parallel arrays");
}

#[test]
fn memory_is_bounded() {
    let mut sorter = Sorter::new(parse("{a: 1}").unwrap(), None, 1000);
    let error = (0..100).find_map(|_| sorter.push(document("{a: 1}").as_doc()).err()).expect("out of memory");
    assert_eq!(error.code().0, 292);
}
