//! Hides secrets of commands wherever a command is shown: operations, profiler, logs, errors.
//!
//! The table of commands names the fields with secrets. MongoDB shows their values as `"xxx"`.

use document::{Doc, DocBuf, Value};

/// Shown instead of a secret.
const HIDDEN: &str = "xxx";

/// Returns the command with the values of these fields hidden; `None` if it has none of them.
pub fn redact(command: Doc<'_>, sensitive: &[&str]) -> Option<DocBuf> {
    let is_sensitive = |key: &str| sensitive.contains(&key);
    if sensitive.is_empty() || !command.elements().any(|element| is_sensitive(element.key())) {
        return None;
    }
    Some(DocBuf::build(|writer| {
        for element in command.elements() {
            match is_sensitive(element.key()) {
                true => writer.append(element.key(), Value::String(HIDDEN)),
                false => writer.append_element(element),
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn secrets_are_hidden() {
        let command = doc! { "createUser": "joe", "pwd": "secret", "roles": &doc! {} };
        let shown = redact(command.as_doc(), &["pwd"]).unwrap();
        assert_eq!(shown, doc! { "createUser": "joe", "pwd": "xxx", "roles": &doc! {} });
        assert_eq!(redact(command.as_doc(), &["key"]), None);
    }
}
