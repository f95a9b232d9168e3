//! Renaming of the fields that an expression reads.

use super::path::FieldPath;
use super::tree::Expr;
use super::{Expression, table};

impl Expression {
    /// Returns the expression for documents whose fields have other names: `rename` returns a
    /// path's new name.
    pub(crate) fn renamed(&self, rename: &dyn Fn(&str) -> String) -> Expression {
        let mut renamed = self.clone();
        renamed.root.each_mut(&mut |part| {
            if let Expr::Root(path) = part
                && !path.is_empty()
                && let Ok(other) = FieldPath::parse(&rename(&path.to_string()))
            {
                *path = other;
            }
        });
        renamed
    }

    /// Returns the expression in the form that the server has after serializing and parsing it
    /// again, as it does with `$expr`.
    pub(crate) fn into_reparsed(mut self) -> Expression {
        self.root.each_mut(&mut |part| {
            if let Expr::Call(operator, _) = part
                && let Some(plain) = table::find(operator.name)
            {
                *operator = plain;
            }
        });
        self
    }
}
