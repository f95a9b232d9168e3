//! The MariaDB store keeps the contract of all stores.

#![allow(clippy::unwrap_used)]

mod support;

use store::testing::{contract, races};
use support::{decode, server};

#[test]
fn one_session() {
    if let Some(server) = server() {
        contract(server.engine(), decode);
    }
}

#[test]
fn many_sessions() {
    if let Some(server) = server() {
        races(server.engine(), decode);
    }
}
