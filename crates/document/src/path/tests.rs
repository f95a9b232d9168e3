use super::*;
use crate::{DocBuf, array, doc};

/// Returns everything that [`Path::visit`] reports, in its order: the value and the array index.
fn reached(document: &DocBuf, path: &str, end: End) -> String {
    let path = Path::new(path);
    let mut all = Vec::new();
    let flow = path.visit(document.as_doc(), end, &mut |reached| {
        let value = reached.value.map_or("missing".into(), |value| format!("{value:?}"));
        all.push(match reached.array_index {
            Some(index) => format!("{value}@{index}"),
            None => value,
        });
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    all.join(" ").replace("Int32", "")
}

fn keys(document: &DocBuf, path: &str) -> String {
    let mut all = Vec::new();
    let flow = Path::new(path).visit_keys(document.as_doc(), &mut |key| {
        all.push(format!("{key:?}").replace("Int32", "").replace("Value(", "").replace("))", ")"));
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    all.join(" ")
}

fn check_reached(document: DocBuf, path: &str, expected: &str) {
    assert_eq!(reached(&document, path, End::Expanded), expected, "{path} in {document:?}");
}

fn check_keys(document: DocBuf, path: &str, expected: &str) {
    assert_eq!(keys(&document, path), expected, "{path} in {document:?}");
}

fn within(value: impl for<'v> Fn() -> crate::ValueBuf) -> DocBuf {
    doc! { "a": &value() }
}

#[test]
fn components() {
    let path = Path::new("a.0.b");
    assert_eq!(path.components().collect::<Vec<_>>(), ["a", "0", "b"]);
    assert_eq!(Path::new(".").components().collect::<Vec<_>>(), ["", ""]);
    assert!(path.conflicts_with(&Path::new("a.0")) && path.conflicts_with(&path));
    assert!(!path.conflicts_with(&Path::new("a.1")) && !path.conflicts_with(&Path::new("ab")));
    let spelled: Vec<_> = ["0", "10", "00", "01", "", "-1", "+1", "4294967296", "1a"].map(position).into();
    assert_eq!(spelled, [Some(0), Some(10), None, None, None, None, None, None, None]);
    assert_eq!(Path::new("a.b").get(doc! {"a": &doc! {"b": 1}}.as_doc()), Some(Value::Int32(1)));
    assert_eq!(Path::new("a.0").get(within(|| array![1]).as_doc()), None);
}

#[test]
fn predicates_through_documents() {
    check_reached(doc! {"a": 1}, "a", "(1)");
    check_reached(doc! {"b": 1}, "a", "missing");
    check_reached(doc! {"a": 1}, "a.b", "missing");
    check_reached(doc! {"a": &doc! {"b": 2}}, "a.b", "(2)");
    check_reached(doc! {"a": &doc! {"0": 2}}, "a.0", "(2)");
    check_reached(doc! {"": &doc! {"": 2}}, ".", "(2)");
}

#[test]
fn predicates_through_arrays() {
    check_reached(within(|| array![1, 2]), "a", "(1)@0 (2)@1 Array({\"0\": (1), \"1\": (2)})");
    check_reached(within(|| array![]), "a", "Array({})");
    assert_eq!(reached(&within(|| array![1]), "a", End::Whole), "Array({\"0\": (1)})");
    check_reached(within(|| array![1, 2]), "a.b", "");
    check_reached(within(|| array![&doc! {"b": 1}, &doc! {"c": 1}, 3]), "a.b", "(1)@0 missing@1");
    check_reached(within(|| array![&array![&doc! {"b": 1}]]), "a.b", "");
    check_reached(within(|| array![0, &doc! {"b": &array![7]}]), "a.b", "(7)@1 Array({\"0\": (7)})@1");
}

#[test]
fn predicates_by_position() {
    check_reached(within(|| array![5, 6]), "a.1", "(6)");
    check_reached(within(|| array![5, 6]), "a.2", "");
    check_reached(within(|| array![5, 6]), "a.00", "");
    check_reached(within(|| array![&array![1, 2]]), "a.0", "Array({\"0\": (1), \"1\": (2)})");
    check_reached(within(|| array![&array![1, 2]]), "a.0.1", "(2)");
    check_reached(within(|| array![&doc! {"0": 7}]), "a.0", "(7)@0 Document({\"0\": (7)})");
    check_reached(within(|| array![&doc! {"b": 1}]), "a.0.b", "missing@0 (1)");
    check_reached(within(|| array![&array![&doc! {"b": 1}]]), "a.0.b", "(1)@0");
    check_reached(within(|| array![1, 2]), "a.0.b", "");
    check_reached(within(|| array![&array![&array![&doc! {"b": 1}]]]), "a.0.0.b", "(1)@0");
    check_reached(within(|| array![&doc! {"b": &array![1, 2]}]), "a.b.1", "(2)@0");
}

#[test]
fn breaking_off() {
    let mut count = 0;
    let flow = Path::new("a").visit(within(|| array![1, 2]).as_doc(), End::Expanded, &mut |_| {
        count += 1;
        ControlFlow::Break(())
    });
    assert!(flow.is_break() && count == 1);
}

#[test]
fn sort_and_index_keys() {
    check_keys(doc! {"x": 1}, "a", "Missing");
    check_keys(doc! {"a": 1}, "a.b", "Missing");
    check_keys(within(|| array![]), "a", "EmptyArray");
    check_keys(within(|| array![]), "a.b", "Missing");
    check_keys(within(|| array![1, 2]), "a", "(1) (2)");
    check_keys(within(|| array![&array![]]), "a", "Array({})");
    check_keys(within(|| array![1, 2]), "a.b", "Missing Missing");
    check_keys(within(|| array![&doc! {"b": 1}, &doc! {"c": 1}]), "a.b", "(1) Missing");
    check_keys(within(|| array![&array![5, 1]]), "a.0", "Array({\"0\": (5), \"1\": (1)})");
    check_keys(within(|| array![&array![]]), "a.0", "EmptyArray");
    check_keys(within(|| array![&array![5, 1]]), "a.0.1", "(1)");
    check_keys(within(|| array![&doc! {"3": 4}]), "a.3", "(4)");
    check_keys(within(|| array![&doc! {"b": &array![]}]), "a.b", "EmptyArray");
    assert_eq!(Key::Missing.sort_value(), Value::Null);
    assert_eq!(Key::EmptyArray.sort_value(), Value::Undefined);
}
