//! The checksum algorithms of events.

use crate::Malformed;

/// An algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    #[default]
    None,
    Crc32,
}

impl Checksum {
    /// Parses `@@binlog_checksum`.
    pub fn parse(name: &str) -> Option<Checksum> {
        match name {
            "NONE" => Some(Checksum::None),
            "CRC32" => Some(Checksum::Crc32),
            _ => None,
        }
    }

    /// Returns the value for `@master_binlog_checksum`.
    pub fn name(self) -> &'static str {
        match self {
            Checksum::None => "NONE",
            Checksum::Crc32 => "CRC32",
        }
    }

    /// Parses the algorithm of a format description, which has a byte for it and room for its own
    /// checksum.
    pub(super) fn of_format_description(body: &[u8]) -> Result<Checksum, Malformed> {
        match body.len().checked_sub(5).and_then(|at| body.get(at)) {
            Some(0) => Ok(Checksum::None),
            Some(1) => Ok(Checksum::Crc32),
            _ => Err(Malformed("FORMAT_DESCRIPTION")),
        }
    }
}
