use super::super::tables::KeyColumn;
use super::*;
use mariadb_wire::binlog::Header;

/// `db.t (a INT, doc LONGTEXT)`.
const MAP: &[u8] = b"\x05\0\0\0\0\0\x01\0\x02db\0\x01t\0\x02\x03\xfc\x01\x04\x02";

/// A row whose document is as long as it says.
fn insert(key: u8, doc: &[u8]) -> Vec<u8> {
    let mut body = b"\x05\0\0\0\0\0\x01\0\x02\x03\0".to_vec();
    body.extend([key, 0, 0, 0]);
    body.extend((doc.len() as u32).to_le_bytes());
    body.extend(doc);
    body
}

fn gtid(flags: u8, sequence: u8) -> Vec<u8> {
    let mut body = vec![sequence, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, flags];
    match flags & 0xC0 {
        0 => body.extend([0; 6]),
        _ => body.extend([1, 0, 0, 0, 1, 0, b'x']),
    }
    body
}

fn query(sql: &str) -> Vec<u8> {
    [b"\0\0\0\0\0\0\0\0\x02\0\0\0\0db\0", sql.as_bytes()].concat()
}

/// Feeds events; tables are collections with a key unless `dependents` says more of them.
fn feed(groups: &mut Groups, events: &[(u8, Vec<u8>)], dependents: &[&str]) -> Vec<Group> {
    let mut found = Vec::new();
    for (number, (kind, body)) in events.iter().enumerate() {
        let header = Header { timestamp: 0, kind: *kind, server: 1, end: number as u32, flags: 0 };
        match groups.feed(&Event { header, body }, false).unwrap() {
            FedEvent::Nothing => {}
            FedEvent::UnknownTable(map) => {
                let key = vec![KeyColumn { index: 0, name: "a".into(), unsigned: false }];
                let facts = TableFacts {
                    name: super::super::changes::TableName::new(&map.database, &map.table),
                    columns: Some(Columns { doc: Some(1), key }),
                    dependents: dependents
                        .iter()
                        .map(|name| super::super::changes::TableName::new("db", name))
                        .collect(),
                    merged: vec![],
                };
                groups.add_table(map, facts);
            }
            FedEvent::Group(group) | FedEvent::Definition(group) => found.push(group),
        }
    }
    found
}

fn shown(group: &Group) -> Vec<String> {
    let show = |change: &Change| match change {
        Change::Row(row) => {
            let image = row.after.as_ref().or(row.before.as_ref()).unwrap();
            format!("{} {:?} {:?}", row.table, image.key.as_ref().unwrap(), image.doc)
        }
        Change::Table(table) => table.to_string(),
        Change::Database(database) => database.to_string(),
        Change::Everything => "*".into(),
    };
    group.transaction.changes.iter().map(show).collect()
}

fn check(events: &[(u8, Vec<u8>)], expected: &[&[&str]]) -> Vec<Group> {
    let found = feed(&mut Groups::new(Checksum::None, 1000), events, &[]);
    assert_eq!(found.iter().map(shown).collect::<Vec<_>>(), expected);
    found
}

const XID: (u8, Vec<u8>) = (kind::XID, Vec::new());

#[test]
fn a_transaction_has_its_rows() {
    let found = check(
        &[
            (kind::ROTATE, b"\x04\0\0\0\0\0\0\0log.1".to_vec()),
            (kind::GTID, gtid(4, 7)),
            (kind::ANNOTATE_ROWS, b"x".to_vec()),
            (kind::TABLE_MAP, MAP.to_vec()),
            (kind::WRITE_ROWS_V1, insert(9, b"{}")),
            XID,
        ],
        &[&[r#"db.t [Signed(9)] Text(b"{}")"#]],
    );
    assert_eq!(found[0].transaction.gtid.unwrap().to_string(), "0-1-7");
    assert_eq!(found[0].offset, LogOffset { file: b"log.1"[..].into(), end: 5 });
    assert!(!found[0].out_of_order && found[0].probe.is_some());
}

#[test]
fn statements_change_what_they_may() {
    check(
        &[
            (kind::GTID, gtid(1, 1)),
            (kind::QUERY, query("DROP TABLE t")),
            (kind::GTID, gtid(0, 2)),
            (kind::QUERY, query("INSERT INTO t VALUES (1)")),
            (kind::QUERY, query("COMMIT")),
            (kind::GTID, gtid(4, 3)),
            (kind::QUERY, query("SAVEPOINT `x`")),
            XID,
        ],
        &[&["db.t"], &["*"], &[]],
    );
}

#[test]
fn rows_that_cannot_be_read_change_their_table() {
    let events = |body: &[u8]| {
        [(kind::GTID, gtid(4, 1)), (kind::TABLE_MAP, MAP.to_vec()), (kind::WRITE_ROWS_V1, body.to_vec()), XID]
    };
    check(&events(b"\x05\0\0\0\0\0\x01\0\x02\x03\0\x01"), &[&["db.t"]]);
    check(&events(b"\x06\0\0\0\0\0\x01\0\x02\x03\0\x01"), &[&["*"]]);
    // The document was left out.
    check(&events(b"\x05\0\0\0\0\0\x01\0\x02\x01\0\x09\0\0\0"), &[&["db.t [Signed(9)] Unknown"]]);
}

#[test]
fn large_transactions_are_handed_on_by_table() {
    let mut events = vec![(kind::GTID, gtid(4, 1)), (kind::TABLE_MAP, MAP.to_vec())];
    events.extend((0..20).map(|key| (kind::WRITE_ROWS_V1, insert(key, &[b' '; 90]))));
    events.push(XID);
    check(&events, &[&["db.t"]]);
}

#[test]
fn xa_transactions_count_when_they_are_completed() {
    let rows = [(kind::TABLE_MAP, MAP.to_vec()), (kind::WRITE_ROWS_V1, insert(9, b"{}"))];
    let mut events = vec![(kind::GTID, gtid(4 | 64, 1))];
    events.extend(rows.clone());
    events.push((kind::XA_PREPARE, vec![0, 1]));
    events.extend([(kind::GTID, gtid(1 | 128, 2)), (kind::QUERY, query("XA COMMIT X'78',X'',1"))]);
    let found = check(&events, &[&[], &["db.t"]]);
    assert!(found[1].out_of_order && found[1].probe.is_some());
    let last = events.len() - 1;
    events[last].1 = query("XA ROLLBACK X'78',X'',1");
    check(&events, &[&[], &[]]);
    check(&events[4..], &[&[]]);
    events[last].1 = query("XA COMMIT X'78',X'',1");
    check(&events[4..], &[&["*"]]);
}

#[test]
fn tables_that_refer_to_deleted_rows_change_too() {
    let events = [
        (kind::GTID, gtid(4, 1)),
        (kind::TABLE_MAP, MAP.to_vec()),
        (kind::DELETE_ROWS_V1, insert(9, b"{}")),
        (kind::WRITE_ROWS_V1, insert(8, b"{}")),
        XID,
    ];
    let found = feed(&mut Groups::new(Checksum::None, 1000), &events, &["child"]);
    let expected = [r#"db.t [Signed(9)] Text(b"{}")"#, "db.child", r#"db.t [Signed(8)] Text(b"{}")"#];
    assert_eq!(shown(&found[0]), expected);
}

#[test]
fn incidents_change_everything() {
    check(&[(kind::INCIDENT, vec![1, 0])], &[&["*"]]);
    check(
        &[(kind::GTID, gtid(4, 1)), (kind::INCIDENT, vec![1, 0]), XID, (99, vec![]), (kind::GTID, gtid(4, 1)), XID],
        &[&["*"], &["*"]],
    );
}
