//! What holds for every update of every document.

use super::{Applied, Update};
use crate::{Context, MatchDetails};
use document::{ArrayWriter, Doc, DocBuf, Value, ValueBuf, validate};
use proptest::prelude::*;

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
            prop::collection::vec(inner, 0..4).prop_map(|elements| {
                let mut bytes = Vec::new();
                let mut array = ArrayWriter::begin(&mut bytes);
                elements.iter().for_each(|element| array.push(element));
                drop(array);
                Value::Array(Doc::from_bytes(&bytes).unwrap()).to_owned()
            }),
        ]
    })
}

fn documents() -> impl Strategy<Value = DocBuf> {
    prop::collection::vec(("[a-c01]", values()), 0..5).prop_map(document_of)
}

fn paths() -> impl Strategy<Value = String> {
    prop::collection::vec("[a-c01]|\\$\\[\\]", 1..4).prop_map(|parts| parts.join("."))
}

fn apply(update: &Update, document: &DocBuf) -> Option<(Applied, DocBuf)> {
    let mut out = Vec::new();
    let applied = update.apply(document.as_doc(), &MatchDetails::default(), &mut out).ok()?;
    if applied == Applied::Unchanged {
        assert!(out.is_empty());
        return Some((applied, document.clone()));
    }
    validate::check(&out).unwrap();
    Some((applied, DocBuf::from_vec(out).unwrap()))
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
        if let Some(update) = parse(operator, changes) {
            apply(&update, &document);
        }
    }

    #[test]
    fn setting_twice_changes_nothing(document in documents(), changes in prop::collection::vec((paths(), values()), 1..4)) {
        let changed = parse("$set", changes).and_then(|update| Some((apply(&update, &document)?.1, update)));
        if let Some((changed, update)) = changed {
            prop_assert_eq!(apply(&update, &changed).map(|(applied, _)| applied), Some(Applied::Unchanged));
        }
    }

    #[test]
    fn fields_that_no_operator_names_stay_as_they_are(document in documents(), value in values()) {
        let update = parse("$set", vec![("new".to_owned(), value)]).unwrap();
        let (_, changed) = apply(&update, &document).unwrap();
        let (old, new) = (document.as_bytes(), changed.as_bytes());
        prop_assert_eq!(&old[4..old.len() - 1], &new[4..old.len() - 1]);
    }
}
