use super::Collation;
use crate::{DocBuf, Value, doc};
use std::cmp::Ordering;

fn collation(options: DocBuf) -> Collation {
    Collation::parse(options.as_doc(), "").unwrap_or_else(|error| panic!("{options:?}: {error}"))
}

/// Checks that the strings are in ascending order; `=` in front of one means that it equals the one
/// before.
fn check(options: DocBuf, strings: &[&str]) {
    let collation = collation(options.clone());
    for pair in strings.windows(2) {
        let a = pair[0].trim_start_matches('=');
        let (b, expected) = match pair[1].strip_prefix('=') {
            Some(b) => (b, Ordering::Equal),
            None => (pair[1], Ordering::Less),
        };
        assert_eq!(collation.compare(a.into(), b.into()), expected, "{options:?}: {a} {b}");
        let (mut a_key, mut b_key) = (Vec::new(), Vec::new());
        collation.encode_key(a.into(), &mut a_key);
        collation.encode_key(b.into(), &mut b_key);
        assert_eq!(a_key.cmp(&b_key), expected, "{options:?}: keys of {a} {b}");
    }
}

#[test]
fn strings_compare_as_a_server_has_them() {
    check(doc! { "locale": "en", "strength": 1 }, &["a", "=A", "=á", "b"]);
    check(doc! { "locale": "en", "strength": 2 }, &["a", "=A", "á", "=Á", "b"]);
    check(doc! { "locale": "en" }, &["a", "A", "á", "Á", "b"]);
    check(doc! { "locale": "en", "caseFirst": "upper" }, &["A", "a", "Á", "á"]);
    check(doc! { "locale": "en", "strength": 1, "caseLevel": true }, &["a", "=á", "A", "=Á"]);
    check(doc! { "locale": "en", "numericOrdering": true }, &["a2", "a10", "a100"]);
    check(doc! { "locale": "en", "alternate": "shifted" }, &["ab", "=a-b", "=a b"]);
    check(doc! { "locale": "en", "alternate": "shifted", "maxVariable": "space" }, &["a-b", "ab", "=a b"]);
    check(doc! { "locale": "fr", "backwards": true }, &["cote", "côte", "coté", "côté"]);
    check(doc! { "locale": "fr_CA" }, &["cote", "côte", "coté", "côté"]);
    check(doc! { "locale": "fr" }, &["cote", "coté", "côte", "côté"]);
    check(doc! { "locale": "th" }, &["aa", "a-b", "=ab", "=a b", "ac"]);
    check(doc! { "locale": "th", "alternate": "non-ignorable" }, &["a b", "a-b", "aa", "ab"]);
    check(doc! { "locale": "sv" }, &["z", "å", "ä", "ö"]);
    check(doc! { "locale": "de@collation=phonebook" }, &["ad", "ä", "af"]);
    check(doc! { "locale": "da", "strength": 1 }, &["z", "æ", "ø", "å", "=aa"]);
}

#[test]
fn quotation_marks_have_positions_of_their_own() {
    let marks = ["'", "‘", "’", "‚", "‛", "‹", "›", "\"", "“", "”", "„", "‟", "⹂", "〝", "〞", "〟", "«", "»", "("];
    for strength in 1..=3 {
        check(doc! { "locale": "en", "strength": strength }, &marks);
        check(doc! { "locale": "fr_CA", "strength": strength }, &marks);
    }
    check(
        doc! { "locale": "en", "strength": 1 },
        &["O'Brien", "=o'brién", "O'Z", "O’Brien", "=o’BRIEN", "O’C", "O\"", "OBrien"],
    );
    check(doc! { "locale": "en", "alternate": "shifted" }, &["O'Brien", "=O’Brien", "=OBrien"]);
}

#[test]
fn only_strings_compare_by_the_collation() {
    let collation = collation(doc! { "locale": "en", "strength": 2 });
    let (a, b) = (doc! { "x": "A", "y": &crate::array!["B"] }, doc! { "x": "a", "y": &crate::array!["b"] });
    assert!(collation.equal((&a).into(), (&b).into()));
    assert!(!collation.equal((&doc! { "X": 1 }).into(), (&doc! { "x": 1 }).into()));
    assert!(collation.equal(Value::Int32(1), Value::Double(1.0)));
    assert!(!collation.equal(Value::Code("a"), Value::Int32(1)));
}

#[test]
fn a_collation_is_shown_with_everything_filled_in() {
    let shown = collation(doc! { "strength": 2.9, "locale": "fr_CA" });
    let expected = doc! {
        "locale": "fr_CA", "caseLevel": false, "caseFirst": "off", "strength": 2, "numericOrdering": false,
        "alternate": "non-ignorable", "maxVariable": "punct", "normalization": false, "backwards": true, "version": "57.1",
    };
    assert_eq!(shown.specification(), Some(&expected));
    assert_eq!(collation(expected.clone()), shown);
    assert!(collation(doc! { "locale": "simple", "strength": 1 }).is_simple());
}

#[test]
fn refusals() {
    let check =
        |options: DocBuf, parent: &str, code: i32, message: &str| match Collation::parse(options.as_doc(), parent) {
            Ok(_) => panic!("{options:?} is not refused"),
            Err(error) => assert_eq!((error.code().0, error.message()), (code, message)),
        };
    check(doc! { "strength": 1 }, "", 40414, "BSON field 'collation.locale' is missing but a required field");
    check(
        doc! { "locale": 1 },
        "create",
        14,
        "BSON field 'create.collation.locale' is the wrong type 'int', expected type 'string'",
    );
    check(doc! { "locale": "xx" }, "", 2, "Field 'locale' is invalid in: { locale: \"xx\" }");
    check(
        doc! { "locale": "en-US" },
        "",
        2,
        "Field 'locale' is invalid in: { locale: \"en-US\" }. Did you mean 'en_US'?",
    );
    check(
        doc! { "locale": "xx" },
        "create",
        2,
        "Field 'locale' is invalid in: { locale: \"xx\", caseLevel: false, caseFirst: \"off\", strength: 3, numericOrdering: false, \
         alternate: \"non-ignorable\", maxVariable: \"punct\", normalization: false }",
    );
    check(
        doc! { "locale": "en", "strength": 6 },
        "",
        51024,
        "BSON field 'strength' value must be <= 5, actual value '6'",
    );
    check(
        doc! { "locale": "en", "strength": 0 },
        "",
        2,
        "Enumeration value '0' for field 'collation.strength' is not a valid value.",
    );
    check(doc! { "locale": "en", "foo": 1 }, "", 40415, "BSON field 'collation.foo' is an unknown field.");
    check(
        doc! { "locale": "en", "caseFirst": "upper", "strength": 1 },
        "",
        2,
        "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2 in: { locale: \"en\", caseFirst: \
         \"upper\", strength: 1 }",
    );
}
