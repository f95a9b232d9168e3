//! The table of facts about each command. Dispatch, `listCommands`, the statistics and the
//! reference page are made from it.
//!
//! The entries are beside the commands: each folder under `command/` has a table of its own, in its
//! module file.

pub mod fields;
pub mod lookup;
#[cfg(test)]
mod reference;
pub mod spec;
#[cfg(test)]
mod tests;

use crate::command::{admin, aggregate, catalog, crud, indexes, refused, sessions, sharding, users};
use lookup::CommandTable;
use spec::Spec;
use std::sync::LazyLock;

/// The tables of all folders, each sorted by name.
const TABLES: [&[Spec]; 9] = [
    crud::COMMANDS,
    aggregate::COMMANDS,
    catalog::COMMANDS,
    indexes::COMMANDS,
    sessions::COMMANDS,
    users::COMMANDS,
    admin::COMMANDS,
    sharding::COMMANDS,
    refused::COMMANDS,
];

/// The commands, sorted by name.
static ALL: [Spec; COUNT] = merged();

/// The number of commands.
pub const COUNT: usize = {
    let (mut count, mut table) = (0, 0);
    while table < TABLES.len() {
        count += TABLES[table].len();
        table += 1;
    }
    count
};

/// The table of all commands.
pub static COMMANDS: LazyLock<CommandTable> = LazyLock::new(|| CommandTable::new(&ALL));

/// Merges the sorted tables.
const fn merged() -> [Spec; COUNT] {
    let mut all = [spec::NOTHING; COUNT];
    let mut taken = [0; TABLES.len()];
    let mut at = 0;
    while at < COUNT {
        let mut first = TABLES.len();
        let mut table = 0;
        while table < TABLES.len() {
            let is_over = taken[table] == TABLES[table].len();
            if !is_over
                && (first == TABLES.len() || comes_before(&TABLES[table][taken[table]], &TABLES[first][taken[first]]))
            {
                first = table;
            }
            table += 1;
        }
        all[at] = TABLES[first][taken[first]];
        taken[first] += 1;
        at += 1;
    }
    all
}

/// Compares by name, ignoring case. The functions of the standard library for that are not `const`.
const fn comes_before(one: &Spec, other: &Spec) -> bool {
    let (one, other) = (one.name.as_bytes(), other.name.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() {
        let (left, right) = (one[at].to_ascii_lowercase(), other[at].to_ascii_lowercase());
        if left != right {
            return left < right;
        }
        at += 1;
    }
    one.len() < other.len()
}
