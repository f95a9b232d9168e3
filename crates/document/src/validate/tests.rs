use super::*;
use crate::testing::documents;
use crate::{DocBuf, ValueBuf, compare, doc, json, key};
use proptest::prelude::*;

fn nested(levels: usize) -> DocBuf {
    (1..levels).fold(DocBuf::new(), |inner, _| doc! { "": &inner })
}

#[test]
fn depth() {
    assert!(check(nested(DEPTH_MAX).as_bytes()).is_ok());
    assert_eq!(check(nested(DEPTH_MAX + 1).as_bytes()), Err(Invalid::Depth));
    let path = |document: &DocBuf| path_beyond_depth(document.as_doc());
    assert_eq!(path(&nested(DEPTH_MAX)), None);
    let deep = doc! { "a": 1, "b": &nested(DEPTH_MAX - 1), "c": &crate::array![&nested(DEPTH_MAX + 10)] };
    assert_eq!(path(&deep), Some(format!("c.0{}", ".".repeat(DEPTH_MAX - 2))));
    for levels in [1, 2, 180] {
        assert!(!is_deeper_than(nested(levels).as_doc(), levels));
        assert!(is_deeper_than(nested(levels + 1).as_doc(), levels));
    }
}

#[test]
fn depth_within_code_that_is_not_utf8() {
    let scope = nested(170);
    let mut code = ValueBuf::from(Value::CodeWithScope { code: "xx", scope: scope.as_doc() }).raw_value().to_vec();
    code[8] = 0xE9;
    let mut document = DocBuf::new();
    document.append("c", &ValueBuf::from_raw(Kind::CodeWithScope, code));
    assert!(matches!(document.as_doc().get("c"), Some(Value::IllFormed { .. })));
    assert!(is_deeper_than(document.as_doc(), 170));
    assert!(!is_deeper_than(document.as_doc(), 171));
}

/// Checks the first error found in `bytes`, given in hexadecimal without the length prefix and the
/// closing zero.
fn check_invalid(elements: &str, expected: Result<(), Invalid>) {
    let hex: Vec<char> = elements.chars().filter(|c| !c.is_whitespace()).collect();
    let body = hex.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap());
    let mut bytes = vec![0; 4];
    bytes.extend(body);
    bytes.push(0);
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    assert_eq!(check(&bytes).map(drop), expected, "{elements}");
    exercise(&bytes);
}

#[test]
fn invalid_bytes_are_refused() {
    check_invalid("", Ok(()));
    check_invalid("0A 6100", Ok(()));
    check_invalid("14 6100", Err(Invalid::Kind(0x14)));
    check_invalid("0A 61", Err(Invalid::Unterminated));
    check_invalid("0A FF00", Err(Invalid::Utf8));
    check_invalid("08 6100 02", Err(Invalid::Boolean));
    check_invalid("08 6100", Err(Invalid::Length));
    check_invalid("02 6100 02000000 6100", Ok(()));
    check_invalid("02 6100 02000000 6161", Err(Invalid::Unterminated));
    check_invalid("02 6100 00000000", Err(Invalid::Length));
    check_invalid("02 6100 FFFFFFFF 6100", Err(Invalid::Length));
    check_invalid("02 6100 FFFFFF7F 6100", Err(Invalid::Length));
    check_invalid("02 6100 02000000 FF00", Ok(()));
    check_invalid("02 FF00 02000000 6100", Err(Invalid::Utf8));
    check_invalid("03 6100 05000000 00", Ok(()));
    check_invalid("03 6100 04000000", Err(Invalid::Length));
    check_invalid("03 6100 05000000 01", Err(Invalid::Length));
    check_invalid("05 6100 00000000 00", Ok(()));
    check_invalid("05 6100 FFFFFFFF 00", Err(Invalid::Length));
    check_invalid("0B 6100 6100 6900", Ok(()));
    check_invalid("0B 6100 6100 69", Err(Invalid::Length));
    check_invalid("0C 6100 01000000 00 000000000000000000000000", Ok(()));
    check_invalid("0C 6100 01000000 01 000000000000000000000000", Err(Invalid::Unterminated));
    check_invalid("0F 6100 0E000000 01000000 00 05000000 00", Ok(()));
    check_invalid("0F 6100 0F000000 01000000 00 05000000 00 00", Err(Invalid::Length));
    check_invalid("0F 6100 04000000", Err(Invalid::Length));
    check_invalid("0F 6100 0E000000 FFFFFF7F 00 05000000 00", Err(Invalid::Length));
}

/// Reads everything; nothing may panic.
fn exercise(bytes: &[u8]) {
    let Some(document) = Doc::from_prefix(bytes) else {
        return;
    };
    let mut out = Vec::new();
    walk(document, 0);
    key::encode(Value::Document(document), &mut out);
    compare(Value::Document(document), Value::Document(Doc::EMPTY));
    compare::hash_value(Value::Document(document), &mut std::hash::DefaultHasher::new());
    let _ = is_deeper_than(document, 3);
    out.clear();
    json::bson_to_json(document, &mut out);
    let mut back = Vec::new();
    if json::json_to_bson(&out, &mut back).is_ok() {
        assert!(check(&back).is_ok());
    }
}

fn walk(document: Doc<'_>, depth: usize) {
    for element in document.elements() {
        let _ = (element.key(), element.kind.alias());
        match element.value() {
            Value::Document(inner) | Value::Array(inner) if depth < 100 => walk(inner, depth + 1),
            value => drop(format!("{value:?} {}", value.is_truthy())),
        }
    }
}

/// A document with every type in it.
fn every_type() -> Vec<u8> {
    let values = [
        "{\"d\":1.5}",
        "{\"s\":\"text\"}",
        "{\"o\":{\"a\":1}}",
        "{\"r\":[1,\"b\"]}",
        "{\"b\":{\"$binary\":{\"base64\":\"AQID\",\"subType\":\"80\"}}}",
        "{\"u\":{\"$undefined\":true}}",
        "{\"i\":{\"$oid\":\"5f0102030405060708090aff\"}}",
        "{\"t\":true}",
        "{\"w\":{\"$date\":1500}}",
        "{\"n\":null}",
        "{\"x\":{\"$regularExpression\":{\"pattern\":\"a\",\"options\":\"i\"}}}",
        "{\"p\":{\"$dbPointer\":{\"$ref\":\"a.b\",\"$id\":{\"$oid\":\"5f0102030405060708090aff\"}}}}",
        "{\"c\":{\"$code\":\"f()\"}}",
        "{\"y\":{\"$symbol\":\"sym\"}}",
        "{\"k\":{\"$code\":\"f()\",\"$scope\":{\"a\":1}}}",
        "{\"4\":5}",
        "{\"m\":{\"$timestamp\":{\"t\":1,\"i\":2}}}",
        "{\"8\":5000000000}",
        "{\"e\":{\"$numberDecimal\":\"1.5\"}}",
        "{\"<\":{\"$minKey\":1}}",
        "{\">\":{\"$maxKey\":1}}",
    ];
    let mut all = DocBuf::new();
    for value in values {
        let mut one = Vec::new();
        json::json_to_bson(value.as_bytes(), &mut one).unwrap();
        let element = Doc::from_bytes(&one).unwrap().first().unwrap();
        all.append(element.key(), element.value());
    }
    assert_eq!(all.as_doc().elements().count(), 21);
    all.into_vec()
}

fn accepted_by_bson(bytes: &[u8]) -> bool {
    bson::Document::from_reader(bytes).is_ok()
}

/// The `bson` crate reads the inner length of binary of subtype 2, and refuses text that is not
/// UTF-8.
fn is_refused_elsewhere(document: Doc<'_>) -> bool {
    document.values().any(|value| match value {
        Value::Binary { subtype, .. } => subtype == 2,
        Value::IllFormed { .. } => true,
        Value::Document(inner) | Value::Array(inner) | Value::CodeWithScope { scope: inner, .. } => {
            is_refused_elsewhere(inner)
        }
        _ => false,
    })
}

#[test]
fn every_truncation_and_every_flipped_bit() {
    let whole = every_type();
    assert!(check(&whole).is_ok() && accepted_by_bson(&whole));
    for length in 0..whole.len() {
        assert!(check(&whole[..length]).is_err(), "{length} bytes of {}", whole.len());
        let mut shorter = whole[..length].to_vec();
        exercise(&shorter);
        // The same with a length prefix of exactly these bytes.
        if length >= 5 {
            shorter[..4].copy_from_slice(&(length as u32).to_le_bytes());
            exercise(&shorter);
        }
    }
    let mut accepted = 0;
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        exercise(&flipped);
        let checked = check(&flipped);
        accepted += usize::from(checked.is_ok());
        if checked.is_ok() && checked.map(Doc::size) == Ok(whole.len()) {
            assert!(round_trips(&flipped), "bit {bit}");
        }
    }
    assert!(accepted > 500);
}

fn round_trips(bytes: &[u8]) -> bool {
    let (mut text, mut back) = (Vec::new(), Vec::new());
    json::bson_to_json(Doc::from_bytes(bytes).unwrap(), &mut text);
    json::json_to_bson(&text, &mut back).unwrap();
    back == bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes(mut bytes in prop::collection::vec(any::<u8>(), 5..80), prefix in any::<bool>()) {
        if prefix {
            let length = bytes.len() as u32;
            bytes[..4].copy_from_slice(&length.to_le_bytes());
        }
        exercise(&bytes);
        let _ = check(&bytes);
    }

    /// The check and the `bson` crate agree on documents with a few bytes changed, except where the
    /// crate is lax or strict.
    #[test]
    fn agrees_with_another_implementation(
        bytes in documents(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3)
    ) {
        let mut bytes = bytes;
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        exercise(&bytes);
        if check(&bytes).is_ok_and(|document| document.size() == bytes.len()) {
            prop_assert!(round_trips(&bytes));
            prop_assert!(accepted_by_bson(&bytes) || is_refused_elsewhere(Doc::from_bytes(&bytes).unwrap()), "accepted here only: {:02x?}", bytes);
        }
    }
}
