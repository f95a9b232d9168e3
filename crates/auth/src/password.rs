//! Passwords in the form from which their keys are computed.
//!
//! Sources: RFC 5802, RFC 7677, RFC 4013 (SASLprep), and MongoDB's
//! [specification](https://github.com/mongodb/specifications/blob/master/source/auth/auth.md).

use crate::scram::Mechanism;
use error::{Code, Error, Result};
use md5::{Digest, Md5};
use std::borrow::Cow;
use std::fmt::Write;
use stringprep::tables;

/// Returns the form of a password that SCRAM-SHA-256 uses: equal for texts that look equal. Fails
/// with 50687 or 50692 if it is empty or contains characters that no password may have.
pub fn prepare(password: &str) -> Result<String> {
    let refuse = |code, message: &str| Err(Error::new(Code(code), message));
    if password.is_empty() {
        return refuse(50687, "Error preflighting UTF-8 conversion: U_STRING_NOT_TERMINATED_WARNING");
    }
    match stringprep::saslprep(&in_unicode_3_2(password)) {
        Ok(prepared) if prepared.is_empty() => {
            refuse(50692, "Error preflighting normalization: U_STRING_NOT_TERMINATED_WARNING")
        }
        Ok(prepared) => Ok(prepared.into_owned()),
        Err(error) if error.to_string().contains("bidirectional") => {
            refuse(50692, "Error preflighting normalization: U_STRINGPREP_CHECK_BIDI_ERROR")
        }
        Err(_) if password.chars().any(tables::unassigned_code_point) => {
            refuse(50692, "Error preflighting normalization: U_STRINGPREP_UNASSIGNED_ERROR")
        }
        Err(_) => refuse(50692, "Error preflighting normalization: U_STRINGPREP_PROHIBITED_ERROR"),
    }
}

/// Replaces the characters whose decomposition has changed since Unicode 3.2, on which SASLprep is
/// based: MongoDB and drivers decompose them as then. Those that changed earlier do not differ.
/// Source: <https://www.unicode.org/versions/corrigendum4.html>
fn in_unicode_3_2(password: &str) -> Cow<'_, str> {
    let decomposed = |character| match character {
        '\u{2F868}' => '\u{2136A}',
        '\u{2F874}' => '\u{5F33}',
        '\u{2F91F}' => '\u{43AB}',
        '\u{2F95F}' => '\u{7AAE}',
        '\u{2F9BF}' => '\u{4D57}',
        other => other,
    };
    match password.chars().any(|character| decomposed(character) != character) {
        true => password.chars().map(decomposed).collect(),
        false => password.into(),
    }
}

/// Returns the digest that SCRAM-SHA-1 uses in place of a password.
pub fn digest(user: &str, password: &str) -> String {
    let hash = Md5::new().chain_update(user).chain_update(":mongo:").chain_update(password).finalize();
    let mut digits = String::with_capacity(2 * hash.len());
    for byte in &hash {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Returns the form of a password from which a mechanism computes its keys. Fails as [`prepare`].
pub fn secret(mechanism: Mechanism, user: &str, password: &str) -> Result<String> {
    match mechanism {
        Mechanism::Sha1 => Ok(digest(user, password)),
        Mechanism::Sha256 => prepare(password),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::ScramCredentials;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    /// The examples of RFC 4013, and what MongoDB 6.0.5 accepts.
    #[test]
    fn passwords_are_prepared() {
        for (password, expected) in [
            // Section 3 of the RFC.
            ("I\u{AD}X", "IX"),
            ("user", "user"),
            ("USER", "USER"),
            ("\u{AA}", "a"),
            ("\u{2168}", "IX"),
            // Other spaces become spaces; some characters become nothing.
            ("a\u{A0}b", "a b"),
            ("a\u{1680}b", "a b"),
            ("\u{200B}", " "),
            ("\u{3000}x", " x"),
            ("a\u{200D}", "a"),
            ("a\u{FEFF}b\u{FE0F}", "ab"),
            // Normalization.
            ("e\u{301}", "\u{E9}"),
            ("\u{212B}", "\u{C5}"),
            ("\u{FF21}\u{FB01}", "Afi"),
            ("\u{1100}\u{1161}", "\u{AC00}"),
            ("\u{1100}\u{300}\u{1161}", "\u{1100}\u{300}\u{1161}"),
            ("\u{DF}\u{17F}\u{130}", "\u{DF}s\u{130}"),
            // Of Unicode 3.2: corrected later.
            ("\u{2F868}\u{2F874}", "\u{2136A}\u{5F33}"),
            ("\u{2F91F}\u{2F95F}\u{2F9BF}", "\u{43AB}\u{7AAE}\u{4D57}"),
            ("\u{F951}", "\u{964B}"),
            // From right to left, at both ends.
            ("\u{627}1\u{628}", "\u{627}1\u{628}"),
            ("\u{5D0}", "\u{5D0}"),
            ("\u{660}", "\u{660}"),
            ("\u{627}\u{660}\u{627}", "\u{627}\u{660}\u{627}"),
        ] {
            assert_eq!(prepare(password).as_deref(), Ok(expected), "{password:?}");
        }
    }

    /// As MongoDB 6.0.5 refuses them.
    #[test]
    fn passwords_are_refused() {
        let check = |passwords: &[&str], code: i32, end: &str| {
            for password in passwords {
                let error = prepare(password).unwrap_err();
                assert_eq!(error.code(), Code(code), "{password:?}");
                assert!(error.message().ends_with(end), "{password:?}: {}", error.message());
            }
        };
        check(&[""], 50687, "U_STRING_NOT_TERMINATED_WARNING");
        let nothing =
            ["\u{AD}", "\u{FEFF}", "\u{FE0F}", "\u{34F}", "\u{2060}", "\u{1806}", "\u{180B}", "\u{200C}", "\u{200D}"];
        check(&nothing, 50692, "U_STRING_NOT_TERMINATED_WARNING");
        let prohibited = [
            "\u{7}",
            "a\u{7}b",
            "\u{7F}",
            "\u{85}",
            "\u{6DD}",
            "\u{70F}",
            "\u{180E}",
            "\u{200E}",
            "\u{2028}",
            "\u{202A}",
            "\u{206A}",
            "\u{2FF0}",
            "\u{E000}",
            "\u{FDD0}",
            "\u{FFF9}",
            "\u{FFFD}",
            "\u{FFFF}",
            "\u{E0001}",
            "\u{E0020}",
            "\u{10FFFF}",
        ];
        check(&prohibited, 50692, "U_STRINGPREP_PROHIBITED_ERROR");
        let mixed = ["\u{627}1", "1\u{5D0}", "a\u{627}", "\u{627}a\u{628}", "\u{5BE}a\u{5BE}", "\u{FB1D}"];
        check(&mixed, 50692, "U_STRINGPREP_CHECK_BIDI_ERROR");
        let unassigned =
            ["\u{221}", "x\u{221}", "\u{378}", "\u{524}", "\u{D29}", "\u{1E9E}", "\u{20B9}", "\u{3130}", "\u{1F600}"];
        check(&unassigned, 50692, "U_STRINGPREP_UNASSIGNED_ERROR");
    }

    // Keys that MongoDB 6.0.5 has computed.
    #[test]
    fn keys_are_those_of_mongodb() {
        assert_eq!(digest("user", "pencil"), "1c33006ec1ffd90f9cadcbcc0e118200");
        let salt = STANDARD.decode("nDCSiiFHYKjXAhz2IQ2rFOynAFoGwR2eAc7gFw==").unwrap();
        let keys = ScramCredentials::of_secret(Mechanism::Sha256, "p", 15_000, &salt);
        assert_eq!(STANDARD.encode(keys.stored_key), "LuUhheSkp7F63PGUTrzMrbUyTjT6zcYLYkIM3G/t90U=");
        assert_eq!(STANDARD.encode(keys.server_key), "RIEaZ84gzXdi4n/bu7wMvhBZ9MfQZqGbHo8CEVwJ2xc=");
        let salt = STANDARD.decode("dIZES9r7R2o7IZzlEciy8Q==").unwrap();
        let keys = ScramCredentials::of_secret(Mechanism::Sha1, &digest("b", "p"), 10_000, &salt);
        assert_eq!(STANDARD.encode(keys.stored_key), "U3j8vZhRYg4jBt9H5xNSuVFayKg=");
        assert_eq!(STANDARD.encode(keys.server_key), "Bscl/NiIbZuMLCoreZFY9SJgMKQ=");
    }
}
