//! Proofs of the account's password, by the plugins that the server asks for.

use crate::failure::{Failure, Result};
use crate::server_url::{Address, ServerUrl};
use error::{Code, Error};
use mariadb_wire::auth;

/// The first byte of a packet with more data for the current plugin.
pub const MORE_DATA: u8 = 0x01;

/// In [`MORE_DATA`] of caching_sha2_password: the server knew the proof.
const SHA2_ACCEPTED: u8 = 3;
/// The server needs the password itself.
const SHA2_NEEDS_PASSWORD: u8 = 4;

/// The dialogue of one plugin.
pub struct Proof<'a> {
    plugin: String,
    target: &'a ServerUrl,
    /// The server is verified: no other machine can read the password.
    is_verified: bool,
}

impl<'a> Proof<'a> {
    pub fn new(plugin: &str, target: &'a ServerUrl, is_verified: bool) -> Proof<'a> {
        Proof { plugin: plugin.to_owned(), target, is_verified }
    }

    /// Returns the answer to the plugin's scramble. Fails with 18 if the plugin is not supported
    /// here.
    pub fn first(&self, scramble: &[u8]) -> Result<Vec<u8>> {
        let password = self.target.password.as_bytes();
        let (twenty, all) = (scramble.get(..20).unwrap_or(scramble), scramble.get(..32).unwrap_or(scramble));
        match self.plugin.as_str() {
            auth::NATIVE => Ok(auth::native_password(password, twenty)),
            auth::ED25519 => Ok(auth::ed25519(password, all).to_vec()),
            auth::CACHING_SHA2 => Ok(auth::caching_sha2(password, twenty)),
            auth::CLEAR => self.password(),
            auth::UNIX_SOCKET | "unix_socket" if matches!(self.target.address, Address::Socket(_)) => Ok(Vec::new()),
            auth::UNIX_SOCKET | "unix_socket" => Err(self.refuse("which works over a Unix socket only")),
            auth::OLD => Err(self.refuse("which is not secure and not supported: set its password again")),
            "dialog" => Err(self.refuse("which is not supported: set pam_use_cleartext_plugin=ON on MariaDB")),
            _ => Err(self.refuse("which is not supported: give it a password by mysql_native_password or ed25519")),
        }
    }

    /// Returns the answer to further data of the plugin; `None` if it expects none.
    pub fn next(&self, data: &[u8]) -> Result<Option<Vec<u8>>> {
        match (self.plugin.as_str(), data) {
            (auth::CACHING_SHA2, [SHA2_ACCEPTED, ..]) => Ok(None),
            (auth::CACHING_SHA2, [SHA2_NEEDS_PASSWORD, ..]) => self.password().map(Some),
            _ => Err(Failure::Lost(format!("MariaDB asks by '{}' for what is not known", self.plugin))),
        }
    }

    /// Returns the password in clear text, if only the server can read it.
    fn password(&self) -> Result<Vec<u8>> {
        if !self.is_verified {
            return Err(self.refuse(
                "which sends the password itself: write tls=verify-identity and tls-ca in the URL, so that only \
                 MariaDB can read it",
            ));
        }
        let mut password = self.target.password.clone().into_bytes();
        password.push(0);
        Ok(password)
    }

    fn refuse(&self, why: &str) -> Failure {
        let message =
            format!("MariaDB wants user '{}' to log in by the plugin '{}', {why}", self.target.user, self.plugin);
        Failure::Other(Error::new(Code::AUTHENTICATION_FAILED, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(target: &ServerUrl, plugin: &str, is_verified: bool) -> String {
        let outcome = Proof::new(plugin, target, is_verified).first(b"01234567890123456789\0");
        outcome.map_or_else(|failure| failure.to_string(), |proof| format!("{} bytes", proof.len()))
    }

    #[test]
    fn the_password_itself_is_for_the_server_alone() {
        let target = ServerUrl::parse("mysql://joe:s3cret@h").unwrap();
        for (plugin, part) in [
            (auth::CLEAR, "verify-identity"),
            (auth::OLD, "not secure"),
            (auth::UNIX_SOCKET, "Unix socket"),
            ("dialog", "pam_use_cleartext_plugin"),
            ("auth_gssapi_client", "mysql_native_password"),
            (auth::NATIVE, "20 bytes"),
            (auth::ED25519, "64 bytes"),
            (auth::CACHING_SHA2, "32 bytes"),
        ] {
            let message = refusal(&target, plugin, false);
            assert!(message.contains(part) && !message.contains("s3cret"), "{plugin}: {message}");
        }
        assert_eq!(refusal(&target, auth::CLEAR, true), "7 bytes");
        let sha2 = |is_verified| Proof::new(auth::CACHING_SHA2, &target, is_verified).next(&[SHA2_NEEDS_PASSWORD]);
        assert_eq!(sha2(true).unwrap().as_deref(), Some(&b"s3cret\0"[..]));
        assert!(sha2(false).unwrap_err().to_string().contains("tls-ca"));
        let accepted = Proof::new(auth::CACHING_SHA2, &target, false).next(&[SHA2_ACCEPTED]);
        assert!(accepted.unwrap().is_none());
        assert!(Proof::new(auth::NATIVE, &target, true).next(b"\x04").is_err());
    }
}
