//! Properties of every update of every document.

use super::{Update, UpdateOutcome, diff};
use document::{ArrayWriter, Doc, DocBuf, Value, ValueBuf, validate};
use proptest::prelude::*;
use query::{Context, MatchDetails};

fn scalars() -> impl Strategy<Value = ValueBuf> {
    prop_oneof![
        any::<i32>().prop_map(|number| Value::Int32(number).to_owned()),
        any::<f64>().prop_map(|number| Value::Double(number).to_owned()),
        any::<i64>().prop_map(|number| Value::Int64(number).to_owned()),
        "[a-c]{0,3}".prop_map(|text| Value::String(&text).to_owned()),
        any::<bool>().prop_map(|flag| Value::Boolean(flag).to_owned()),
        Just(Value::Null.to_owned()),
    ]
}

fn document_of(fields: Vec<(String, ValueBuf)>) -> DocBuf {
    DocBuf::build(|writer| fields.iter().for_each(|(name, value)| writer.append(name, value)))
}

fn values() -> impl Strategy<Value = ValueBuf> {
    scalars().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(("[a-c01]", inner.clone()), 0..4)
                .prop_map(|fields| Value::Document(document_of(fields).as_doc()).to_owned()),
            prop::collection::vec(inner, 0..4).prop_map(|elements| array_of(&elements)),
        ]
    })
}

fn documents() -> impl Strategy<Value = DocBuf> {
    prop::collection::vec(("[a-c01]", values()), 0..5).prop_map(document_of)
}

fn paths() -> impl Strategy<Value = String> {
    prop::collection::vec("[a-c01]|\\$\\[\\]", 1..4).prop_map(|parts| parts.join("."))
}

fn array_of(elements: &[ValueBuf]) -> ValueBuf {
    let mut bytes = Vec::new();
    let mut array = ArrayWriter::begin(&mut bytes);
    elements.iter().for_each(|element| array.push(element));
    drop(array);
    Value::Array(Doc::from_bytes(&bytes).unwrap()).to_owned()
}

/// Models `$push` on a list, step by step as in the manual: insert the values at the position, in
/// order, then slice.
fn push_in_model(
    list: &[ValueBuf],
    each: &[ValueBuf],
    position: Option<i32>,
    sort: Option<i32>,
    slice: Option<i32>,
) -> ValueBuf {
    let mut list = list.to_vec();
    let at = match position {
        Some(behind @ ..0) => list.len().saturating_sub(behind.unsigned_abs() as usize),
        Some(at) => list.len().min(at as usize),
        None => list.len(),
    };
    let tail = list.split_off(at);
    list.extend(each.iter().cloned());
    list.extend(tail);
    if let Some(direction) = sort {
        list.sort_by(|a, b| {
            let order = document::Collation::SIMPLE.compare(a.as_value(), b.as_value());
            if direction == 1 { order } else { order.reverse() }
        });
    }
    match slice {
        Some(last @ ..0) => drop(list.drain(..list.len().saturating_sub(last.unsigned_abs() as usize))),
        Some(first) => list.truncate(first as usize),
        None => {}
    }
    array_of(&list)
}

fn apply(update: &Update, document: &DocBuf) -> Option<(UpdateOutcome, DocBuf)> {
    let mut out = Vec::new();
    let applied = update.apply(document.as_doc(), &MatchDetails::default(), &mut out).ok()?;
    if applied == UpdateOutcome::Unchanged {
        assert!(out.is_empty());
        return Some((applied, document.clone()));
    }
    validate::check(&out).unwrap();
    Some((applied, DocBuf::from_vec(out).unwrap()))
}

fn changed_by(document: &DocBuf, difference: &DocBuf) -> DocBuf {
    let mut out = Vec::new();
    diff::apply(document.as_doc(), difference.as_doc(), &mut out).unwrap();
    DocBuf::from_vec(out).unwrap()
}

fn parse(operator: &str, changes: Vec<(String, ValueBuf)>) -> Option<Update> {
    let changes = document_of(changes);
    let spec = DocBuf::build(|writer| writer.append(operator, &changes));
    Update::parse((&spec).into(), None, &Context::at(0)).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn operators_write_well_formed_documents(
        document in documents(),
        operator in prop::sample::select(vec![
            "$set", "$unset", "$inc", "$mul", "$min", "$max", "$push", "$addToSet", "$pull", "$pullAll", "$pop", "$setOnInsert",
        ]),
        changes in prop::collection::vec((paths(), values()), 1..4),
    ) {
        if let Some(update) = parse(operator, changes)
            && let Some((UpdateOutcome::Changed, changed)) = apply(&update, &document)
            && let Some(difference) = update.difference(document.as_doc(), changed.as_doc())
        {
            prop_assert_eq!(changed_by(&document, &difference), changed);
        }
    }

    #[test]
    fn a_computed_difference_leads_to_the_new_document(before in documents(), after in documents()) {
        if let Some(difference) = diff::compute(before.as_doc(), after.as_doc()) {
            prop_assert_eq!(changed_by(&before, &difference), after);
        }
    }

    #[test]
    fn setting_twice_changes_nothing(document in documents(), changes in prop::collection::vec((paths(), values()), 1..4)) {
        let changed = parse("$set", changes).and_then(|update| Some((apply(&update, &document)?.1, update)));
        if let Some((changed, update)) = changed {
            prop_assert_eq!(apply(&update, &changed).map(|(applied, _)| applied), Some(UpdateOutcome::Unchanged));
        }
    }

    #[test]
    fn push_agrees_with_the_model(
        list in prop::collection::vec(values(), 0..14),
        each in prop::collection::vec(values(), 0..4),
        position in prop::option::of(-15..15),
        sort in prop::option::weighted(0.2, prop::sample::select(vec![1, -1])),
        slice in prop::option::of(-15..15),
        before in scalars(),
        behind in scalars(),
    ) {
        let mut clauses = DocBuf::new();
        clauses.append("$each", &array_of(&each));
        for (name, number) in [("$position", position), ("$sort", sort), ("$slice", slice)] {
            if let Some(number) = number {
                clauses.append(name, number);
            }
        }
        let document = |array: ValueBuf| document_of(vec![
            ("x".to_owned(), before.clone()),
            ("l".to_owned(), array),
            ("y".to_owned(), behind.clone()),
        ]);
        let update = parse("$push", vec![("l".to_owned(), Value::Document(clauses.as_doc()).to_owned())]).unwrap();
        let (applied, changed) = apply(&update, &document(array_of(&list))).unwrap();
        prop_assert_eq!(changed, document(push_in_model(&list, &each, position, sort, slice)));
        if !each.is_empty() {
            prop_assert_eq!(applied, UpdateOutcome::Changed);
        }
    }

    #[test]
    fn other_fields_are_unchanged(document in documents(), value in values()) {
        let update = parse("$set", vec![("new".to_owned(), value)]).unwrap();
        let (_, changed) = apply(&update, &document).unwrap();
        let (old, new) = (document.as_bytes(), changed.as_bytes());
        prop_assert_eq!(&old[4..old.len() - 1], &new[4..old.len() - 1]);
    }
}
