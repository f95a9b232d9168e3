//! Opcodes from before OP_MSG that are not served: OP_INSERT, OP_UPDATE, OP_DELETE, OP_GET_MORE,
//! OP_KILL_CURSORS.
//!
//! Those that have a reply get an error in it. For the others the connection is closed, as a
//! MongoDB 6.0 server does.
//!
//! Source: <https://www.mongodb.com/docs/manual/legacy-opcodes/>

use crate::header::Header;
use crate::reply::{ReplyFormat, ReplyTo};
use crate::{Compressor, DecodeError, Message, OpCode, Refused};
use error::{Code, Error};

const NO_LONGER_SUPPORTED: Code = Code(5739101);

pub(crate) fn decode(header: Header, compressor: Option<Compressor>) -> Result<Message, DecodeError> {
    match header.opcode {
        OpCode::GET_MORE => Ok(refused(&header, compressor)),
        OpCode::INSERT | OpCode::UPDATE | OpCode::DELETE | OpCode::KILL_CURSORS => {
            Err(DecodeError::RemovedOpcode(header.opcode))
        }
        OpCode(other) => Err(DecodeError::UnknownOpcode(other)),
    }
}

/// Returns the reply to a query or getMore that is not a command.
pub(crate) fn refused(header: &Header, compressor: Option<Compressor>) -> Message {
    let message = format!("{} is no longer supported. The client driver may require an upgrade.", header.opcode);
    Message::Refused(Refused {
        reply_to: ReplyTo { request_id: header.request_id, format: ReplyFormat::QueryFailure, compressor },
        silent: false,
        error: Error::new(NO_LONGER_SUPPORTED, message),
    })
}
