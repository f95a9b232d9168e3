//! The format of `log_bin_compress`: a header byte, the original length, and zlib's bytes.

use crate::Malformed;
use std::io::Read;

/// Set in the header byte. Its lower three bits have the number of bytes of the length, those
/// between the algorithm (0 is zlib).
const IS_COMPRESSED: u8 = 0x80;

/// Decompresses an event's body. `limit`: the most bytes to accept.
pub fn expand(bytes: &[u8], limit: usize) -> Result<Vec<u8>, Malformed> {
    let malformed = Malformed("compressed event");
    let (&head, rest) = bytes.split_first().ok_or(malformed)?;
    if head & !7 != IS_COMPRESSED {
        return Err(malformed);
    }
    let (length, packed) = rest.split_at_checked(usize::from(head & 7)).ok_or(malformed)?;
    if length.is_empty() || length.len() > 4 {
        return Err(malformed);
    }
    let length = length.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
    if length > limit {
        return Err(malformed);
    }
    // The buffer grows with the output, not by the announced length.
    let mut expanded = Vec::new();
    let mut unpacker = flate2::read::ZlibDecoder::new(packed).take(length as u64 + 1);
    unpacker.read_to_end(&mut expanded).map_err(|_| malformed)?;
    if expanded.len() == length { Ok(expanded) } else { Err(malformed) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::testing::check_truncations;
    use std::io::Write;

    pub fn pack(bytes: &[u8]) -> Vec<u8> {
        let mut packed = vec![0x82];
        packed.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        let mut packer = flate2::write::ZlibEncoder::new(packed, flate2::Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn compressed_bytes_are_decompressed() {
        let packed = pack(&[7; 1000]);
        assert_eq!(expand(&packed, 1000), Ok(vec![7; 1000]));
        assert!(expand(&packed, 999).is_err());
        check_truncations(&packed, |bytes| assert!(expand(bytes, 1000).is_err()));
        for (at, byte) in [(0, 0x02), (0, 0x92), (0, 0x87), (1, 0), (2, 0)] {
            let mut wrong = packed.clone();
            wrong[at] = byte;
            if wrong != packed {
                assert!(expand(&wrong, 1 << 20).is_err(), "{at}");
            }
        }
    }
}
