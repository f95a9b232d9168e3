//! Statements that a session has prepared by name, with PREPARE.

use super::resolved_effects::ResolvedEffects;
use ahash::AHashMap;
use std::rc::Rc;

/// More statements than these are not remembered.
const STATEMENTS_MAX: usize = 100;

/// The statements that a session has prepared by name, as far as their effects are known.
#[derive(Debug, Default)]
pub struct TextPrepared {
    by_name: AHashMap<String, Rc<TextStatement>>,
}

/// A statement prepared by name.
#[derive(Debug)]
pub struct TextStatement {
    pub effects: ResolvedEffects,
    /// It may be acknowledged before its rows are visible.
    pub is_delayed: bool,
}

impl TextPrepared {
    /// Returns what executing a statement does.
    pub fn execution(&self, name: &str) -> Rc<TextStatement> {
        let unknown = || Rc::new(TextStatement { effects: ResolvedEffects::unknown(), is_delayed: false });
        self.by_name.get(name).cloned().unwrap_or_else(unknown)
    }

    pub fn has_room(&self) -> bool {
        self.by_name.len() < STATEMENTS_MAX
    }

    pub fn insert(&mut self, name: &str, statement: TextStatement) {
        self.by_name.insert(name.to_owned(), Rc::new(statement));
    }

    pub fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    pub fn clear(&mut self) {
        self.by_name.clear();
    }
}
