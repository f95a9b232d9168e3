//! Reads fields of a packet's payload, and checks every length.
//!
//! Source: <https://mariadb.com/kb/en/protocol-data-types/>

use std::fmt;

/// A payload is too short, or malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed {} packet", self.0)
    }
}

impl std::error::Error for Malformed {}

/// Takes fields off the front of a payload. `packet` names the packet in errors.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    packet: &'static str,
}

impl<'a> Reader<'a> {
    pub fn new(payload: &'a [u8], packet: &'static str) -> Self {
        Reader { rest: payload, packet }
    }

    pub fn malformed(&self) -> Malformed {
        Malformed(self.packet)
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the next `length` bytes.
    #[inline]
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed(self.packet))?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed(self.packet))?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u24(&mut self) -> Result<u32, Malformed> {
        self.array::<3>().map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// Returns a length-encoded integer. Fails for the byte that stands for NULL.
    #[inline]
    pub fn length_encoded(&mut self) -> Result<u64, Malformed> {
        match self.u8()? {
            0xFC => self.u16().map(u64::from),
            0xFD => self.u24().map(u64::from),
            0xFE => self.u64(),
            0xFB | 0xFF => Err(Malformed(self.packet)),
            small => Ok(u64::from(small)),
        }
    }

    /// Returns the bytes after their length-encoded length.
    #[inline]
    pub fn length_encoded_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.length_encoded()?;
        self.bytes(usize::try_from(length).map_err(|_| Malformed(self.packet))?)
    }

    /// As [`Reader::length_encoded_bytes`], or `None` for the NULL of text rows.
    pub fn length_encoded_nullable(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        if self.rest.first() == Some(&0xFB) {
            self.rest = &self.rest[1..];
            return Ok(None);
        }
        self.length_encoded_bytes().map(Some)
    }

    /// Returns the bytes before a zero, which is consumed too.
    pub fn null_terminated(&mut self) -> Result<&'a [u8], Malformed> {
        let length = memchr::memchr(0, self.rest).ok_or(Malformed(self.packet))?;
        let taken = self.bytes(length)?;
        self.u8()?;
        Ok(taken)
    }

    /// Returns all remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}

/// Appends a length-encoded integer.
#[inline]
pub fn write_length(number: u64, out: &mut Vec<u8>) {
    match number {
        0..=0xFA => out.push(number as u8),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&(number as u16).to_le_bytes());
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&(number as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// Appends bytes after their length-encoded length.
#[inline]
pub fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_length(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_decoded_as_encoded() {
        for number in [0, 1, 0xFA, 0xFB, 0xFF, 0x100, 0xFFFF, 0x1_0000, 0xFF_FFFF, 0x100_0000, u64::MAX] {
            let mut bytes = Vec::new();
            write_length(number, &mut bytes);
            let mut reader = Reader::new(&bytes, "test");
            assert_eq!(reader.length_encoded(), Ok(number));
            assert!(reader.is_empty());
            for length in 0..bytes.len() {
                assert!(Reader::new(&bytes[..length], "test").length_encoded().is_err());
            }
        }
    }

    #[test]
    fn lengths_beyond_the_payload_are_refused() {
        assert!(Reader::new(&[0xFE, 255, 255, 255, 255, 255, 255, 255, 255, 1], "t").length_encoded_bytes().is_err());
        assert!(Reader::new(&[5, 1, 2], "t").length_encoded_bytes().is_err());
        assert!(Reader::new(&[0xFB], "t").length_encoded_bytes().is_err());
        assert_eq!(Reader::new(&[0xFB], "t").length_encoded_nullable(), Ok(None));
        assert!(Reader::new(b"no zero", "t").null_terminated().is_err());
    }
}
