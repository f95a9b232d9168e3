//! COM_QUERY packets of the gateway's own.

use super::com;
use crate::reply_tracker::PACKET_MAX;

/// Encodes a COM_QUERY packet. The statement must fit into one packet.
pub fn query_packet(sql: &str) -> Vec<u8> {
    debug_assert!(sql.len() < PACKET_MAX);
    let mut packet = (sql.len() as u32 + 1).to_le_bytes()[..3].to_vec();
    packet.extend_from_slice(&[0, com::QUERY]);
    packet.extend_from_slice(sql.as_bytes());
    packet
}
