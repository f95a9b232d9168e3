use super::*;
use crate::binlog::column::Value;
use crate::binlog::compressed::tests::pack;
use crate::binlog::event::Header;
use crate::testing::check_truncations;

/// `db.t (a INT, b LONGTEXT, c VARCHAR(10))`, with names, signs and a primary key on `a`.
const MAP: &[u8] = b"\x05\0\0\0\0\0\x01\0\x02db\0\x01t\0\x03\x03\xfc\x0f\x03\x04\x0a\0\x06\
    \x01\x01\x80\x04\x06\x01a\x01b\x01c\x08\x01\0";

fn event(kind: u8, body: &[u8]) -> Event<'_> {
    Event { header: Header { timestamp: 0, kind, server: 1, end: 0, flags: 0 }, body }
}

fn map() -> TableMap {
    TableMap::decode(MAP, &FormatDescription::default()).unwrap()
}

fn decode<'a>(event: &Event<'a>) -> Result<RowsEvent<'a>, Malformed> {
    Ok(RowsEvent::decode(event, &FormatDescription::default(), 1 << 20)?.unwrap())
}

/// Parses everything in an event.
fn read(kind: u8, body: &[u8]) -> Result<usize, Malformed> {
    let (map, event) = (map(), event(kind, body));
    let rows = decode(&event)?;
    let mut count = 0;
    for row in rows.rows(&map)? {
        let row = row?;
        for image in [row.before, row.after].into_iter().flatten() {
            count += image.fields().count();
        }
    }
    Ok(count)
}

#[test]
fn tables_are_described() {
    let map = map();
    assert_eq!((map.id, map.database.as_str(), map.table.as_str()), (5, "db", "t"));
    assert_eq!(map.names, Some(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]));
    assert_eq!((map.unsigned, map.primary_key), (Some(vec![true, false, false]), vec![0]));
    check_truncations(MAP, |bytes| TableMap::decode(bytes, &FormatDescription::default()).is_ok());
}

#[test]
fn both_images_of_an_update_are_read() {
    let body = b"\x05\0\0\0\0\0\x01\0\x03\x07\x02\x04\x09\0\0\0\x01\0\0\0x\0\x01\0\0\0y";
    let (map, event) = (map(), event(kind::UPDATE_ROWS_V1, body));
    let rows = decode(&event).unwrap();
    let row = rows.rows(&map).unwrap().next().unwrap().unwrap();
    let before: Vec<_> = row.before.unwrap().fields().map(Result::unwrap).collect();
    assert_eq!(before, [Field::Value(&[9, 0, 0, 0]), Field::Value(b"x"), Field::Null]);
    let after: Vec<_> = row.after.unwrap().fields().map(Result::unwrap).collect();
    assert_eq!(after, [Field::Absent, Field::Value(b"y"), Field::Absent]);
    assert_eq!(map.columns[0].value(&[9, 0, 0, 0], true), Value::Unsigned(9));
    check_truncations(body, |bytes| read(kind::UPDATE_ROWS_V1, bytes).is_ok());
}

#[test]
fn several_rows_and_the_second_version_are_read() {
    let body = b"\x05\0\0\0\0\0\x01\0\x04\0ab\x03\x05\0\x01\0\0\0\x01c\x02\x02\0\0\0";
    assert_eq!(read(kind::WRITE_ROWS, body), Ok(6));
    assert_eq!(read(kind::DELETE_ROWS, body), Ok(6));
    check_truncations(body, |bytes| read(kind::WRITE_ROWS, bytes).is_ok());
    assert!(read(kind::WRITE_ROWS, b"\x05\0\0\0\0\0\x01\0\x01\0\x03\x05").is_err());
}

#[test]
fn compressed_rows_are_read() {
    let mut body = b"\x05\0\0\0\0\0\x01\0\x03\x05".to_vec();
    body.extend(pack(b"\0\x01\0\0\0\x01c\x02\x02\0\0\0"));
    assert_eq!(read(kind::WRITE_ROWS_COMPRESSED_V1, &body), Ok(6));
    check_truncations(&body[..body.len() - 1], |bytes| assert_ne!(read(kind::WRITE_ROWS_COMPRESSED_V1, bytes), Ok(6)));
}

#[test]
fn rows_of_another_table_or_without_end_are_refused() {
    assert!(read(kind::WRITE_ROWS_V1, b"\x06\0\0\0\0\0\x01\0\x03\x05\0\x01\0\0\0\x01c").is_err());
    assert!(read(kind::WRITE_ROWS_V1, b"\x05\0\0\0\0\0\x01\0\x04\x05\0\x01\0\0\0\x01c").is_err());
    assert!(read(kind::WRITE_ROWS_V1, b"\x05\0\0\0\0\0\x01\0\xfe\xff\xff\xff\xff\xff\xff\xff\xff").is_err());
    // No column is present, so rows have no bytes.
    assert_eq!(read(kind::WRITE_ROWS_V1, b"\x05\0\0\0\0\0\x01\0\x03\0\0\0\0"), Ok(3));
    assert_eq!(read(kind::WRITE_ROWS_V1, b"\x05\0\0\0\0\0\x01\0\x03\0"), Ok(3));
}
