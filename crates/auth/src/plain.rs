//! PLAIN, the login by a password that is sent.
//!
//! Source: <https://www.rfc-editor.org/rfc/rfc4616>

use crate::scram::Failure;

/// The client's only message. It has no `Debug`, which would show the password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PlainMessage<'a> {
    pub user: &'a str,
    pub password: &'a str,
}

impl<'a> PlainMessage<'a> {
    /// Parses the message. As in MongoDB, the password ends at a zero, and bytes after that have no
    /// effect.
    pub fn parse(payload: &'a [u8]) -> Result<PlainMessage<'a>, Failure> {
        let text = std::str::from_utf8(payload).map_err(|_| Failure::Refused("the client's message is not UTF-8"))?;
        let mut parts = text.split('\0');
        let (Some(authorization), Some(user), Some(password)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(Failure::Refused("the client's message is cut"));
        };
        if user.is_empty() || password.is_empty() {
            return Err(Failure::Refused("the user's name or the password is empty"));
        }
        if !authorization.is_empty() && authorization != user {
            return Err(Failure::Refused("a user must not act as another one"));
        }
        Ok(PlainMessage { user, password })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_parsed_as_in_mongodb() {
        let check = |payload: &[u8], expected: Option<(&str, &str)>| {
            let parsed = PlainMessage::parse(payload).ok().map(|message| (message.user, message.password));
            assert_eq!(parsed, expected, "{payload:?}");
        };
        check(b"\0joe\0pw", Some(("joe", "pw")));
        check(b"joe\0joe\0pw", Some(("joe", "pw")));
        check(b"\0joe\0pw\0", Some(("joe", "pw")));
        check(b"\0joe\0pw\0x", Some(("joe", "pw")));
        check("\0jö,=\0p=ü".as_bytes(), Some(("jö,=", "p=ü")));
        for payload in [
            &b""[..],
            b"joe",
            b"\0",
            b"\0joe",
            b"\0\0",
            b"\0\0pw",
            b"\0joe\0",
            b"ann\0joe\0pw",
            b"\0\xff\0pw",
            b"\0joe\0\xff",
        ] {
            check(payload, None);
        }
    }
}
