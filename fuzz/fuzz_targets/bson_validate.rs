//! Decodes arbitrary bytes as documents, which must not panic. A valid document is iterated,
//! converted to JSON and back to the same bytes, and its key must sort like the document.
#![no_main]

use document::{Doc, Value, compare, json, key, validate};
use libfuzzer_sys::fuzz_target;
use std::hash::DefaultHasher;

fuzz_target!(|bytes: &[u8]| {
    if let Some(document) = Doc::from_prefix(bytes) {
        read_unchecked(document);
    }
    if let Ok(document) = validate::check(bytes) {
        read_checked(document);
    }
});

fn read_unchecked(document: Doc<'_>) {
    walk(document, 0);
    let value = Value::Document(document);
    let (mut key, mut text) = (Vec::new(), Vec::new());
    key::encode(value, &mut key);
    compare::hash_value(value, &mut DefaultHasher::new());
    compare(value, Value::Document(Doc::EMPTY));
    let _ = validate::is_deeper_than(document, 10);
    json::bson_to_json(document, &mut text);
    let _ = json::json_to_bson(&text, &mut key);
}

fn walk(document: Doc<'_>, depth: usize) {
    for element in document.elements() {
        let _ = element.key();
        match element.value() {
            Value::Document(inner) | Value::Array(inner) if depth < 300 => walk(inner, depth + 1),
            Value::CodeWithScope { scope, .. } if depth < 300 => walk(scope, depth + 1),
            value => assert!(compare(value, value).is_eq()),
        }
    }
}

fn read_checked(document: Doc<'_>) {
    let (mut text, mut back) = (Vec::new(), Vec::new());
    json::bson_to_json(document, &mut text);
    let read = json::json_to_bson(&text, &mut back);
    assert!(read.is_ok(), "{read:?} from {}", String::from_utf8_lossy(&text));
    assert_eq!(back, document.as_bytes(), "through {}", String::from_utf8_lossy(&text));
    assert!(validate::check(&back).is_ok());
    let values: Vec<Value<'_>> = document.values().take(20).collect();
    for pair in values.windows(2) {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        key::encode(pair[0], &mut a);
        key::encode(pair[1], &mut b);
        assert_eq!(a.cmp(&b), compare(pair[0], pair[1]), "{pair:?}");
    }
}
