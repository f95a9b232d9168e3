//! The table of operators, by name.
//!
//! Each operator has one entry, in the file of the values it works on. An entry holds every fact
//! that the parser, the optimizer, the evaluator and the second engine's rules need.

use super::tree::{Operator, SpecialOperator};
use super::{
    accumulate, arithmetic, array, comparison, control, convert, date, iterate, literal, object, ranked, regex, set,
    string, trigonometry, undetermined,
};
use hashbrown::HashMap;
use std::sync::OnceLock;

static OPERATORS: &[&[Operator]] = &[
    arithmetic::OPERATORS,
    trigonometry::OPERATORS,
    comparison::OPERATORS,
    string::OPERATORS,
    array::OPERATORS,
    object::OPERATORS,
    accumulate::OPERATORS,
    set::OPERATORS,
    convert::OPERATORS,
    regex::OPERATORS,
    ranked::OPERATORS,
    undetermined::OPERATORS,
    date::timestamp::OPERATORS,
    date::parts::OPERATORS,
    date::format::OPERATORS,
    date::read::OPERATORS,
    date::calculate::OPERATORS,
];

static SPECIAL: &[&[SpecialOperator]] = &[control::OPERATORS, iterate::OPERATORS, literal::OPERATORS];

type ByName<T> = OnceLock<HashMap<&'static str, &'static T, ahash::RandomState>>;

/// Returns the operator of a name that evaluates its arguments (`$add`).
pub(super) fn find(name: &str) -> Option<&'static Operator> {
    static BY_NAME: ByName<Operator> = OnceLock::new();
    let all = || OPERATORS.iter().copied().flatten().map(|operator| (operator.name, operator));
    BY_NAME.get_or_init(|| all().collect()).get(name).copied()
}

/// Returns the operator of a name that has a node of its own (`$cond`).
pub(super) fn find_special(name: &str) -> Option<&'static SpecialOperator> {
    SPECIAL.iter().copied().flatten().find(|operator| operator.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_one_entry() {
        let operators = OPERATORS.iter().copied().flatten().map(|operator| operator.name);
        let special = SPECIAL.iter().copied().flatten().map(|operator| operator.name);
        let mut names: Vec<_> = operators.chain(special).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(all, names.len());
    }
}
