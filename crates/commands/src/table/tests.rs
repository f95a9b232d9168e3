use super::{COMMANDS, reference};

#[test]
fn reads_are_distinguished_from_writes() {
    let read = &document::array![&document::doc! { "$limit": 1 }];
    let out = &document::array![&document::doc! { "$limit": 1 }, &document::doc! { "$out": "x" }];
    let merge = &document::array![&document::doc! { "$merge": "x" }];
    for (command, reads) in [
        (document::doc! { "find": "a" }, true),
        (document::doc! { "aggregate": "a", "pipeline": read }, true),
        (document::doc! { "aggregate": "a", "pipeline": out }, false),
        (document::doc! { "aggregate": "a", "pipeline": merge }, false),
        (document::doc! { "insert": "a" }, false),
        (document::doc! { "nonsense": 1 }, false),
    ] {
        assert_eq!(COMMANDS.only_reads(command.as_doc()), reads, "{command:?}");
    }
}

#[test]
fn names_are_sorted_and_found() {
    for (index, spec) in COMMANDS.specs().iter().enumerate() {
        assert_eq!(COMMANDS.index_of(spec.name.as_bytes()), Some(index), "{}", spec.name);
        let is_found = |alias: &&str| COMMANDS.index_of(alias.as_bytes()) == Some(index);
        assert!(spec.aliases.iter().all(is_found), "{}", spec.name);
        assert!(!spec.help.is_empty());
    }
    assert!(COMMANDS.specs().is_sorted_by_key(|spec| spec.name.to_lowercase()));
    assert_eq!(COMMANDS.index_of(b"Find"), None);
}

/// `UPDATE_REFERENCE=1 cargo test -p commands reference` rewrites the page.
#[test]
fn the_reference_page_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/commands.md");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(path, reference::page()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), reference::page(), "see the test's comment");
}
