//! Parses arbitrary text as JSON: it is refused, or becomes a valid document that is the same after
//! conversion to JSON and back.
#![no_main]

use document::{Doc, json, validate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let mut document = Vec::new();
    if json::json_to_bson(text, &mut document).is_err() {
        assert!(document.is_empty());
        return;
    }
    let checked = validate::check(&document);
    assert!(checked.is_ok_and(|checked| checked.size() == document.len()), "{checked:?}");
    let (mut spelled, mut again) = (Vec::new(), Vec::new());
    json::bson_to_json(Doc::from_bytes(&document).unwrap_or(Doc::EMPTY), &mut spelled);
    assert!(json::json_to_bson(&spelled, &mut again).is_ok(), "{}", String::from_utf8_lossy(&spelled));
    assert_eq!(again, document, "through {}", String::from_utf8_lossy(&spelled));
});
