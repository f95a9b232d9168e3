//! Names in certificates as text, by RFC 2253 and as MongoDB writes them.

use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// The attributes that have a short name. Others are written as their object identifier.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("2.5.4.3", "CN"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "STREET"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
];

/// Returns a name by RFC 2253: the most specific part first.
pub fn rfc2253(name: &X509Name<'_>) -> String {
    let mut parts: Vec<String> =
        name.iter_rdn().map(|part| part.iter().map(attribute).collect::<Vec<_>>().join("+")).collect();
    parts.reverse();
    parts.join(",")
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let identifier = attribute.attr_type().to_id_string();
    let short = SHORT_NAMES.iter().find(|(known, _)| *known == identifier).map(|(_, short)| *short);
    let value = match attribute.as_str() {
        Ok(text) => escape(text),
        // A value that is no text, as its bytes.
        Err(_) => attribute.as_slice().iter().fold(String::from("#"), |text, byte| format!("{text}{byte:02x}")),
    };
    format!("{}={value}", short.unwrap_or(&identifier))
}

fn escape(value: &str) -> String {
    let (mut escaped, last) = (String::with_capacity(value.len()), value.chars().count().saturating_sub(1));
    for (index, char) in value.chars().enumerate() {
        let is_special = matches!(char, ',' | '+' | '"' | '\\' | '<' | '>' | ';');
        let is_at_edge = index == 0 && matches!(char, ' ' | '#') || index == last && char == ' ';
        match char {
            _ if is_special || is_at_edge => escaped.extend(['\\', char]),
            '\0'..='\x1f' => escaped.push_str(&format!("\\{:02X}", u32::from(char))),
            _ => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(escape("Tests, Inc"), "Tests\\, Inc");
        assert_eq!(escape(" #a\"+<>;\\ "), "\\ #a\\\"\\+\\<\\>\\;\\\\\\ ");
        assert_eq!(escape("#1"), "\\#1");
        assert_eq!(escape("tab\tß"), "tab\\09ß");
        assert_eq!(escape(""), "");
    }
}
