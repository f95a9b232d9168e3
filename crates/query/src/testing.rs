//! Documents for tests, written as extended JSON.

use document::DocBuf;

/// Reads a document written as extended JSON; single quotes may stand for double ones.
pub fn doc(text: &str) -> DocBuf {
    let json: serde_json::Value =
        serde_json::from_str(&text.replace('\'', "\"")).unwrap_or_else(|error| panic!("{text}: {error}"));
    let object = json.as_object().unwrap_or_else(|| panic!("{text}: not an object")).clone();
    let document = bson::Document::try_from(object).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut bytes = Vec::new();
    document.to_writer(&mut bytes).expect("writing to memory");
    DocBuf::from_vec(bytes).expect("a document")
}

/// A document as relaxed extended JSON, for comparing.
pub fn text(document: document::Doc<'_>) -> String {
    let parsed = bson::Document::from_reader(document.as_bytes()).expect("a document");
    bson::Bson::Document(parsed).into_relaxed_extjson().to_string()
}
