//! Decodes arbitrary bytes as packets of a MariaDB server: framing, and every kind of packet.
//!
//! Checks that the same bytes in two pieces decode to the same packets.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mariadb_wire::auth_switch::AuthSwitch;
use mariadb_wire::column_definition::ColumnDefinition;
use mariadb_wire::err::ErrPacket;
use mariadb_wire::handshake::Handshake;
use mariadb_wire::ok::OkPacket;
use mariadb_wire::packet::PacketReader;
use mariadb_wire::prepare_ok::PrepareOk;
use mariadb_wire::result_set::{Head, Next};
use mariadb_wire::row::{BinaryRow, TextRow};
use mariadb_wire::{Capabilities, ColumnType};

/// Small, so that the fuzzer reaches it.
const LIMIT: usize = 4096;

fuzz_target!(|bytes: &[u8]| {
    let Some((&cut, stream)) = bytes.split_first() else { return };
    let whole = packets(&[stream]);
    let (front, back) = stream.split_at(stream.len() * usize::from(cut) / 256);
    assert_eq!(whole, packets(&[front, back]));
    for packet in whole.iter().chain([&stream.to_vec()]) {
        decode(packet);
    }
});

/// Returns the payloads of a stream that arrives in `pieces`, up to the first that is too large.
fn packets(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut reader = PacketReader::new(LIMIT);
    let mut payloads = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let space = reader.space();
            let count = space.len().min(rest.len());
            space[..count].copy_from_slice(&rest[..count]);
            reader.filled(count);
            rest = &rest[count..];
            loop {
                match reader.next_packet() {
                    Ok(Some(range)) => payloads.push(reader.payload(range).to_vec()),
                    Ok(None) => break,
                    Err(_) => return payloads,
                }
            }
        }
    }
    payloads
}

/// Decodes `payload` as each kind of packet. The kind depends on the client's request, and a server
/// may send another one.
fn decode(payload: &[u8]) {
    let _ = Handshake::decode(payload).map(|handshake| handshake.mariadb_version());
    let _ = AuthSwitch::decode(payload);
    let _ = OkPacket::decode(payload);
    let _ = ErrPacket::decode(payload);
    let _ = PrepareOk::decode(payload);
    let _ = ColumnDefinition::decode(payload);
    let _ = Next::decode(payload);
    for capabilities in [Capabilities(0), Capabilities::CACHE_METADATA] {
        let _ = Head::decode(payload, capabilities);
    }
    let mut row = TextRow::new(payload);
    while let Ok(Some(_)) = row.next_bytes() {}
    let types: Vec<ColumnType> = payload.iter().take(16).map(|&byte| ColumnType(byte)).collect();
    if let Ok(mut row) = BinaryRow::new(payload, &types) {
        for _ in &types {
            if row.clone().next_u64().is_err() | row.next_bytes().is_err() {
                break;
            }
        }
    }
}
