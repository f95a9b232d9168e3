//! A column with keys, as statements name it.

use mariadb_client::quote;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct KeyColumn {
    /// The name in statements: see [`KeyColumn::named`].
    pub name: Arc<str>,
    pub descends: bool,
}

impl KeyColumn {
    pub fn named(column: &str, descends: bool) -> KeyColumn {
        KeyColumn { name: format!("k.{}", quote(column)).into(), descends }
    }
}
