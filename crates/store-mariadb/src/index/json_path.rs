//! Paths to fields of a document in MariaDB's JSON notation.
//!
//! A path names fields as the document's JSON text does ([`document::json`]): a name that begins
//! with `$` has one more of them, and quotes, backslashes and control characters are escaped.
//! MariaDB compares names after it has resolved the escapes of both sides.

/// Returns the path to a field by its components, as a parameter of a statement.
pub(crate) fn json_path<'c>(components: impl Iterator<Item = &'c str>) -> String {
    let mut path = vec![b'$'];
    for component in components {
        path.push(b'.');
        document::json::name_to_json(component, &mut path);
    }
    // The encoder writes UTF-8.
    String::from_utf8_lossy(&path).into_owned()
}

/// Returns the path to a field as an SQL literal, for expressions that take no parameters:
/// generated columns, triggers, JSON_TABLE. The session that executes the statement must not have
/// NO_BACKSLASH_ESCAPES in its sql_mode.
pub(crate) fn json_path_literal<'c>(components: impl Iterator<Item = &'c str>) -> String {
    let path = json_path(components);
    let mut literal = String::with_capacity(path.len() + 2);
    literal.push('\'');
    for character in path.chars() {
        if matches!(character, '\'' | '\\') {
            literal.push('\\');
        }
        literal.push(character);
    }
    literal.push('\'');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_document() {
        for (path, expected, literal) in [
            ("a", r#"$."a""#, r#"'$."a"'"#),
            ("a.b", r#"$."a"."b""#, r#"'$."a"."b"'"#),
            ("r.$id", r#"$."r"."$$id""#, r#"'$."r"."$$id"'"#),
            ("$$x", r#"$."$$$x""#, r#"'$."$$$x"'"#),
            ("a\"b", r#"$."a\"b""#, r#"'$."a\\"b"'"#),
            ("a'b", r#"$."a'b""#, r#"'$."a\'b"'"#),
            ("a\\b", r#"$."a\\b""#, r#"'$."a\\\\b"'"#),
            ("a\nb\u{1}", r#"$."a\nb\u0001""#, r#"'$."a\\nb\\u0001"'"#),
            ("*", r#"$."*""#, r#"'$."*"'"#),
        ] {
            assert_eq!(json_path(path.split('.')), expected);
            assert_eq!(json_path_literal(path.split('.')), literal);
        }
    }
}
