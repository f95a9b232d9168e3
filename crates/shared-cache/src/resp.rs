//! Redis's protocol (RESP 2), as far as it is used here: commands are lists of strings, replies are
//! one line or one string.

use bytes::Bytes;

/// The longest string: a message of a MongoDB client, with room for the entry's header.
const TEXT_BYTES_MAX: usize = 64 << 20;

#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// A simple string such as `OK`, or an integer.
    Line(String),
    Error(String),
    Text(Bytes),
    /// Null: there is no such key.
    Nothing,
}

pub fn encode(parts: &[&[u8]], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", parts.len()).as_bytes());
    for part in parts {
        out.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
}

/// Decodes the reply at the beginning of a buffer. Returns it with its length, or `None` if it is
/// incomplete.
pub fn decode(bytes: &[u8]) -> Result<Option<(Reply, usize)>, String> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
        return if bytes.len() > 64 << 10 {
            Err("the server does not speak Redis's protocol".to_owned())
        } else {
            Ok(None)
        };
    };
    let (line, behind) = (&bytes[..end], end + 2);
    let Some((kind, line)) = line.split_first() else { return Err("an empty reply".to_owned()) };
    let text = || String::from_utf8_lossy(line).into_owned();
    match kind {
        b'+' | b':' => Ok(Some((Reply::Line(text()), behind))),
        b'-' => Ok(Some((Reply::Error(text()), behind))),
        b'$' => match text().parse::<i64>() {
            Ok(-1) => Ok(Some((Reply::Nothing, behind))),
            Ok(length) if (0..=TEXT_BYTES_MAX as i64).contains(&length) => {
                let length = length as usize;
                let Some(found) = bytes.get(behind..behind + length + 2) else { return Ok(None) };
                Ok(Some((Reply::Text(Bytes::copy_from_slice(&found[..length])), behind + length + 2)))
            }
            _ => Err(format!("a reply of the length {:?}", text())),
        },
        _ => Err("the server does not speak Redis's protocol".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_replies() {
        let mut out = Vec::new();
        encode(&[b"GET", b"k\r\n"], &mut out);
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$3\r\nk\r\n\r\n");
        let whole = |bytes: &[u8]| {
            for length in 0..bytes.len() {
                assert_eq!(decode(&bytes[..length]), Ok(None), "{length}");
            }
            let (reply, length) = decode(bytes).unwrap().unwrap();
            assert_eq!(length, bytes.len());
            reply
        };
        assert_eq!(whole(b"+OK\r\n"), Reply::Line("OK".into()));
        assert_eq!(whole(b"-NOAUTH no\r\n"), Reply::Error("NOAUTH no".into()));
        assert_eq!(whole(b"$-1\r\n"), Reply::Nothing);
        assert_eq!(whole(b"$4\r\na\r\nb\r\n"), Reply::Text(Bytes::from_static(b"a\r\nb")));
        assert_eq!(decode(b"+OK\r\n+PONG\r\n"), Ok(Some((Reply::Line("OK".into()), 5))));
        for bad in [&b"\r\n"[..], b"HTTP/1.1 400\r\n", b"$x\r\n", b"$99999999999\r\n", b"*1\r\n"] {
            assert!(decode(bad).is_err());
        }
    }
}
