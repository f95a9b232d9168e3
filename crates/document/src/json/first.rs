//! Reading only as much of a text as is needed to find some fields.

use super::read::{Reader, check_text};
use super::{JsonError, Reason};

/// The limit of names, each of which has a bit.
const NAMES_MAX: usize = 64;

/// Appends a document of the first field of each of the names that `position_of` knows, `count` of
/// them, and reads no further than the last one.
///
/// `position_of` numbers the names from zero. Skipped fields are not checked, nor is the rest of
/// the text. On failure `out` is unchanged.
pub fn json_first_fields_to_bson(
    text: &[u8],
    out: &mut Vec<u8>,
    count: usize,
    position_of: &dyn Fn(&[u8]) -> Option<usize>,
) -> Result<(), JsonError> {
    let start = out.len();
    let mut reader = Reader::new(text, 0, out);
    let result = reader.first_fields(count, position_of).and_then(|()| {
        let end = reader.at;
        check_text(text.get(..end).unwrap_or(text))
    });
    if result.is_err() {
        out.truncate(start);
    }
    result
}

impl Reader<'_> {
    fn first_fields(&mut self, count: usize, position_of: &dyn Fn(&[u8]) -> Option<usize>) -> Result<(), JsonError> {
        if self.token() != Some(b'{') {
            return Err(self.error(Reason::NotAnObject));
        }
        self.at += 1;
        let (mut found, mut left) = (0_u64, if count > NAMES_MAX { usize::MAX } else { count });
        self.fields(1, |name| match position_of(name) {
            Some(number) if number >= NAMES_MAX => Keep::Yes,
            Some(number) if found >> number & 1 == 0 => {
                found |= 1 << number;
                left -= 1;
                if left == 0 { Keep::AsTheLast } else { Keep::Yes }
            }
            _ => Keep::No,
        })
    }
}

/// Whether to read a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Yes,
    No,
    /// Read it; the fields behind it do not matter.
    AsTheLast,
}
