//! The server's first packet, as the client gets it.

use super::packet::{ALLOWED, ALLOWED_EXTENDED, COMPRESS, LONG_PASSWORD, TLS, mask};

/// Facts of the server's greeting.
#[derive(Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The connection id on the server.
    pub session: u64,
    pub offers_tls: bool,
    /// The server's version, as 101106 for 10.11.6; 0 if it is not known.
    pub server_version: u32,
}

impl Greeting {
    /// Returns the connection id in the packet; `None` if it is an error.
    pub fn connection_id(packet: &[u8]) -> Option<u64> {
        Greeting::adapt(&mut packet.to_vec(), false, None).map(|greeting| greeting.session)
    }

    /// Clears capabilities in the packet, and offers compression, and TLS if the gateway does.
    /// Returns `None` if the packet is an error. `id`: the connection id that the client gets, if
    /// not the server's.
    pub fn adapt(packet: &mut [u8], offers_tls: bool, id: Option<u64>) -> Option<Greeting> {
        let payload = packet.get_mut(4..)?;
        if *payload.first()? != 10 {
            return None;
        }
        let server_version = payload.get(1..).map_or(0, server_version);
        let version_end = payload.iter().position(|&byte| byte == 0)?;
        // The connection id, half of the scramble, a zero; then the capabilities.
        let at = version_end + 1 + 4 + 8 + 1;
        let id_place = payload.get_mut(version_end + 1..)?.first_chunk_mut()?;
        let session = u32::from_le_bytes(*id_place);
        if let Some(id) = id.and_then(|id| u32::try_from(id).ok()) {
            *id_place = id.to_le_bytes();
        }
        let [low, high] = [at, at + 5].map(|at| Some(u16::from_le_bytes([*payload.get(at)?, *payload.get(at + 1)?])));
        let offered = u32::from(low?) | u32::from(high?) << 16;
        let [a, b, c, d] = (offered & ALLOWED | COMPRESS | if offers_tls { TLS } else { 0 }).to_le_bytes();
        payload.get_mut(at..at + 2)?.copy_from_slice(&[a, b]);
        payload.get_mut(at + 5..at + 7)?.copy_from_slice(&[c, d]);
        if offered & LONG_PASSWORD == 0 {
            mask(payload.get_mut(at + 14..at + 18)?, ALLOWED_EXTENDED);
        }
        Some(Greeting { session: u64::from(session), offers_tls: offered & TLS != 0, server_version })
    }
}

/// Reads the version at the beginning of a greeting. MariaDB writes 5.5.5- before it, for replicas
/// of earlier versions.
fn server_version(text: &[u8]) -> u32 {
    let text = text.strip_prefix(b"5.5.5-").unwrap_or(text);
    let mut numbers = text.split(|byte| !byte.is_ascii_digit()).map(|digits| {
        std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u32>().ok()).filter(|&number| number < 100)
    });
    let mut next = || numbers.next().flatten();
    match (next(), next(), next()) {
        (Some(major), Some(minor), Some(patch)) => (major * 100 + minor) * 100 + patch,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mariadb_wire::handshake::Handshake;

    /// From a MariaDB 10.11.19 server with TLS.
    const SAMPLE: &[u8] =
        b"\0\0\0\0\x0a5.5.5-10.11.19-MariaDB\x00\x21\x00\x00\x00abcdefgh\x00\xfe\xff\x2d\x02\x00\xff\x81\
        \x15\x00\x00\x00\x00\x00\x00\x1d\x00\x00\x00ijklmnopqrst\x00mysql_native_password\x00";

    #[test]
    fn tls_is_offered_as_the_gateway_has_it() {
        for offers_tls in [false, true] {
            let mut packet = SAMPLE.to_vec();
            let greeting = Greeting { session: 0x21, offers_tls: true, server_version: 101_119 };
            assert_eq!(Greeting::adapt(&mut packet, offers_tls, None), Some(greeting));
            let seen = Handshake::decode(&packet[4..]).unwrap();
            assert_eq!(seen.capabilities.low() & TLS != 0, offers_tls);
            assert_eq!(&seen.scramble, b"abcdefghijklmnopqrst");
        }
        let mut packet = SAMPLE.to_vec();
        assert_eq!(Greeting::adapt(&mut packet, false, Some(1 << 30)).unwrap().session, 0x21);
        assert_eq!(Handshake::decode(&packet[4..]).unwrap().connection_id, 1 << 30);
        assert_eq!(server_version(b"11.4.2-MariaDB-log\0"), 110_402);
        assert_eq!(server_version(b"x\0"), 0);
        let mut error = [&[0; 4][..], b"\xff\x10\x04Too many connections"].concat();
        assert_eq!(Greeting::adapt(&mut error, true, None), None);
        for length in 0..SAMPLE.len() {
            let _ = Greeting::adapt(&mut SAMPLE[..length].to_vec(), true, Some(7));
        }
    }
}
