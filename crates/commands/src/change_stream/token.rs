//! Resume tokens: `{_data: "82…"}`.
//!
//! The text is in hexadecimal and begins as MongoDB's: the time of the entry, so that texts sort in
//! the order of events, a version, whether the token is an event's, the number of the event among
//! those of a transaction, whether it is that of an `invalidate`, and the collection's UUID. Tokens
//! of MongoDB are understood as far.

use document::{Doc, DocWriter, Value};
use error::{Code, Error, Result};
use store::FeedPosition;
use store::change_feed::INCREMENT_MAX;
use values::text;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeToken {
    pub position: FeedPosition,
    pub kind: TokenKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// All events before the position have been read.
    HighWaterMark,
    /// The event at the position has been read.
    Event {
        /// The number of the event among those of a transaction.
        operation: u32,
        collection_uuid: Option<[u8; 16]>,
        /// The event is the `invalidate` behind the one at the position.
        invalidates: bool,
    },
}

const TIMESTAMP: u8 = 0x82;
const VERSION: [u8; 2] = [0x2B, 0x02];
const ZERO: u8 = 0x29;
const EVENT: [u8; 3] = [0x2C, 0x01, 0x00];
/// Before a positive number of one byte. Longer ones follow.
const NUMBER: u8 = 0x2B;
const FALSE: u8 = 0x6E;
const TRUE: u8 = 0x6F;
const UUID: [u8; 3] = [0x5A, 0x10, 0x04];
const END: u8 = 0x04;

impl ResumeToken {
    /// Returns the token of a stream that has read all entries up to `position`.
    pub fn behind(position: FeedPosition) -> ResumeToken {
        let position = FeedPosition { increment: position.increment + 1, ..position };
        ResumeToken { position, kind: TokenKind::HighWaterMark }
    }

    pub fn is_of_invalidate(&self) -> bool {
        matches!(self.kind, TokenKind::Event { invalidates: true, .. })
    }

    /// Returns the position behind which a stream continues.
    pub fn resume_position(&self) -> FeedPosition {
        match self.kind {
            TokenKind::HighWaterMark => self.position.before(),
            TokenKind::Event { .. } => self.position,
        }
    }

    /// Appends the token as a field.
    pub fn append(&self, name: &str, writer: &mut DocWriter<'_>) {
        writer.document(name).append("_data", self.to_text().as_str());
    }

    pub fn to_text(self) -> String {
        let FeedPosition { time, increment } = self.position;
        let mut bytes = vec![TIMESTAMP];
        bytes.extend_from_slice(&time.to_be_bytes());
        bytes.extend_from_slice(&increment.to_be_bytes());
        bytes.extend_from_slice(&VERSION);
        match self.kind {
            TokenKind::HighWaterMark => bytes.extend_from_slice(&[ZERO, ZERO, FALSE]),
            TokenKind::Event { operation, collection_uuid, invalidates } => {
                bytes.extend_from_slice(&EVENT);
                append_number(operation, &mut bytes);
                bytes.push(if invalidates { TRUE } else { FALSE });
                if let Some(uuid) = collection_uuid {
                    bytes.extend_from_slice(&UUID);
                    bytes.extend_from_slice(&uuid);
                }
            }
        }
        bytes.push(END);
        let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value & 15)]);
        bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
    }

    /// Reads a token. Fails with 40647 or 9 if it is none, and with 15 or 50811 if its text is not
    /// that of a token.
    pub fn read(token: Doc<'_>) -> Result<ResumeToken> {
        let Some(Value::String(data)) = token.get("_data") else {
            let message = format!(
                "Bad resume token: _data of missing or of wrong type. Expected string, got {}",
                text::display(Value::Document(token))
            );
            return Err(Error::new(Code(40647), message));
        };
        let bytes =
            from_hex(data).ok_or_else(|| Error::failed_to_parse("resume token string was not a valid hex string"))?;
        parse(&bytes).ok_or_else(|| match bytes.len() {
            ..9 => Error::new(Code::OVERFLOW, "the resume token is too short"),
            _ => Error::new(Code(50811), format!("Invalid resume token: {data}")),
        })
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    text.as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
            _ => None,
        })
        .collect()
}

fn parse(bytes: &[u8]) -> Option<ResumeToken> {
    let rest = bytes.strip_prefix(&[TIMESTAMP])?;
    let (time, rest) = rest.split_first_chunk::<4>()?;
    let (increment, rest) = rest.split_first_chunk::<4>()?;
    let rest = rest.strip_prefix(&VERSION)?;
    // A greater increment is behind all entries of its second.
    let increment = u32::from_be_bytes(*increment).min(INCREMENT_MAX);
    let position = FeedPosition { time: u32::from_be_bytes(*time), increment };
    if rest.first() == Some(&ZERO) {
        return Some(ResumeToken { position, kind: TokenKind::HighWaterMark });
    }
    let (operation, rest) = parse_number(rest.strip_prefix(&EVENT)?)?;
    let (invalidates, rest) = rest.split_first()?;
    let invalidates = match *invalidates {
        FALSE => false,
        TRUE => true,
        _ => return None,
    };
    let uuid = rest.strip_prefix(&UUID).and_then(|rest| rest.first_chunk::<16>());
    Some(ResumeToken { position, kind: TokenKind::Event { operation, collection_uuid: uuid.copied(), invalidates } })
}

/// Appends a number as MongoDB's index keys have it, so that bytes sort as numbers do.
fn append_number(number: u32, out: &mut Vec<u8>) {
    if number == 0 {
        return out.push(ZERO);
    }
    let doubled = (u64::from(number) << 1).to_be_bytes();
    let leading = doubled.iter().take_while(|byte| **byte == 0).count().min(7);
    out.push(NUMBER + (7 - leading) as u8);
    out.extend_from_slice(&doubled[leading..]);
}

fn parse_number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    if *kind == ZERO {
        return Some((0, rest));
    }
    let length = usize::from(kind.checked_sub(NUMBER)?) + 1;
    let (digits, rest) = rest.split_at_checked(length).filter(|_| length <= 5)?;
    let doubled = digits.iter().fold(0, |number: u64, digit| number << 8 | u64::from(*digit));
    Some((u32::try_from(doubled >> 1).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn tokens_survive_being_written() {
        let position = FeedPosition { time: 0x6B0A_B23D, increment: 2 };
        for kind in [
            TokenKind::HighWaterMark,
            TokenKind::Event { operation: 0, collection_uuid: None, invalidates: true },
            TokenKind::Event { operation: 0, collection_uuid: Some([9; 16]), invalidates: false },
            TokenKind::Event { operation: 127, collection_uuid: Some([9; 16]), invalidates: false },
            TokenKind::Event { operation: 128, collection_uuid: Some([9; 16]), invalidates: false },
            TokenKind::Event { operation: u32::MAX, collection_uuid: Some([9; 16]), invalidates: false },
        ] {
            let token = ResumeToken { position, kind };
            let text = token.to_text();
            assert_eq!(ResumeToken::read(doc! { "_data": text.as_str() }.as_doc()), Ok(token));
            assert!(ResumeToken::read(doc! { "_data": &text[..12] }.as_doc()).is_err());
        }
    }

    #[test]
    fn tokens_of_mongodb_are_understood() {
        let text = "826B0AB23D000000022B022C0100296E5A1004EE62B5C4CB604AA0851A7E950013D461461E5F6964002B020004";
        let token = ResumeToken::read(doc! { "_data": text }.as_doc()).unwrap();
        assert_eq!(token.position, FeedPosition { time: 0x6B0A_B23D, increment: 2 });
        assert!(text.starts_with(token.to_text().trim_end_matches("04")));
        let text = "826B0B3735000000092B022C01002B026E5A100480CF7FB9984147F1A7CCC7911D5703DF461E5F6964002B040004";
        let token = ResumeToken::read(doc! { "_data": text }.as_doc()).unwrap();
        assert!(matches!(token.kind, TokenKind::Event { operation: 1, .. }));
        assert!(text.starts_with(token.to_text().trim_end_matches("04")));
        let text = "826B0AB265000000062B0229296E04";
        assert_eq!(ResumeToken::read(doc! { "_data": text }.as_doc()).unwrap().to_text(), text);
    }

    #[test]
    fn bad_tokens_are_refused() {
        for (token, code) in [
            (doc! { "x": 1 }, 40647),
            (doc! { "_data": 1 }, 40647),
            (doc! { "_data": "zz" }, 9),
            (doc! { "_data": "826" }, 9),
            (doc! { "_data": "8263" }, 15),
            (doc! { "_data": "996B0AB265000000062B0229296E04" }, 50811),
        ] {
            assert_eq!(ResumeToken::read(token.as_doc()).unwrap_err().code(), Code(code), "{token:?}");
        }
    }
}
