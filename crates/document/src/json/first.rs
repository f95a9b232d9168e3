//! Reading no more of a text than it takes to find some fields.

use super::read::{Reader, check_text};
use super::{JsonError, Reason};

/// Names that are told apart by a bit each.
const NAMES_MAX: usize = 64;

/// Appends a document of the first field of each of the names that `place` knows, `count` of them, and goes no further than to the last one.
///
/// `place` numbers the names from zero on. What is passed over on the way is not checked, nor is what comes behind. On failure `out` is left
/// as it was.
pub fn json_first_fields_to_bson(
    text: &[u8],
    out: &mut Vec<u8>,
    count: usize,
    place: &dyn Fn(&[u8]) -> Option<usize>,
) -> Result<(), JsonError> {
    let start = out.len();
    let mut reader = Reader::new(text, 0, out);
    let result = reader.first_fields(count, place).and_then(|()| {
        let end = reader.at;
        check_text(text.get(..end).unwrap_or(text))
    });
    if result.is_err() {
        out.truncate(start);
    }
    result
}

impl Reader<'_> {
    fn first_fields(&mut self, count: usize, place: &dyn Fn(&[u8]) -> Option<usize>) -> Result<(), JsonError> {
        if self.token() != Some(b'{') {
            return Err(self.error(Reason::NotAnObject));
        }
        self.at += 1;
        let (mut found, mut left) = (0_u64, if count > NAMES_MAX { usize::MAX } else { count });
        self.fields(1, |name| match place(name) {
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

/// What is to become of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Yes,
    No,
    /// And what is behind it does not matter.
    AsTheLast,
}
