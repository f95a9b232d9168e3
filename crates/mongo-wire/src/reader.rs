//! Reads fields of a message from front to back, and checks every length.

use crate::decode_error::DecodeError;

/// The offset of the next field, and the end of the readable part.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader of `message[at..]`.
    pub fn new(message: &'a [u8], at: usize) -> Self {
        Reader { message, at: at.min(message.len()) }
    }

    /// Returns the offset of the next field in the message.
    pub fn position(&self) -> usize {
        self.at
    }

    pub fn rest(&self) -> &'a [u8] {
        &self.message[self.at..]
    }

    pub fn is_empty(&self) -> bool {
        self.at == self.message.len()
    }

    pub fn take(&mut self, length: usize, part: &'static str) -> Result<&'a [u8], DecodeError> {
        let bytes = self.rest().get(..length).ok_or(DecodeError::Truncated(part))?;
        self.at += length;
        Ok(bytes)
    }

    pub fn byte(&mut self, part: &'static str) -> Result<u8, DecodeError> {
        Ok(self.array::<1>(part)?[0])
    }

    pub fn i32(&mut self, part: &'static str) -> Result<i32, DecodeError> {
        Ok(i32::from_le_bytes(self.array(part)?))
    }

    pub fn u32(&mut self, part: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array(part)?))
    }

    /// Returns the bytes before the next zero byte, which is skipped.
    pub fn cstring(&mut self, part: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.rest().iter().position(|&byte| byte == 0).ok_or(DecodeError::Truncated(part))?;
        let text = self.take(length, part)?;
        self.at += 1;
        Ok(text)
    }

    fn array<const N: usize>(&mut self, part: &'static str) -> Result<[u8; N], DecodeError> {
        let bytes = *self.rest().first_chunk::<N>().ok_or(DecodeError::Truncated(part))?;
        self.at += N;
        Ok(bytes)
    }
}
