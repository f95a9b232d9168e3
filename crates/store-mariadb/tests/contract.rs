//! The MariaDB store keeps the contract of all stores.

#![allow(clippy::unwrap_used)]

mod support;

use store_testing::{contract, races};
use support::{decode, server};

#[test]
fn one_session_and_then_many() {
    if let Some(server) = server() {
        contract(server.engine(), decode);
        races(server.engine(), decode);
    }
}
