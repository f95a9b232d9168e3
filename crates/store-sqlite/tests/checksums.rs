//! Files without checksums get them, and lose nothing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use bytes::Bytes;
use document::doc;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::rc::Rc;
use store::{DocumentStore, Namespace, Statements, WriteBatch};
use store_sqlite::{Options, add_checksums, open, verify};

const DOCUMENTS: i32 = 500;

fn namespace() -> Namespace {
    Namespace::new("test", "things")
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn insert(store: &Rc<dyn DocumentStore>, ids: std::ops::Range<i32>) {
    // Some of several pages.
    let text = |id: i32| "x".repeat(if id % 5 == 0 { 9000 } else { 100 });
    let document = |id: i32| Bytes::from(doc! { "_id": id, "text": text(id).as_str() }.into_vec());
    let batch = WriteBatch::new(namespace(), Statements::Insert(ids.map(document).collect()));
    assert!(wait(store.write(batch)).unwrap().statements.iter().all(Result::is_ok));
}

fn check(directory: &Path, options: Options, documents: i32) {
    let engine = open(directory, options).unwrap();
    let store = engine.clone().open().unwrap();
    assert_eq!(wait(store.collection_stats(&namespace())).unwrap().unwrap().documents, documents as u64);
    assert_eq!(wait(store.validate(&namespace())).unwrap().findings, Vec::<String>::new());
    insert(&store, documents..documents + 100);
    drop(store);
    engine.close();
}

/// Returns the reserved bytes at each page's end.
fn reserved(path: &Path) -> u8 {
    std::fs::read(path).unwrap()[20]
}

/// Creates a data directory of an earlier version.
fn made_earlier() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), Options::default()).unwrap();
    let store = engine.clone().open().unwrap();
    insert(&store, 0..DOCUMENTS);
    drop(store);
    engine.close();
    let (path, old) = (directory.path().join("selkie.sqlite"), directory.path().join("old"));
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI;
    let file = Connection::open_with_flags(&path, flags).unwrap();
    file.execute("VACUUM INTO ?1", [format!("file:{}?reserve=0", old.display())]).unwrap();
    drop(file);
    Connection::open(&old).unwrap().pragma_update(None, "user_version", 2).unwrap();
    std::fs::rename(&old, &path).unwrap();
    std::fs::remove_file(directory.path().join("selkie.wal-mark")).unwrap();
    assert_eq!(reserved(&path), 0);
    directory
}

fn whole(directory: &Path) -> bool {
    let report = verify(directory, &mut |finding| panic!("{finding}")).unwrap();
    report.checked
}

#[test]
fn small_files_gain_checksums_at_the_start() {
    let directory = made_earlier();
    assert!(!whole(directory.path()));
    check(directory.path(), Options::default(), DOCUMENTS);
    assert_eq!(reserved(&directory.path().join("selkie.sqlite")), 8);
    assert!(whole(directory.path()));
    check(directory.path(), Options::default(), DOCUMENTS + 100);
    assert!(whole(directory.path()));
}

#[test]
fn large_files_go_on_without_and_gain_them_when_told() {
    let directory = made_earlier();
    let options = Options { add_checksums_up_to: 0, ..Options::default() };
    check(directory.path(), options.clone(), DOCUMENTS);
    check(directory.path(), options.clone(), DOCUMENTS + 100);
    assert_eq!(reserved(&directory.path().join("selkie.sqlite")), 0);
    assert!(!whole(directory.path()));
    add_checksums(directory.path()).unwrap();
    assert!(whole(directory.path()));
    check(directory.path(), options, DOCUMENTS + 200);
    assert!(whole(directory.path()));
}
