//! Finding the special bytes of a string, eight bytes at a time.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Sets the high bit in the lowest byte of `word` that is zero; higher bytes may be set wrongly.
#[inline(always)]
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

#[inline(always)]
fn equal_bytes(word: u64, byte: u8) -> u64 {
    zero_bytes(word ^ (ONES * byte as u64))
}

/// Returns the number of bytes before the next quote or backslash; all of them if there is neither.
#[inline]
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    let start = bytes.get(..SHORT).unwrap_or(bytes);
    let length =
        scan(start, |word| equal_bytes(word, b'"') | equal_bytes(word, b'\\'), |byte| byte == b'"' || byte == b'\\');
    if length < SHORT {
        return length;
    }
    let rest = bytes.get(SHORT..).unwrap_or_default();
    SHORT + memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len())
}

/// Most strings end before this; for longer ones a vectorised search is faster.
const SHORT: usize = 32;

/// Returns the number of bytes that can be copied into a JSON string unchanged: those before the
/// next quote, backslash or control character.
#[inline]
pub(super) fn unescaped_length(bytes: &[u8]) -> usize {
    scan(
        bytes,
        |word| equal_bytes(word, b'"') | equal_bytes(word, b'\\') | (word.wrapping_sub(ONES * 0x20) & !word & HIGHS),
        |byte| byte == b'"' || byte == b'\\' || byte < 0x20,
    )
}

/// `in_word` marks, with the high bit, the lowest matching byte of a little-endian word; `is_match`
/// decides for one byte.
#[inline(always)]
fn scan(bytes: &[u8], in_word: impl Fn(u64) -> u64, is_match: impl Fn(u8) -> bool) -> usize {
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let marks = in_word(u64::from_le_bytes(*chunk));
        if marks != 0 {
            return at + marks.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    // Checks the last bytes together with bytes before them, in which there is no match.
    if let Some(chunk) = bytes.last_chunk::<8>() {
        let marks = in_word(u64::from_le_bytes(*chunk));
        let unmatched = if marks == 0 { 8 } else { marks.trailing_zeros() as usize / 8 };
        return bytes.len() - 8 + unmatched;
    }
    bytes.iter().position(|&byte| is_match(byte)).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place() {
        for byte in 0..=u8::MAX {
            for at in 0..60 {
                for around in [b'a', 0x80, 0xFF, 0x21, 0x23, 0x20] {
                    let mut bytes = [around; 60];
                    bytes[at] = byte;
                    let quoted = byte == b'"' || byte == b'\\';
                    assert_eq!(plain_length(&bytes), if quoted { at } else { 60 }, "{byte:#x}");
                    let escaped = quoted || byte < 0x20;
                    assert_eq!(unescaped_length(&bytes), if escaped { at } else { 60 }, "{byte:#x} in {around:#x}");
                }
            }
        }
    }
}
