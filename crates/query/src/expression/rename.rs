//! Renaming of the fields that an expression reads.

use super::path::FieldPath;
use super::{Expr, Expression, Form, functions};

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
    pub(crate) fn read_again(mut self) -> Expression {
        self.root.each_mut(&mut |part| {
            if let Expr::Call(function, _) = part
                && let Some(plain) = functions::find(function.name)
            {
                *function = plain;
            }
        });
        self
    }
}

impl Expr {
    /// Passes the expression and all its parts to `change`; descends into the changed expression.
    pub(super) fn each_mut(&mut self, change: &mut dyn FnMut(&mut Expr)) {
        steps::step();
        change(self);
        self.each_part_mut(change);
    }

    fn each_part_mut(&mut self, change: &mut dyn FnMut(&mut Expr)) {
        match self {
            Expr::Missing | Expr::Literal(_) | Expr::Root(_) | Expr::Variable(..) | Expr::Metadata(_) => {}
            Expr::Document(fields) => fields.iter_mut().for_each(|(_, value)| value.each_mut(change)),
            Expr::Array(all) | Expr::Call(_, all) => all.iter_mut().for_each(|part| part.each_mut(change)),
            Expr::Form(form) => form.parts_mut().into_iter().for_each(|part| part.each_mut(change)),
            Expr::InSecondEngine(plain, _) => plain.each_part_mut(change),
        }
    }
}

impl Form {
    fn parts_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Form::And(all) | Form::Or(all) | Form::IfNull(all) => all.iter_mut().collect(),
            Form::Condition { test, then, otherwise } => vec![test, then, otherwise],
            Form::Switch { branches, default } => {
                branches.iter_mut().flat_map(|(case, then)| [case, then]).chain(default).collect()
            }
            Form::Let { values, body } => values.iter_mut().chain([body]).collect(),
            Form::Map { input, body } => vec![input, body],
            Form::Filter { input, condition, limit } => [input, condition].into_iter().chain(limit).collect(),
            Form::Reduce { input, initial, body } => vec![input, initial, body],
        }
    }
}
