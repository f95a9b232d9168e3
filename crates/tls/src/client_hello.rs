//! Recognizes TLS by the first bytes of a connection, so that one port serves both.

/// The bytes by which [`is_tls`] decides in any case.
pub const BYTES: usize = 11;

/// Returns whether a connection that begins with these bytes speaks TLS, or `None` if more bytes
/// are needed.
///
/// TLS begins with a record of type 22 and version 3.x that contains a ClientHello: type 1, and the
/// version 3.x again. A message of MongoDB's protocol may begin with the first two of these bytes,
/// since they are a part of its length. But its bytes 8 to 11 are zero in requests (`responseTo`),
/// where TLS has the version.
pub fn is_tls(bytes: &[u8]) -> Option<bool> {
    const EXPECTED: [(usize, u8); 4] = [(0, 0x16), (1, 3), (5, 1), (9, 3)];
    for (at, expected) in EXPECTED {
        match bytes.get(at) {
            None => return None,
            Some(byte) if *byte != expected => return Some(false),
            Some(_) => {}
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_and_messages_are_told_apart() {
        let hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 99];
        assert_eq!(is_tls(&hello), Some(true));
        for length in 0..=9 {
            assert_eq!(is_tls(&hello[..length]), None, "{length}");
        }
        assert_eq!(is_tls(&hello[..BYTES]), Some(true));
        // A message of 790 bytes, with a request number whose second byte is 1.
        assert_eq!(is_tls(&[0x16, 3, 0, 0, 7, 1, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0]), Some(false));
        assert_eq!(is_tls(&[0x16, 3, 0, 0, 7, 2]), Some(false));
        assert_eq!(is_tls(&[0x16, 4]), Some(false));
        assert_eq!(is_tls(b"GET / HTTP"), Some(false));
        assert_eq!(is_tls(&[]), None);
    }
}
