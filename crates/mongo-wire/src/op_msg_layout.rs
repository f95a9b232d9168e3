//! The layout of OP_MSG: flags, and the position of the body.

use crate::opcode::HEADER_BYTES;

pub const CHECKSUM_PRESENT: u32 = 1 << 0;
pub const MORE_TO_COME: u32 = 1 << 1;
pub const EXHAUST_ALLOWED: u32 = 1 << 16;
/// The flags and the section kind between header and body, in a message of one body.
pub const BODY_AT: usize = HEADER_BYTES + 4 + 1;
pub const CHECKSUM_BYTES: usize = 4;
