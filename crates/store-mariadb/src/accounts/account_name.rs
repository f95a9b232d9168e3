//! Names of accounts and roles.

use error::{Error, Result};
use mariadb_client::quote;

/// MariaDB's limit (10.11), in characters.
const CHARS_MAX: usize = 128;

/// Fails with 2 if MariaDB cannot hold the name as it is. It drops spaces at the end, and a role
/// must never stand for two users.
pub(crate) fn check(name: &str) -> Result<()> {
    let refuse = |why: &str| Err(Error::bad_value(format!("No account of MariaDB can have the name '{name}': {why}")));
    if name.chars().count() > CHARS_MAX {
        return refuse("it has more than 128 characters");
    }
    if name.contains('\0') || name.chars().any(|character| character as u32 > 0xFFFF) {
        return refuse("it has a character that MariaDB's names cannot have");
    }
    if name.is_empty() || name.ends_with(char::is_whitespace) {
        return refuse("it ends with a space");
    }
    Ok(())
}

/// Returns the account of a user in SQL.
pub(crate) fn account(name: &str) -> String {
    format!("{}@`%`", quote(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_change_are_refused() {
        for name in ["shop.ann", "shop.a`b", "shop.\\'\"", " x", "shop.ä", &"x".repeat(128), &"ä".repeat(128)] {
            assert!(check(name).is_ok(), "{name}");
        }
        for name in ["", "shop.ann ", "shop.ann\t", "shop.a\0b", "shop.😀", &"x".repeat(129)] {
            assert_eq!(check(name).unwrap_err().code(), error::Code::BAD_VALUE, "{name}");
        }
        assert_eq!(account("a`@`b"), "`a``@``b`@`%`");
    }
}
