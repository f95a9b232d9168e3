//! The checks, a module per part of the contract.

mod catalog;
mod models;
mod push;
pub mod race;
mod reading;
mod superset;
mod transactions;
mod writing;

use crate::suite::Check;

/// Returns the checks of one session.
pub fn all() -> impl Iterator<Item = Check> {
    let groups = [
        reading::checks(),
        writing::checks(),
        catalog::checks(),
        models::checks(),
        push::checks(),
        superset::checks(),
        transactions::checks(),
    ];
    groups.into_iter().flatten()
}
