//! Opcodes, and the lengths of a header and of a message.

use std::fmt;

pub const HEADER_BYTES: usize = 16;

/// The largest message, header included (`maxMessageSizeBytes`).
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;

// One document of the largest size must fit into one message, with room for the command around it.
const _: () = assert!(MESSAGE_BYTES_MAX > 2 * document::DOCUMENT_BYTES_MAX_INTERNAL);

/// A message's opcode. Other numbers than those named here may occur.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OpCode(pub i32);

impl OpCode {
    pub const REPLY: OpCode = OpCode(1);
    pub const UPDATE: OpCode = OpCode(2001);
    pub const INSERT: OpCode = OpCode(2002);
    pub const QUERY: OpCode = OpCode(2004);
    pub const GET_MORE: OpCode = OpCode(2005);
    pub const DELETE: OpCode = OpCode(2006);
    pub const KILL_CURSORS: OpCode = OpCode(2007);
    pub const COMPRESSED: OpCode = OpCode(2012);
    pub const MSG: OpCode = OpCode(2013);
}

impl fmt::Display for OpCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            OpCode::REPLY => f.write_str("OP_REPLY"),
            OpCode::UPDATE => f.write_str("OP_UPDATE"),
            OpCode::INSERT => f.write_str("OP_INSERT"),
            OpCode::QUERY => f.write_str("OP_QUERY"),
            OpCode::GET_MORE => f.write_str("OP_GET_MORE"),
            OpCode::DELETE => f.write_str("OP_DELETE"),
            OpCode::KILL_CURSORS => f.write_str("OP_KILL_CURSORS"),
            OpCode::COMPRESSED => f.write_str("OP_COMPRESSED"),
            OpCode::MSG => f.write_str("OP_MSG"),
            OpCode(other) => write!(f, "opcode {other}"),
        }
    }
}

impl fmt::Debug for OpCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
