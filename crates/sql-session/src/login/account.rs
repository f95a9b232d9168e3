//! What an account requires of its client's connection (`REQUIRE SSL`). MariaDB sees the gateway's
//! connection, so where that has TLS, the gateway checks the client's.

use super::authentication::{Parties, REFUSED};
use super::packet::{error_packet, set_number};
use crate::packet_stream::PacketStream;
use crate::reply_tracker::{ReplyKind, ReplyTracker};
use crate::result_rows;
use std::io;

/// Shows the session's own account, for which it needs no privilege.
const ACCOUNT_QUERY: &[u8] = b"\x11\0\0\0\x03SHOW CREATE USER";

/// The longest description of an account.
const REPLY_BYTES_MAX: usize = 64 << 10;

/// What an account requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requirement {
    Nothing,
    Tls,
    /// A certificate, signed by a trusted authority.
    Certificate,
    /// A certificate or a cipher in particular.
    Particular,
}

impl Parties<'_> {
    /// Returns an error packet with this number if the client's connection is not as the account
    /// requires.
    pub async fn account_refusal(&mut self, number: u8, deprecates_eof: bool) -> io::Result<Option<Vec<u8>>> {
        self.server.send(ACCOUNT_QUERY).await?;
        let refuse = |sentence: &str| Ok(Some(error_packet(number, REFUSED.0, REFUSED.1, sentence)));
        let reply = match read_reply(self.server, deprecates_eof).await? {
            Ok(reply) => reply,
            Err(mut error) => {
                // As with an expired password, which must be changed first.
                set_number(&mut error, number);
                return Ok(Some(error));
            }
        };
        let Some(account) = result_rows::first_row(&reply, deprecates_eof).and_then(|row| row.into_iter().next()?)
        else {
            return refuse("Access denied: MariaDB does not show what the account requires");
        };
        match requirement(&account) {
            Requirement::Tls if !self.client.stream.is_tls() => {
                refuse("Access denied: the account requires TLS (REQUIRE SSL); connect to Selkie with it")
            }
            Requirement::Certificate if !self.client.stream.has_peer_certificate() => {
                refuse("Access denied: the account requires a certificate of the client (REQUIRE X509)")
            }
            Requirement::Particular => refuse(
                "Access denied: the account requires a particular certificate or cipher (REQUIRE SUBJECT, ISSUER, CIPHER), \
                 which only MariaDB itself can check; connect to MariaDB directly",
            ),
            _ => Ok(None),
        }
    }
}

/// Reads the reply to a query: its packets, or the error packet.
async fn read_reply(server: &mut PacketStream, deprecates_eof: bool) -> io::Result<Result<Vec<u8>, Vec<u8>>> {
    let mut reply = ReplyTracker::new(ReplyKind::Results, deprecates_eof);
    let mut taken = Vec::new();
    while !reply.is_over() {
        if server.bytes().is_empty() {
            server.fill().await?;
        }
        let used = reply.feed(server.bytes());
        if taken.len() + used > REPLY_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        taken.extend_from_slice(&server.bytes()[..used]);
        server.consume(used);
    }
    Ok(if reply.failed { Err(taken) } else { Ok(taken) })
}

/// Returns what a `CREATE USER` statement requires.
fn requirement(statement: &str) -> Requirement {
    let Some(bare) = without_quoted(statement) else { return Requirement::Particular };
    let mut words = bare.split_ascii_whitespace().skip_while(|word| !word.eq_ignore_ascii_case("REQUIRE")).skip(1);
    match words.next().map(str::to_ascii_uppercase).as_deref() {
        None | Some("NONE") => Requirement::Nothing,
        Some("SSL") => Requirement::Tls,
        Some("X509") => Requirement::Certificate,
        Some(_) => Requirement::Particular,
    }
}

/// Returns a statement without names and literals, which may contain any words. Returns `None` if
/// the last one does not end: a backslash may have another meaning in the session.
fn without_quoted(statement: &str) -> Option<String> {
    let mut bare = String::with_capacity(statement.len());
    let mut quote = None;
    let mut characters = statement.chars();
    while let Some(character) = characters.next() {
        match quote {
            // A quote that is doubled ends a part and begins another.
            Some(end) if character == end => {
                quote = None;
                bare.push(' ');
            }
            Some('\'') if character == '\\' => drop(characters.next()),
            Some(_) => {}
            None if matches!(character, '\'' | '`' | '"') => quote = Some(character),
            None => bare.push(character),
        }
    }
    quote.is_none().then_some(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_found_outside_of_names() {
        for (statement, expected) in [
            ("CREATE USER `joe`@`%` IDENTIFIED BY PASSWORD '*94BD'", Requirement::Nothing),
            (
                "CREATE USER `joe`@`%` IDENTIFIED BY PASSWORD '*94BD' REQUIRE SSL PASSWORD EXPIRE NEVER",
                Requirement::Tls,
            ),
            ("CREATE USER `joe`@`%` IDENTIFIED VIA ed25519 USING 'x' REQUIRE X509", Requirement::Certificate),
            ("CREATE USER `joe`@`%` REQUIRE SUBJECT '/CN=x'", Requirement::Particular),
            ("CREATE USER `joe`@`%` REQUIRE ISSUER '/CN=a' SUBJECT '/CN=b'", Requirement::Particular),
            ("CREATE USER `x REQUIRE NONE `@`%` REQUIRE SSL", Requirement::Tls),
            ("CREATE USER `a``b REQUIRE NONE`@`%` REQUIRE X509", Requirement::Certificate),
            (r"CREATE USER `j`@`%` IDENTIFIED VIA pam USING 'it\'s REQUIRE NONE' REQUIRE SSL", Requirement::Tls),
            ("CREATE USER `REQUIRE SSL`@`%`", Requirement::Nothing),
            (r"CREATE USER `j`@`%` IDENTIFIED VIA pam USING 'x\' REQUIRE SSL", Requirement::Particular),
        ] {
            assert_eq!(requirement(statement), expected, "{statement}");
        }
    }
}
