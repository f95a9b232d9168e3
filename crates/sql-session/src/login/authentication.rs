//! Forwarding the authentication: the server asks, the client answers.

use super::audited::AuditedClient;
use super::packet::{PACKET_BYTES_MAX, error_packet, number, set_number};
use super::proof::Proof;
use crate::packet_stream::PacketStream;
use crate::reply_tracker::{ReplyKind, ReplyTracker};
use mariadb_wire::auth_switch::AuthSwitch;
use mariadb_wire::err::ErrPacket;
use mariadb_wire::{END, ERR, OK, auth};
use std::io;

/// The first byte of a packet with more data for the current plugin.
const MORE_DATA: u8 = 0x01;

/// In [`MORE_DATA`] of caching_sha2_password: the server needs the password itself.
const SHA2_NEEDS_PASSWORD: u8 = 4;

/// PAM's questions, whose answers are sent as they are.
const DIALOG: &[u8] = b"dialog";

pub const REFUSED: (u16, &str) = (1045, "28000");

/// The server's errors for a wrong name or password: ER_ACCESS_DENIED_ERROR, and
/// ER_ACCESS_DENIED_NO_PASSWORD_ERROR.
const WRONG_PASSWORD: [u16; 2] = [1045, 1698];

/// Client and server during the authentication.
pub struct Parties<'a> {
    pub client: &'a mut PacketStream,
    pub server: &'a mut PacketStream,
    pub audited: &'a mut AuditedClient,
    /// The server is verified: no other machine can read what the gateway sends.
    pub is_verified: bool,
    /// Subtracted from the numbers of the client's packets: the sides may differ in having TLS,
    /// whose request is a packet.
    pub offset: u8,
    /// What the client has sent last, by which the gateway may log in for it elsewhere.
    pub proof: Proof,
}

pub enum Outcome {
    /// The server's OK packet, which has not been forwarded, and the session's status flags.
    Accepted { reply: Vec<u8>, status: Option<u16> },
    /// The client has received the error.
    Refused(Refusal),
}

/// The side that has refused a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The name or the password was wrong, or something else.
    OfServer { is_wrong_password: bool },
    /// The server still waits for an answer.
    OfGateway,
}

impl Parties<'_> {
    /// Forwards packets both ways until the server has decided. `plugin`: the client's.
    pub async fn authenticate(&mut self, plugin: &[u8]) -> io::Result<Outcome> {
        let mut plugin = plugin.to_vec();
        loop {
            tokio::select! {
                reply = self.server.packet(PACKET_BYTES_MAX) => {
                    let mut reply = reply?;
                    let adapted = number(&reply).wrapping_add(self.offset);
                    set_number(&mut reply, adapted);
                    match reply.get(4) {
                        Some(&OK) => {
                            let mut ok = ReplyTracker::new(ReplyKind::Single, true);
                            ok.feed(&reply);
                            return Ok(Outcome::Accepted { reply, status: ok.status });
                        }
                        Some(&ERR) => {
                            let code = error_code(&reply);
                            self.audited.failed(code).await;
                            self.client.send(&reply).await?;
                            return Ok(Outcome::Refused(Refusal::OfServer { is_wrong_password: WRONG_PASSWORD.contains(&code) }));
                        }
                        _ => {}
                    }
                    if let Some(sentence) = self.refusal(&mut plugin, reply.get(4..).unwrap_or_default()) {
                        let (code, state) = REFUSED;
                        self.audited.failed(code).await;
                        self.client.send(&error_packet(adapted, code, state, sentence)).await?;
                        return Ok(Outcome::Refused(Refusal::OfGateway));
                    }
                    self.client.send(&reply).await?;
                }
                packet = self.client.packet(PACKET_BYTES_MAX) => {
                    let mut packet = packet?;
                    let adapted = number(&packet).wrapping_sub(self.offset);
                    set_number(&mut packet, adapted);
                    self.proof.answer(packet.get(4..).unwrap_or_default());
                    self.server.send(&packet).await?;
                }
            }
        }
    }

    /// Returns why the client must not be asked this; `None` if it may. Follows the plugin.
    fn refusal(&mut self, plugin: &mut Vec<u8>, request: &[u8]) -> Option<&'static str> {
        match request {
            [END, ..] => {
                let AuthSwitch { plugin: asked, data } = AuthSwitch::decode(request).ok()?;
                *plugin = asked.to_vec();
                self.proof = Proof::new(asked, data, b"");
                self.audited.switch(asked);
                self.clear_text_refusal(asked)
            }
            [MORE_DATA, SHA2_NEEDS_PASSWORD, ..] if plugin == auth::CACHING_SHA2.as_bytes() => {
                // Each side decides by its own connection whether the password is encrypted.
                match (self.client.stream.is_tls(), self.server.stream.is_tls()) {
                    (true, true) if self.is_verified || self.server.is_local() => None,
                    (false, false) => None,
                    _ => Some(
                        "Access denied: caching_sha2_password needs TLS on both sides of Selkie, and MariaDB's \
                         certificate verified (tls=verify-identity), or on neither",
                    ),
                }
            }
            _ => None,
        }
    }

    /// Returns why a plugin must not be used; `None` if it may. Passwords in clear text are for
    /// connections that no other machine can read.
    pub fn clear_text_refusal(&self, plugin: &[u8]) -> Option<&'static str> {
        if plugin != auth::CLEAR.as_bytes() && plugin != DIALOG {
            return None;
        }
        if !self.client.stream.is_tls() && !self.client.is_local() {
            return Some("Access denied: the account's plugin sends the password in clear text, so connect with TLS");
        }
        if !self.is_verified && !self.server.is_local() {
            return Some(
                "Access denied: the account's plugin sends the password in clear text, so Selkie needs TLS to MariaDB \
                 with its certificate verified (tls=verify-identity)",
            );
        }
        None
    }
}

/// Returns the code of an error packet; 0 if it is cut.
pub fn error_code(packet: &[u8]) -> u16 {
    ErrPacket::decode(packet.get(4..).unwrap_or_default()).map_or(0, |error| error.code)
}
