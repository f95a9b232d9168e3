use super::*;
use crate::testing::{documents, values};
use crate::validate::{check, check_sent};
use crate::{DocBuf, ValueBuf, doc};
use proptest::prelude::*;

/// Returns a document whose names are these bytes.
fn named(names: &[Vec<u8>], value: &ValueBuf) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = DocWriter::begin(&mut bytes);
    names.iter().for_each(|name| writer.append_raw(value.kind(), name, value.raw_value()));
    drop(writer);
    bytes
}

fn odd_names() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let byte = prop::sample::select(b"ab.$\x80\xC2\xC3\xA9\xE9\xF4\x8F\xBF\xFF".to_vec());
    let part = prop_oneof![
        4 => prop::collection::vec(byte, 0..6),
        1 => Just(MARK.as_bytes().to_vec()),
        1 => Just("\u{10FFFF}é".as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte.max(1)]),
    ];
    prop::collection::vec(prop::collection::vec(part, 0..3).prop_map(|parts| parts.concat()), 0..4)
}

#[test]
fn how_names_are_escaped() {
    assert_eq!(escape(b"abc"), "abc");
    assert_eq!(escape("né".as_bytes()), "né");
    assert_eq!(escape(b"n\xE9"), "n\u{10FFFF}é");
    assert_eq!(escape(b"a\xFF.b"), "a\u{10FFFF}\u{FF}.b");
    for byte in 0x80..=0xFF {
        let escaped = escape(&[byte]).into_owned();
        assert!(!escaped.chars().any(char::is_control));
        assert_eq!(restore(&escaped), &[byte][..]);
    }
    assert_eq!(restore("n\u{10FFFF}é"), &b"n\xE9"[..]);
    assert_eq!(restore(&escape(MARK.as_bytes())), MARK.as_bytes());
    // A text that was not escaped stays unchanged.
    assert_eq!(restore("\u{10FFFF}a\u{10FFFF}"), "\u{10FFFF}a\u{10FFFF}".as_bytes());
    assert_eq!(shown("'n\u{10FFFF}é'"), "'n\u{FFFD}'");
}

#[test]
fn messages_of_errors_show_names() {
    note_escaped();
    let name = escape(b"n\xE9");
    let mut error = DocBuf::new();
    error.append("errmsg", format!("{{ {name}: 1 }}").as_str());
    let mut value = DocBuf::new();
    value.append(&name, 1);
    error.append("keyValue", &value);
    let reply = doc! { "n": 0, "writeErrors": &crate::array![&error], "errmsg": "x\u{10FFFF}é" };
    let mut buffer = b"front".to_vec();
    buffer.extend_from_slice(reply.as_bytes());
    restore_reply(&mut buffer, 5);
    assert_eq!(&buffer[..5], b"front");
    let restored = Doc::from_bytes(&buffer[5..]).unwrap();
    assert_eq!(restored.get("errmsg"), Some(Value::String("x\u{FFFD}")));
    let errors = restored.get("writeErrors").and_then(Value::as_array).unwrap();
    let error = errors.values().next().and_then(Value::as_document).unwrap();
    assert_eq!(error.get("errmsg"), Some(Value::String("{ n\u{FFFD}: 1 }")));
    let value = error.get("keyValue").and_then(Value::as_document).unwrap();
    assert_eq!(value.first().map(Element::key_bytes), Some(&b"n\xE9"[..]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn names_come_back(names in odd_names(), value in values()) {
        note_escaped();
        for name in &names {
            let escaped = escape(name);
            prop_assert_eq!(&*restore(&escaped), &name[..]);
            prop_assert_eq!(escaped.contains('\0'), false);
            // Paths have the same components.
            prop_assert_eq!(escaped.split('.').count(), name.split(|byte| *byte == b'.').count());
        }
        // Nested within themselves, with any value.
        let inner = named(&names, &value);
        let inner = ValueBuf::from_raw(Kind::Document, inner);
        let sent = named(&names, &inner);
        let mut escaped = Vec::new();
        prop_assert_eq!(escape_document(&sent, &mut escaped, usize::MAX), Ok(sent.len()));
        prop_assert!(check(&escaped).is_ok());
        if check_sent(&sent).is_ok() {
            prop_assert_eq!(&escaped, &sent);
        }
        let mut restored = Vec::new();
        restore_document(Doc::from_bytes(&escaped).unwrap(), &mut restored);
        prop_assert_eq!(&restored, &sent);
        let mut reply = escaped.clone();
        restore_reply(&mut reply, 0);
        prop_assert_eq!(&reply, &sent);
        // And through JSON.
        let (mut text, mut back) = (Vec::new(), Vec::new());
        crate::json::bson_to_json(Doc::from_bytes(&escaped).unwrap(), &mut text);
        crate::json::json_to_bson(&text, &mut back).unwrap();
        prop_assert_eq!(&back, &escaped);
    }

    #[test]
    fn bytes_that_are_no_document(bytes in documents(), cut in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = bytes;
        let at = cut.index(bytes.len());
        bytes[at] = byte;
        let mut out = Vec::new();
        if escape_document(&bytes, &mut out, usize::MAX).is_ok() {
            let _ = check(&out);
        }
        let before = check_sent(&bytes).is_ok();
        out.clear();
        let escaped = escape_document(&bytes, &mut out, usize::MAX);
        // A document that passes the check is unchanged.
        prop_assert!(!before || escaped.is_ok_and(|size| out == bytes[..size]));
        bytes.truncate(at);
        let _ = escape_document(&bytes, &mut out, 64);
    }
}
