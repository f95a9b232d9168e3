//! FORMAT_DESCRIPTION, the first event of each file: the layout of the others.
//!
//! Source: <https://mariadb.com/kb/en/format_description_event/>

use super::checksum::Checksum;
use super::event::{HEADER_BYTES, kind};
use crate::{Malformed, Reader};

/// The layout of the events that follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormatDescription {
    pub checksum: Checksum,
    /// The lengths of the fixed parts, by type minus one.
    fixed: Vec<u8>,
}

impl FormatDescription {
    /// The layout before the first description.
    pub fn assumed(checksum: Checksum) -> Self {
        FormatDescription { checksum, fixed: Vec::new() }
    }

    /// Parses a description. `body` includes the room for the checksum.
    pub fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, "FORMAT_DESCRIPTION");
        if reader.u16()? != 4 {
            return Err(reader.malformed());
        }
        // The server's version and the time it started.
        reader.bytes(50 + 4)?;
        if usize::from(reader.u8()?) != HEADER_BYTES {
            return Err(reader.malformed());
        }
        let checksum = Checksum::of_format_description(body)?;
        let rest = reader.rest();
        let fixed = rest.get(..rest.len().saturating_sub(5)).unwrap_or_default().to_vec();
        Ok(FormatDescription { checksum, fixed })
    }

    /// Returns the bytes of a table's number in events of a type: four in old files, else six.
    pub(super) fn table_id_bytes(&self, event: u8) -> usize {
        match self.fixed.get(usize::from(event).saturating_sub(1)) {
            Some(6) => 4,
            _ => 6,
        }
    }

    /// Returns whether row events of a type have extra data.
    pub(super) fn has_extra(event: u8) -> bool {
        matches!(
            event,
            kind::WRITE_ROWS
                | kind::UPDATE_ROWS
                | kind::DELETE_ROWS
                | kind::WRITE_ROWS_COMPRESSED
                | kind::UPDATE_ROWS_COMPRESSED
                | kind::DELETE_ROWS_COMPRESSED
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    #[test]
    fn checksums_and_lengths_are_read() {
        let mut sample = vec![4, 0];
        sample.extend_from_slice(&[0; 54]);
        sample.push(19);
        sample.extend_from_slice(&[8; 18]);
        sample.push(6);
        sample.extend_from_slice(&[1, 0, 0, 0, 0]);
        let format = FormatDescription::decode(&sample).unwrap();
        assert_eq!(format.checksum, Checksum::Crc32);
        assert_eq!((format.table_id_bytes(19), format.table_id_bytes(23)), (4, 6));
        check_truncations(&sample, |bytes| FormatDescription::decode(bytes).is_ok());
        sample[0] = 3;
        assert!(FormatDescription::decode(&sample).is_err());
    }
}
