//! The facts about each command, in one table. Dispatch, `listCommands`, the statistics and the reference page come from it.

macro_rules! waiting {
    ($handler:path) => {
        Handler::Waiting(|call, reply| Box::pin($handler(call, reply)))
    };
}

macro_rules! immediate {
    ($handler:path) => {
        Handler::Immediate($handler)
    };
}

mod definitions;
mod documents;
pub mod fields;
mod lookup;
mod operations;
#[cfg(test)]
mod reference;
mod spec;
#[cfg(test)]
mod tests;

pub use lookup::{find, only_reads};
pub use spec::{Access, AtOnce, Handler, Spec, WaitingHandler};

/// The commands, by name.
pub static COMMANDS: &[Spec] = &ALL;

static ALL: [Spec; COUNT] = merged([documents::COMMANDS, definitions::COMMANDS, operations::COMMANDS]);

const COUNT: usize = documents::COMMANDS.len() + definitions::COMMANDS.len() + operations::COMMANDS.len();

/// Tables that are each in order as one that is.
const fn merged<const TABLES: usize>(tables: [&[Spec]; TABLES]) -> [Spec; COUNT] {
    let mut all = [spec::NOTHING; COUNT];
    let mut taken = [0; TABLES];
    let mut at = 0;
    while at < COUNT {
        let mut first = TABLES;
        let mut table = 0;
        while table < TABLES {
            let is_over = taken[table] == tables[table].len();
            if !is_over && (first == TABLES || comes_before(&tables[table][taken[table]], &tables[first][taken[first]]))
            {
                first = table;
            }
            table += 1;
        }
        all[at] = tables[first][taken[first]];
        taken[first] += 1;
        at += 1;
    }
    all
}

/// By name, in which capitals do not matter. What the standard library has for that cannot be asked before the program runs.
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
