//! The table of commands, and the lookup by name.

use super::spec::{Access, Spec};
use document::{Doc, DocBuf};
use hashbrown::HashMap;
use server::redaction::redact;

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

    /// Returns a command without its secrets, for every place that shows commands; `None` if it has
    /// none. An `explain` may contain a command that has.
    pub fn redacted(&self, spec: &Spec, command: Doc<'_>) -> Option<DocBuf> {
        if spec.name != "explain" {
            return redact(command, spec.sensitive);
        }
        let explained = command.first()?.value().as_document()?;
        let explained = match self.of_body(explained) {
            Some(known) => redact(explained, known.sensitive)?,
            // A misspelled one may contain any secret.
            None => DocBuf::build(|writer| writer.append("command", "xxx")),
        };
        Some(DocBuf::build(|writer| {
            writer.append("explain", &explained);
            command.elements().skip(1).for_each(|element| writer.append_element(element));
        }))
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
