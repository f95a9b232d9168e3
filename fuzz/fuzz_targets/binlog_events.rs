//! Decodes arbitrary bytes as events of a binary log, and as rows of a table that the same bytes
//! describe.
//!
//! Checks that decompression stays within its limit, and that a row has a field for every column.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mariadb_wire::binlog::packet::Dump;
use mariadb_wire::binlog::query::QueryEvent;
use mariadb_wire::binlog::rows::{Field, RowsEvent};
use mariadb_wire::binlog::table_map::TableMap;
use mariadb_wire::binlog::{Checksum, Event, FormatDescription, Gtid, GtidEvent, Header, compressed, control, gtid};

/// Small, so that the fuzzer reaches it.
const LIMIT: usize = 4096;

fuzz_target!(|bytes: &[u8]| {
    for checksum in [Checksum::None, Checksum::Crc32] {
        let _ = Event::decode(bytes, checksum);
    }
    for semi_sync in [false, true] {
        let _ = Dump::decode(bytes, semi_sync);
    }
    let _ = std::str::from_utf8(bytes).map(Gtid::parse_list);
    let _ = GtidEvent::decode(bytes, 1);
    let _ = gtid::decode_list(bytes);
    let _ = control::Rotate::decode(bytes);
    let _ = control::decode_xid(bytes);
    let _ = control::decode_incident(bytes);
    let _ = compressed::expand(bytes, LIMIT).map(|expanded| assert!(expanded.len() <= LIMIT));
    for is_compressed in [false, true] {
        let _ = QueryEvent::decode(bytes, is_compressed, LIMIT);
    }
    let _ = FormatDescription::decode(bytes);
    rows(bytes);
});

/// Splits the bytes into the type of a row event, the description of a table, and rows.
fn rows(bytes: &[u8]) -> Option<()> {
    let (&kind, rest) = bytes.split_first()?;
    let (&cut, rest) = rest.split_first()?;
    let (table, body) = rest.split_at_checked(usize::from(cut))?;
    let format = FormatDescription::default();
    let table = TableMap::decode(table, &format).ok()?;
    let event = Event { header: Header { timestamp: 0, kind, server: 1, end: 0, flags: 0 }, body };
    let rows = RowsEvent::decode(&event, &format, LIMIT).ok()??;
    for row in rows.rows(&table).ok()? {
        let row = row.ok()?;
        for image in [row.before, row.after].into_iter().flatten() {
            let fields: Vec<_> = image.fields().map(|field| field.expect("measured before")).collect();
            assert_eq!(fields.len(), table.columns.len());
            for (field, column) in fields.into_iter().zip(&table.columns) {
                if let Field::Value(bytes) = field {
                    let _ = (column.value(bytes, true), column.value(bytes, false));
                }
            }
        }
    }
    None
}
