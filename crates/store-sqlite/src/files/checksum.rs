//! The checksum at the end of each page.
//!
//! SQLite does not use the last bytes of each page, as the file's header says. They have a CRC-32C
//! of the page's number and of all bytes before, which the processor computes at some 20 GB/s, and
//! a tag that distinguishes a page with a wrong checksum from one that never had any. The number is
//! included to detect a page written to another's place.

/// Bytes at the end of each page.
pub const TRAILER_BYTES: usize = 8;

const TAG: [u8; 4] = *b"SLK1";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trailer {
    Right,
    Wrong,
    /// The page has no checksum.
    Missing,
}

fn sum(number: u32, content: &[u8]) -> [u8; 4] {
    crc32c::crc32c_append(number, content).to_le_bytes()
}

/// Writes the checksum of a page to its end.
pub fn seal(number: u32, page: &mut [u8]) {
    let Some((content, trailer)) = page.split_last_chunk_mut::<TRAILER_BYTES>() else { return };
    trailer[..4].copy_from_slice(&sum(number, content));
    trailer[4..].copy_from_slice(&TAG);
}

/// Returns whether a page's checksum is right.
pub fn trailer(number: u32, page: &[u8]) -> Trailer {
    let Some((content, trailer)) = page.split_last_chunk::<TRAILER_BYTES>() else { return Trailer::Missing };
    match trailer[..4] == sum(number, content) {
        true if trailer[4..] == TAG => Trailer::Right,
        _ if trailer[4..] == TAG => Trailer::Wrong,
        _ => Trailer::Missing,
    }
}

/// Returns whether bytes are the beginning of an SQLite file.
pub fn is_sqlite(bytes: &[u8]) -> bool {
    bytes.starts_with(b"SQLite format 3\0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_found() {
        let mut page: Vec<u8> = (0..512).map(|at| (at * 7 % 251) as u8).collect();
        seal(5, &mut page);
        assert_eq!(trailer(5, &page), Trailer::Right);
        for bit in 0..page.len() * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(trailer(5, &page), Trailer::Right, "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(trailer(6, &page), Trailer::Wrong, "another page's position");
        assert_eq!(trailer(5, &[0; 512]), Trailer::Missing);
        assert_eq!(trailer(5, &[]), Trailer::Missing);
    }
}
