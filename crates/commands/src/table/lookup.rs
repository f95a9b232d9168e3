//! The table of commands, and the lookup by name.

use super::spec::{Access, Spec};
use document::Doc;
use hashbrown::HashMap;

/// All commands, in the order of their names.
pub struct CommandTable {
    specs: &'static [Spec],
    by_name: HashMap<&'static [u8], usize, ahash::RandomState>,
}

impl CommandTable {
    pub fn new(specs: &'static [Spec]) -> CommandTable {
        let names = specs.iter().enumerate().flat_map(|(index, spec)| {
            std::iter::once(&spec.name).chain(spec.aliases).map(move |name| (name.as_bytes(), index))
        });
        CommandTable { specs, by_name: names.collect() }
    }

    pub fn specs(&self) -> &'static [Spec] {
        self.specs
    }

    /// Returns the index of a command by its name or an alias.
    #[inline]
    pub fn index_of(&self, name: &[u8]) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    #[inline]
    pub fn get(&self, index: usize) -> Option<&'static Spec> {
        self.specs.get(index)
    }

    /// Returns the facts about a command by its name or an alias.
    pub fn named(&self, name: &[u8]) -> Option<&'static Spec> {
        self.get(self.index_of(name)?)
    }

    /// Returns the facts about the command of a body.
    pub fn of_body(&self, command: Doc<'_>) -> Option<&'static Spec> {
        self.named(command.first()?.key_bytes())
    }

    /// Returns whether a command leaves nothing behind but its reply.
    pub fn only_reads(&self, command: Doc<'_>) -> bool {
        self.of_body(command).is_some_and(|spec| spec.only_reads(command))
    }

    /// Returns whether a command, given by its body, only reads or does not touch documents at all.
    pub fn leaves_nothing(&self, command: Doc<'_>) -> bool {
        self.of_body(command).is_some_and(|spec| spec.access == Access::Nothing || spec.only_reads(command))
    }
}
