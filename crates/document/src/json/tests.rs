use super::*;
use crate::testing::documents;
use crate::validate::check;
use crate::value::{Kind, Value};
use crate::{Decimal128, Doc, DocBuf, ObjectId, ValueBuf, array, doc};
use proptest::prelude::*;

fn to_json(document: Doc<'_>) -> String {
    let mut out = Vec::new();
    bson_to_json(document, &mut out);
    String::from_utf8(out).unwrap()
}

fn from_json(text: &str) -> Result<DocBuf, JsonError> {
    let mut out = Vec::new();
    json_to_bson(text.as_bytes(), &mut out)?;
    Ok(DocBuf::from_vec(out).unwrap())
}

/// Checks the encoding of a value, and that it is read back to the same bytes.
fn check_value<'v>(value: impl Into<Value<'v>>, expected: &str) {
    let document = doc! { "v": value };
    assert_eq!(to_json(document.as_doc()), format!("{{\"v\":{expected}}}"));
    assert_eq!(from_json(&to_json(document.as_doc())), Ok(document));
}

#[test]
fn text_that_is_not_utf8_is_raw_bson() {
    let mut document = DocBuf::new();
    document.append("s", &ValueBuf::from_string_bytes(b"a\xE9b"));
    let mut text = Vec::new();
    bson_to_json(document.as_doc(), &mut text);
    assert_eq!(String::from_utf8(text.clone()).unwrap(), r#"{"s":{"$bson":"BAAAAGHpYgA=","$type":"02"}}"#);
    let mut back = Vec::new();
    json_to_bson(&text, &mut back).unwrap();
    assert_eq!(back, document.as_bytes());
    assert_eq!(document.as_doc().get("s").and_then(Value::string_bytes), Some(&b"a\xE9b"[..]));
}

#[test]
fn numbers() {
    check_value(5, "5");
    check_value(i32::MIN, "-2147483648");
    check_value(5i64, "5e0");
    check_value(-2_147_483_648i64, "-2147483648e0");
    check_value(2_147_483_648i64, "2147483648");
    check_value(i64::MIN, "-9223372036854775808");
    check_value(5.0, "5.0");
    check_value(-0.0, "-0.0");
    check_value(5.25e10, "52500000000.0");
    check_value(1e16, "1.0e16");
    check_value(5.25e100, "5.25e100");
    check_value(5e-324, "5.0e-324");
    check_value(f64::MAX, "1.7976931348623157e308");
    check_value(f64::INFINITY, "{\"$numberDouble\":\"Infinity\"}");
    check_value(f64::NEG_INFINITY, "{\"$numberDouble\":\"-Infinity\"}");
    check_value(Value::Decimal128(Decimal128::parse("1.50").unwrap()), "{\"$numberDecimal\":\"1.50\"}");
    check_value(Value::Decimal128(Decimal128::NAN), "{\"$numberDecimal\":\"NaN\"}");
    let nan = doc! { "v": f64::NAN };
    assert_eq!(to_json(nan.as_doc()), "{\"v\":{\"$numberDouble\":\"NaN\"}}");
    let strange = doc! { "v": f64::from_bits(f64::NAN.to_bits() | 1) };
    assert_eq!(to_json(strange.as_doc()), "{\"v\":{\"$bson\":\"AQAAAAAA+H8=\",\"$type\":\"01\"}}");
    assert_eq!(from_json(&to_json(strange.as_doc())), Ok(strange));
}

#[test]
fn other_types() {
    let id = ObjectId([0x5f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0xff]);
    check_value("a\"\\\n\u{1}\u{0}é😀/\u{7f}", "\"a\\\"\\\\\\n\\u0001\\u0000é😀/\u{7f}\"");
    check_value(true, "true");
    check_value(Value::Null, "null");
    check_value(Value::Undefined, "{\"$undefined\":true}");
    check_value(Value::MinKey, "{\"$minKey\":1}");
    check_value(Value::MaxKey, "{\"$maxKey\":1}");
    check_value(id, "{\"$oid\":\"5f0102030405060708090aff\"}");
    check_value(Value::DateTime(0), "{\"$date\":\"1970-01-01T00:00:00Z\"}");
    check_value(Value::DateTime(1500), "{\"$date\":\"1970-01-01T00:00:01.500Z\"}");
    check_value(Value::DateTime(-1), "{\"$date\":{\"$numberLong\":\"-1\"}}");
    check_value(Value::DateTime(253_402_300_800_000), "{\"$date\":{\"$numberLong\":\"253402300800000\"}}");
    check_value(Value::Timestamp { time: u32::MAX, increment: 7 }, "{\"$timestamp\":{\"t\":4294967295,\"i\":7}}");
    check_value(
        Value::Binary { subtype: 0x80, bytes: &[0xFF, 0xEF] },
        "{\"$binary\":{\"base64\":\"/+8=\",\"subType\":\"80\"}}",
    );
    check_value(
        Value::Regex { pattern: "a\"/", options: "zxi" },
        "{\"$regularExpression\":{\"pattern\":\"a\\\"/\",\"options\":\"zxi\"}}",
    );
    check_value(
        Value::DbPointer { namespace: "a.b", id },
        "{\"$dbPointer\":{\"$ref\":\"a.b\",\"$id\":{\"$oid\":\"5f0102030405060708090aff\"}}}",
    );
    check_value(Value::Code("f()"), "{\"$code\":\"f()\"}");
    check_value(Value::Symbol("s"), "{\"$symbol\":\"s\"}");
    check_value(
        Value::CodeWithScope { code: "f()", scope: doc! { "$oid": 1 }.as_doc() },
        "{\"$code\":\"f()\",\"$scope\":{\"$$oid\":1}}",
    );
    check_value(&array![1, "a", &array![]], "[1,\"a\",[]]");
    check_value(&doc! { "a": 1, "a": 2, "": 3 }, "{\"a\":1,\"a\":2,\"\":3}");
}

#[test]
fn names_with_dollars() {
    check_value(&doc! { "$oid": "5f0102030405060708090aff" }, "{\"$$oid\":\"5f0102030405060708090aff\"}");
    check_value(&doc! { "$$a": 1, "$": 2, "a$": 3 }, "{\"$$$a\":1,\"$$\":2,\"a$\":3}");
    check_value(&doc! { "$ref": "c", "$id": 1 }, "{\"$$ref\":\"c\",\"$$id\":1}");
}

#[test]
fn unusual_arrays_are_wrapped() {
    let inner = doc! { "1": 5 };
    let document = doc! { "v": Value::Array(inner.as_doc()) };
    assert_eq!(to_json(document.as_doc()), "{\"v\":{\"$bson\":\"DAAAABAxAAUAAAAA\",\"$type\":\"04\"}}");
    assert_eq!(from_json(&to_json(document.as_doc())), Ok(document));
}

fn nested(levels: usize, as_array: bool) -> DocBuf {
    let mut document = doc! { "leaf": 1i64 };
    for _ in 1..levels {
        document = match as_array {
            true => doc! { "0": Value::Array(document.as_doc()) },
            false => doc! { "a": &document },
        };
    }
    document
}

#[test]
fn deep_nesting_is_wrapped() {
    for levels in [LEVELS_MAX - 1, LEVELS_MAX, LEVELS_MAX + 1, 100, DEPTH_LEVELS] {
        for as_array in [false, true] {
            let document = nested(levels, as_array);
            check(document.as_bytes()).unwrap();
            let text = to_json(document.as_doc());
            assert_eq!(from_json(&text), Ok(document), "{levels} levels");
            let (mut open, mut deepest) = (0, 0);
            for byte in text.bytes() {
                open += i32::from(byte == b'{' || byte == b'[') - i32::from(byte == b'}' || byte == b']');
                deepest = deepest.max(open);
            }
            assert!(deepest <= 28, "{levels} levels give {deepest}");
        }
    }
}

const DEPTH_LEVELS: usize = crate::DEPTH_MAX;

/// Checks what a hand-written value is read as, by its canonical encoding.
fn check_read(text: &str, expected: &str) {
    let document = from_json(&format!("{{\"v\":{text}}}")).unwrap_or_else(|error| panic!("{text}: {error}"));
    check(document.as_bytes()).unwrap();
    assert_eq!(to_json(document.as_doc()), format!("{{\"v\":{expected}}}"), "{text}");
}

#[test]
fn written_by_hand() {
    check_read(" [ 1 ,\n2\t] ", "[1,2]");
    check_read("{ }", "{}");
    check_read("1E5", "100000.0");
    check_read("1e+2", "100.0");
    check_read("25e-1", "2.5");
    check_read("5E0", "5e0");
    check_read("5e-0", "5e0");
    check_read("5000000000e0", "5000000000");
    check_read("1.5e0", "1.5");
    check_read("-0", "0");
    check_read("9223372036854775807", "9223372036854775807");
    check_read("9223372036854775808", "9.223372036854776e18");
    check_read("-9223372036854775808", "-9223372036854775808");
    check_read("123456789012345678901234567890", "1.2345678901234568e29");
    check_read("0.1234567890123456789012345", "0.12345678901234568");
    check_read("1e400", "{\"$numberDouble\":\"Infinity\"}");
    check_read("\"\\u00e9\\ud83d\\ude00\\/\\u0041\"", "\"é😀/A\"");
    check_read("\"\\ud83d\\u0041\\ude00\"", "\"\u{FFFD}A\u{FFFD}\"");
    check_read("{\"$numberInt\":\"5\"}", "5");
    check_read("{\"$numberLong\":\"5\"}", "5e0");
    check_read("{ \"$numberDouble\" : \"5\" }", "5.0");
    check_read("{\"$numberDouble\":\"-0.0\"}", "-0.0");
    check_read("{\"$date\":1500}", "{\"$date\":\"1970-01-01T00:00:01.500Z\"}");
    check_read("{\"$date\":{\"$numberLong\":\"1500\"}}", "{\"$date\":\"1970-01-01T00:00:01.500Z\"}");
    check_read("{\"$date\":\"1970-01-01T01:00:00.5+0100\"}", "{\"$date\":\"1970-01-01T00:00:00.500Z\"}");
    let binary = "{\"$binary\":{\"base64\":\"AQI=\",\"subType\":\"05\"}}";
    check_read("{\"$binary\":\"AQI=\",\"$type\":\"05\"}", binary);
    check_read("{\"$type\":\"5\",\"$binary\":\"AQI\"}", binary);
    check_read("{\"$binary\":{\"subType\":\"05\",\"base64\":\"AQI=\"}}", binary);
    check_read(
        "{\"$uuid\":\"00112233-4455-6677-8899-AABBCCDDEEFF\"}",
        "{\"$binary\":{\"base64\":\"ABEiM0RVZneImaq7zN3u/w==\",\"subType\":\"04\"}}",
    );
    let regex = "{\"$regularExpression\":{\"pattern\":\"a\",\"options\":\"i\"}}";
    check_read("{\"$regex\":\"a\",\"$options\":\"i\"}", regex);
    check_read("{\"$options\":\"i\", \"$regex\":\"a\"}", regex);
    check_read("{\"$regularExpression\":{\"options\":\"i\",\"pattern\":\"a\"}}", regex);
    check_read("{\"$timestamp\":{\"i\":1,\"t\":2}}", "{\"$timestamp\":{\"t\":2,\"i\":1}}");
    check_read("{\"$oid\" : \"5F0102030405060708090AFF\"}", "{\"$oid\":\"5f0102030405060708090aff\"}");
    check_read("{\"$numberDecimal\":\"1e3\"}", "{\"$numberDecimal\":\"1E+3\"}");
}

/// A malformed wrapper is a document.
#[test]
fn malformed_wrappers() {
    for text in [
        "{\"$oid\":\"5f01\"}",
        "{\"$oid\":5}",
        "{\"$oid\":\"5f0102030405060708090aff\",\"a\":1}",
        "{\"$date\":\"today\"}",
        "{\"$date\":1.5}",
        "{\"$date\":null}",
        "{\"$numberInt\":\"5000000000\"}",
        "{\"$numberLong\":\"x\"}",
        "{\"$numberDouble\":\"inf\"}",
        "{\"$numberDecimal\":\"x\"}",
        "{\"$numberDecimal\":5}",
        "{\"$binary\":\"AQI=\"}",
        "{\"$binary\":{\"base64\":\"AQI=\"}}",
        "{\"$binary\":{\"base64\":\"?\",\"subType\":\"00\"}}",
        "{\"$binary\":\"AQI=\",\"$type\":\"100\"}",
        "{\"$uuid\":\"0011\"}",
        "{\"$regex\":\"a\"}",
        "{\"$regex\":\"a\\u0000\",\"$options\":\"\"}",
        "{\"$timestamp\":{\"t\":-1,\"i\":1}}",
        "{\"$timestamp\":5}",
        "{\"$symbol\":1}",
        "{\"$code\":{}}",
        "{\"$code\":\"f\",\"$scope\":1}",
        "{\"$dbPointer\":{\"$ref\":\"a\",\"$id\":1}}",
        "{\"$minKey\":2}",
        "{\"$undefined\":false}",
        "{\"$bson\":\"AAAA\",\"$type\":\"03\"}",
        "{\"$ref\":\"c\",\"$id\":1}",
        "{\"$bson\":\"BQAAAAA=\",\"$type\":\"63\"}",
        "{\"$unknown\":1}",
        "{\"$\":1}",
    ] {
        let document = from_json(&format!("{{\"v\":{text}}}")).unwrap_or_else(|error| panic!("{text}: {error}"));
        let element = document.as_doc().first().unwrap();
        assert_eq!(element.kind, Kind::Document, "{text}");
        assert!(
            text.contains(&format!("\"{}\"", element.value().as_document().unwrap().first().unwrap().key())),
            "{text}"
        );
        assert_eq!(from_json(&to_json(document.as_doc())), Ok(document), "{text}");
    }
}

fn check_error(text: &str, reason: Reason) {
    assert_eq!(from_json(text).map_err(|error| error.reason), Err(reason), "{text}");
}

#[test]
fn refusals() {
    for text in ["", " ", "[]", "1", "null", "\"a\""] {
        check_error(text, Reason::NotAnObject);
    }
    for text in [
        "{",
        "{}x",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":1e}",
        "{\"a\":+1}",
        "{\"a\":-}",
        "{\"a\":tru}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"",
        "{\"a\":[1,]}",
        "{\"a\":[1}",
        "{\"a\":nul",
        "{\"a\":\"\\",
        "{\"a\":{\"$code\":\"\\x\",\"$scope\":{}}}",
        "{\"a\":{\"$oid\":",
        "{\"a\":{\"$code\":\"\",\"$scope\":{]}}}",
    ] {
        check_error(text, Reason::Syntax);
    }
    check_error("{\"a\\u0000\":1}", Reason::ZeroCharacter);
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(300), "]".repeat(300));
    check_error(&deep, Reason::Depth);
    let mut out = vec![7];
    let result = json_to_bson(b"{\"a\":\"\xFF\"}", &mut out);
    assert_eq!(result, Err(JsonError { reason: Reason::Utf8, position: 6 }));
    assert_eq!(out, [7]);
}

#[test]
fn text_of_ids() {
    let text = |id: Value<'_>| {
        let mut out = Vec::new();
        id_text(id, &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(text(1i64.into()), "1e0");
    assert_eq!(text((&doc! { "a": "b" }).into()), "{\"a\":\"b\"}");
    assert_eq!(text("x".into()), "\"x\"");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_document_comes_back_whole(bytes in documents()) {
        let document = check(&bytes).unwrap();
        let text = to_json(document);
        let mut back = Vec::new();
        json_to_bson(text.as_bytes(), &mut back).unwrap_or_else(|error| panic!("{text}: {error}"));
        prop_assert_eq!(back, bytes, "{}", text);
    }

    /// Broken text gives an error or a valid document; never a panic.
    #[test]
    fn broken_text(bytes in documents(), cut in any::<prop::sample::Index>(), byte in any::<u8>(), truncate in any::<bool>()) {
        let mut text = to_json(check(&bytes).unwrap()).into_bytes();
        let at = cut.index(text.len());
        if truncate { text.truncate(at) } else { text[at] = byte }
        let mut out = Vec::new();
        if json_to_bson(&text, &mut out).is_ok() {
            let document = check(&out);
            prop_assert!(document.is_ok_and(|document| document.size() == out.len()), "{:?} from {}", document, String::from_utf8_lossy(&text));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Some fields read alone equal those of the whole.
    #[test]
    fn fields_read_alone_equal_those_of_the_whole(bytes in documents(), odd in any::<bool>()) {
        let keeps = |name: &[u8]| (name.len() % 2 == 1) == odd;
        let document = check(&bytes).unwrap();
        let text = to_json(document).into_bytes();
        let mut some = Vec::new();
        json_fields_to_bson(&text, &mut some, &keeps).unwrap();
        let expected = DocBuf::build(|writer| {
            document.elements().filter(|it| keeps(it.key_bytes())).for_each(|it| writer.append_element(it));
        });
        prop_assert_eq!(some, expected.into_vec(), "{}", String::from_utf8_lossy(&text));
        // Truncated text is refused, or read; reading does not overrun it.
        for end in 0..text.len() {
            let _ = json_fields_to_bson(&text[..end], &mut Vec::new(), &keeps);
        }
    }

    /// The first fields of some names equal those of the whole, and nothing is read behind them.
    #[test]
    fn first_fields_equal_those_of_the_whole(bytes in documents(), picks in prop::collection::vec(any::<prop::sample::Index>(), 1..4)) {
        let document = check(&bytes).unwrap();
        let all: Vec<&[u8]> = document.elements().map(|it| it.key_bytes()).collect();
        let mut names: Vec<&[u8]> = picks.iter().filter_map(|pick| all.get(pick.index(all.len().max(1)))).copied().collect();
        names.sort_unstable();
        names.dedup();
        prop_assume!(!names.is_empty());
        let place = |name: &[u8]| names.iter().position(|it| *it == name);
        let text = to_json(document).into_bytes();
        let mut some = Vec::new();
        json_first_fields_to_bson(&text, &mut some, names.len(), &place).unwrap();
        let mut seen = Vec::new();
        let expected = DocBuf::build(|writer| {
            let first = document.elements().filter(|it| {
                let is_first = place(it.key_bytes()).is_some() && !seen.contains(&it.key_bytes());
                seen.push(it.key_bytes());
                is_first
            });
            first.for_each(|it| writer.append_element(it));
        });
        prop_assert_eq!(some, expected.into_vec(), "{}", String::from_utf8_lossy(&text));
        for end in 0..text.len() {
            let _ = json_first_fields_to_bson(&text[..end], &mut Vec::new(), names.len(), &place);
        }
    }
}
