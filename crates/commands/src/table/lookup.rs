//! Finding a command in the table, and what follows from its facts.

use super::{Access, COMMANDS};
use document::Doc;
use hashbrown::HashMap;
use std::sync::LazyLock;

static BY_NAME: LazyLock<HashMap<&'static [u8], usize, ahash::RandomState>> = LazyLock::new(|| {
    COMMANDS
        .iter()
        .enumerate()
        .flat_map(|(index, spec)| {
            std::iter::once(&spec.name).chain(spec.aliases).map(move |name| (name.as_bytes(), index))
        })
        .collect()
});

/// The command's place in [`COMMANDS`].
pub fn find(name: &[u8]) -> Option<usize> {
    BY_NAME.get(name).copied()
}

/// Whether a command leaves nothing behind but its reply.
pub fn only_reads(command: Doc<'_>) -> bool {
    let spec = command.first().and_then(|first| COMMANDS.get(find(first.key_bytes())?));
    let last_stage = || command.get("pipeline")?.as_array()?.values().last()?.as_document()?.first();
    let stores = || last_stage().is_some_and(|stage| matches!(stage.key_bytes(), b"$out" | b"$merge"));
    spec.is_some_and(|spec| spec.access == Access::Read) && !stores()
}
