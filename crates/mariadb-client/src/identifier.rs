//! Quoting of identifiers: the only way a name becomes part of a statement.

/// Returns the identifier between backticks.
pub fn quote(identifier: &str) -> String {
    let mut quoted = String::with_capacity(identifier.len() + 2);
    quoted.push('`');
    for character in identifier.chars() {
        if character == '`' {
            quoted.push('`');
        }
        // MariaDB cannot write a NUL in an identifier; names that contain one are refused before.
        if character != '\0' {
            quoted.push(character);
        }
    }
    quoted.push('`');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_are_doubled() {
        assert_eq!(quote("a`; drop table x; -- "), "`a``; drop table x; -- `");
        assert_eq!(quote("``"), "``````");
    }
}
