//! Commands of a byte and a few fields. Each function appends a payload.
//!
//! Source: <https://mariadb.com/kb/en/2-text-protocol/>,
//! <https://mariadb.com/kb/en/3-binary-protocol-prepared-statements/>

/// The id of the statement prepared last on this connection, so that preparing and executing share
/// a round trip.
pub const LAST_PREPARED: u32 = u32::MAX;

/// COM_QUIT: the server closes the connection and sends nothing.
pub fn quit(out: &mut Vec<u8>) {
    out.push(0x01);
}

/// COM_QUERY: one statement as text.
pub fn query(sql: &str, out: &mut Vec<u8>) {
    out.push(0x03);
    out.extend_from_slice(sql.as_bytes());
}

/// COM_PING. The reply is OK.
pub fn ping(out: &mut Vec<u8>) {
    out.push(0x0E);
}

/// COM_STMT_PREPARE. The reply is [`crate::prepare_ok::PrepareOk`] and definitions.
pub fn stmt_prepare(sql: &str, out: &mut Vec<u8>) {
    out.push(0x16);
    out.extend_from_slice(sql.as_bytes());
}

/// COM_STMT_CLOSE. It has no reply.
pub fn stmt_close(statement: u32, out: &mut Vec<u8>) {
    out.push(0x19);
    out.extend_from_slice(&statement.to_le_bytes());
}

/// COM_RESET_CONNECTION: resets transaction, variables and prepared statements. The reply is OK.
pub fn reset_connection(out: &mut Vec<u8>) {
    out.push(0x1F);
}
