//! The chain of lines: each contains the hash of the line before it, and its own.
//!
//! A sealed line ends with `"seq":N,"prev":"…","hash":"…"}`. These are its position, counted from 1
//! over all files, the hash of the line before (zeros for the first one), and the hash of this line
//! up to the field `hash`. Without a key the hash is SHA-256. With a key it is HMAC-SHA-256: it
//! cannot be computed without the key.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::Write;
use std::sync::Arc;

pub type Hash = [u8; 32];

/// The secret with which hashes are computed.
#[derive(Clone)]
pub struct Key(Arc<[u8]>);

impl Key {
    /// The shortest key: a shorter one could be guessed.
    pub const BYTES_MIN: usize = 16;

    /// Returns `None` for a key that is too short.
    pub fn new(bytes: &[u8]) -> Option<Key> {
        (bytes.len() >= Key::BYTES_MIN).then(|| Key(bytes.into()))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// Returns the hash of a line's text.
pub fn hash(key: Option<&Key>, text: &[u8]) -> Hash {
    match key.and_then(|key| Hmac::<Sha256>::new_from_slice(&key.0).ok()) {
        Some(mut mac) => {
            mac.update(text);
            mac.finalize().into_bytes().into()
        }
        None => Sha256::digest(text).into(),
    }
}

/// The end of a chain: the last line's number and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub seq: u64,
    pub hash: Hash,
}

impl Head {
    /// The head of a chain without lines.
    pub const EMPTY: Head = Head { seq: 0, hash: [0; 32] };

    /// Completes a line that [`crate::line::write_open`] has begun, from `start` on, and becomes
    /// its head.
    pub fn seal(&mut self, key: Option<&Key>, start: usize, out: &mut Vec<u8>) {
        let seq = self.seq + 1;
        // Writing to a vector cannot fail.
        let _ = write!(out, ",\"seq\":{seq},\"prev\":\"{}\"", Hex(&self.hash));
        let hash = hash(key, out.get(start..).unwrap_or_default());
        let _ = writeln!(out, ",\"hash\":\"{}\"}}", Hex(&hash));
        *self = Head { seq, hash };
    }

    /// Returns the content of the file that remembers the head.
    pub fn to_file(self, key: Option<&Key>) -> String {
        let text = format!("{{\"seq\":{},\"hash\":\"{}\"", self.seq, Hex(&self.hash));
        let seal = hash(key, text.as_bytes());
        format!("{text},\"seal\":\"{}\"}}\n", Hex(&seal))
    }

    /// Parses the content of that file. Returns `None` if it is damaged, or was written with
    /// another key.
    pub fn from_file(key: Option<&Key>, content: &[u8]) -> Option<Head> {
        let content = content.strip_suffix(b"\n")?;
        let (text, seal) = split_hash(content, b",\"seal\":\"", b"\"}")?;
        let (rest, head) = split_hash(text, b",\"hash\":\"", b"\"")?;
        let seq = std::str::from_utf8(rest.strip_prefix(b"{\"seq\":")?).ok()?.parse().ok()?;
        (hash(key, text) == seal).then_some(Head { seq, hash: head })
    }
}

/// A sealed line, parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed<'l> {
    pub seq: u64,
    pub prev: Hash,
    pub hash: Hash,
    /// What the hash is computed of.
    pub text: &'l [u8],
}

impl<'l> Sealed<'l> {
    /// Parses a line without its line feed. Returns `None` if it does not end as sealed lines do.
    pub fn parse(line: &'l [u8]) -> Option<Sealed<'l>> {
        let (text, hash) = split_hash(line, b",\"hash\":\"", b"\"}")?;
        let (rest, prev) = split_hash(text, b",\"prev\":\"", b"\"")?;
        let digits = rest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (rest, seq) = rest.split_at(rest.len() - digits);
        rest.strip_suffix(b",\"seq\":")?.strip_prefix(b"{\"atype\":\"")?;
        Some(Sealed { seq: std::str::from_utf8(seq).ok()?.parse().ok()?, prev, hash, text })
    }

    /// Returns whether the line is as it was sealed.
    pub fn is_intact(&self, key: Option<&Key>) -> bool {
        hash(key, self.text) == self.hash
    }

    pub fn head(&self) -> Head {
        Head { seq: self.seq, hash: self.hash }
    }
}

/// Splits `before`, `name`, 64 hexadecimal digits and `end`.
fn split_hash<'l>(line: &'l [u8], name: &[u8], end: &[u8]) -> Option<(&'l [u8], Hash)> {
    let line = line.strip_suffix(end)?;
    let (before, digits) = line.split_at_checked(line.len().checked_sub(64)?)?;
    Some((before.strip_suffix(name)?, parse_hash(digits)?))
}

/// Parses 64 hexadecimal digits in lower case.
pub fn parse_hash(digits: &[u8]) -> Option<Hash> {
    let mut hash = [0; 32];
    if digits.len() != 2 * hash.len() {
        return None;
    }
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair.first()?)? << 4 | digit(pair.get(1)?)?;
    }
    Some(hash)
}

/// Bytes in hexadecimal.
pub struct Hex<'b>(pub &'b [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_lines_are_parsed() {
        for key in [None, Key::new(b"0123456789abcdef")] {
            let (mut head, mut out) = (Head::EMPTY, b"earlier".to_vec());
            out.extend_from_slice(b"{\"atype\":\"startup\",\"result\":0");
            head.seal(key.as_ref(), 7, &mut out);
            let line = out[7..].strip_suffix(b"\n").unwrap();
            let sealed = Sealed::parse(line).unwrap();
            assert_eq!((sealed.seq, sealed.prev, sealed.head()), (1, [0; 32], head));
            assert!(sealed.is_intact(key.as_ref()) && !sealed.is_intact(Key::new(b"another key of 16").as_ref()));
            assert_eq!(Head::from_file(key.as_ref(), head.to_file(key.as_ref()).as_bytes()), Some(head));
            assert_eq!(Head::from_file(key.as_ref(), b"{\"seq\":1}"), None);
        }
    }

    #[test]
    fn the_hmac_is_that_of_the_standard() {
        // RFC 4231, test case 1.
        let key = Key::new(&[0x0b; 20]).unwrap();
        let expected = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
        assert_eq!(Hex(&hash(Some(&key), b"Hi There")).to_string(), expected);
        assert!(Key::new(b"short").is_none());
    }
}
