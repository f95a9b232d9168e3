//! The names of certificates, which are the names of users in `$external`.
//!
//! Source: <https://www.rfc-editor.org/rfc/rfc2253>, with the short names that MongoDB knows.

use std::fmt::Write;
use x509_parser::der_parser::oid::Oid;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::X509Name;

/// The short names of attributes, which are those of OpenSSL. Others are written as numbers.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.46", "dnQualifier"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// Returns the subject of a certificate in DER, as [`rfc2253`] writes it; `None` also if the
/// certificate is malformed.
pub fn of_certificate(der: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    rfc2253(certificate.subject())
}

/// Returns a name as MongoDB names the user of a certificate: the most specific part first, without
/// spaces. Returns `None` if the name is empty or has a part that is no text.
pub fn rfc2253(name: &X509Name<'_>) -> Option<String> {
    let mut names = Vec::new();
    for relative in name.iter_rdn() {
        let mut parts = Vec::new();
        for attribute in relative.iter() {
            parts.push(format!("{}={}", short_name(attribute.attr_type()), escaped(attribute.as_str().ok()?)));
        }
        parts.reverse();
        names.push(parts.join("+"));
    }
    names.reverse();
    (!names.is_empty()).then(|| names.join(","))
}

fn short_name(attribute: &Oid<'_>) -> String {
    let number = attribute.to_id_string();
    let known = SHORT_NAMES.iter().find(|(known, _)| *known == number);
    known.map_or(number, |(_, name)| (*name).to_owned())
}

/// Escapes the characters that have a meaning in a name, and the bytes of those that are not in
/// ASCII.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for (at, byte) in value.bytes().enumerate() {
        let is_first = at == 0;
        let is_last = at + 1 == value.len();
        // Writing to a string does not fail.
        let _ = match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => write!(text, "\\{}", char::from(byte)),
            b'#' if is_first => write!(text, "\\#"),
            b' ' if is_first || is_last => write!(text, "\\ "),
            b' '..=b'~' => text.write_char(char::from(byte)),
            _ => write!(text, "\\{byte:02X}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Certificates that OpenSSL has made, with the names that MongoDB 6.0 gives to their users.
    #[test]
    fn subjects_are_written_as_by_mongodb() {
        let expected = [
            "CN=joe,OU=Unit,O=Org,L=City,ST=NY,C=US",
            "CN=\\ lead \\\"q\\\" \\<t\\>\\;\\\\\\ ,O=a\\, b",
            "title=t,serialNumber=5,SN=sn,street=Main,DC=example,DC=org,UID=u1,emailAddress=a@b.c,O=M\\C3\\BCller,CN=j\\C3\\B6e",
            "OU=b+CN=a,O=org",
        ];
        let certificates: [&[u8]; 4] = [
            include_bytes!("../tests/data/plain.der"),
            include_bytes!("../tests/data/escapes.der"),
            include_bytes!("../tests/data/names.der"),
            include_bytes!("../tests/data/several.der"),
        ];
        for (der, expected) in certificates.into_iter().zip(expected) {
            assert_eq!(of_certificate(der).as_deref(), Some(expected));
            for end in 0..der.len() {
                assert_eq!(of_certificate(der.get(..end).unwrap_or_default()), None, "cut to {end} bytes");
            }
        }
    }
}
