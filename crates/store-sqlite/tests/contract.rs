//! The embedded store fulfills the contract of all stores.

#![allow(clippy::unwrap_used)]

use store_sqlite::{Options, open};
use store_testing::{as_bson, contract, races};

#[test]
fn one_session() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), Options::default()).unwrap();
    contract(engine, as_bson);
}

#[test]
fn many_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), Options::default()).unwrap();
    races(engine, as_bson);
}
