//! Aggregation expressions: `{$add: ["$a", 1]}`, parsed once and evaluated per document.
//!
//! Input is an expression as a client sends it; the result is a value that borrows from the
//! document if possible. Constant parts are computed before the first document. An expression that
//! cannot succeed fails then, as in MongoDB ([`crate::context::Folding`] determines when).
//!
//! In reading order: [`Evaluated`] (the result of evaluation), `tree` (nodes and operators),
//! `parse` (from BSON to a tree), `optimize` (constants), `evaluate`, `scope` (variables), `path`
//! (`$a.b`), `control` and `iterate` (forms that evaluate their parts as needed), `table` (all
//! operators) and the files named after the values that operators work on.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/aggregation/>; where it is
//! silent, the behavior of a 6.0 server.

mod accumulate;
mod arguments;
mod arithmetic;
mod array;
mod comparison;
mod control;
mod convert;
pub mod date;
mod evaluate;
mod evaluated;
mod implied;
mod iterate;
mod literal;
mod object;
mod optimize;
mod parse;
mod path;
mod ranked;
mod regex;
mod rewrite;
mod scope;
pub mod second_engine;
mod set;
mod shape;
mod string;
mod table;
mod tree;
mod trigonometry;
mod undetermined;

#[cfg(test)]
mod tests;

use crate::Context;
use crate::metadata::Item;
use document::{Collation, DocWriter, Value, ValueBuf};
use error::{Error, Result};

pub use evaluated::Evaluated;
pub use path::check_field_path;
pub use path::check_name;
pub use ranked::checked_count;
pub use scope::check_binding as check_variable_name;
use scope::{Frame, Scope};
use second_engine::support;
pub(crate) use string::code_points::count as count_code_points;
use tree::{Expr, Foldable, ParseExpr};
pub use undetermined::no_javascript;

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Expression {
    root: Expr,
    collation: Collation,
    /// Whether MongoDB's second engine supports everything in the expression, even parts that have
    /// been folded.
    is_supported_by_second_engine: bool,
}

impl Expression {
    /// Parses an expression in a position that may contain any value: a document without operators
    /// is an object expression.
    pub fn parse(value: Value<'_>, context: &Context) -> Result<Expression> {
        Self::parse_with(value, context, &[])
    }

    /// Like [`Expression::parse`], with variables of these names whose values are passed to each
    /// evaluation ([`Expression::evaluate_with`]).
    pub fn parse_with(value: Value<'_>, context: &Context, variables: &[&str]) -> Result<Expression> {
        let (expression, failure) = Self::parse_apart(value, context, variables)?;
        context.folding.report(failure)?;
        Ok(expression)
    }

    /// Like [`Expression::parse`]. Returns the failure of a constant part as an error beside the
    /// expression, for callers that have more to check first.
    pub fn parse_folding(value: Value<'_>, context: &Context) -> Result<(Expression, Option<Error>)> {
        Self::parse_apart(value, context, &[])
    }

    fn parse_apart(value: Value<'_>, context: &Context, variables: &[&str]) -> Result<(Expression, Option<Error>)> {
        let mut root = parse::Parser::new(context, variables).parse(value)?;
        let (is_supported, single) = (support::is_supported(&root), support::single_conditions(&root));
        let failure = if context.folding.is_enabled() { root.optimize(&context.collation).err() } else { None };
        // Folding converts a remaining operand of `$and` and `$or` to a boolean, for which the
        // engine has no operator.
        let is_supported_by_second_engine = is_supported && support::single_conditions(&root) <= single;
        Ok((Expression { root, collation: context.collation.clone(), is_supported_by_second_engine }, failure))
    }

    fn of(root: Expr) -> Expression {
        Expression { root, collation: Collation::SIMPLE, is_supported_by_second_engine: true }
    }

    /// Returns whether an operator of this name (`$add`) exists.
    pub fn is_operator(name: &str) -> bool {
        parse::is_operator(name)
    }

    /// Returns the expression of a field path such as `a.b`, written without the `$`.
    pub fn field(path: &str) -> Result<Expression> {
        Ok(Expression::of(Expr::Root(path::FieldPath::parse(path)?)))
    }

    /// Returns the expression of a constant.
    pub fn literal(value: Value<'_>) -> Expression {
        Expression::of(Expr::Literal(ValueBuf::from(value)))
    }

    /// Evaluates with `root` as `$$ROOT` and `$$CURRENT`.
    pub fn evaluate<'s>(&'s self, root: impl Into<Item<'s>>) -> Result<Evaluated<'s>> {
        self.root.evaluate(&Scope { root: root.into(), frame: None, collation: &self.collation })
    }

    /// Evaluates with the values of the variables named when parsing, in that order; `None` is a
    /// missing value.
    pub fn evaluate_with<'s>(
        &'s self,
        root: impl Into<Item<'s>>,
        variables: &'s [Option<Value<'s>>],
    ) -> Result<Evaluated<'s>> {
        let frame = Frame { values: variables, outer: None };
        let evaluated =
            self.root.evaluate(&Scope { root: root.into(), frame: Some(&frame), collation: &self.collation })?;
        Ok(evaluated.detached())
    }

    /// Evaluates and appends the value, unless it is missing.
    pub fn evaluate_into<'s>(&'s self, root: impl Into<Item<'s>>, writer: &mut DocWriter<'_>, key: &str) -> Result<()> {
        self.evaluate(root)?.append_to(writer, key);
        Ok(())
    }

    /// Returns the value, if it does not depend on the document.
    pub fn as_literal(&self) -> Option<Value<'_>> {
        match &self.root {
            Expr::Literal(value) => Some(value.as_value()),
            _ => None,
        }
    }

    /// Returns whether the value is independent of the document.
    pub fn is_constant(&self) -> bool {
        self.root.is_constant()
    }

    /// Returns whether evaluation succeeds for every document: the expression only compares and
    /// decides.
    pub fn never_fails(&self) -> bool {
        self.root.never_fails()
    }

    /// Returns the dotted path, if the expression is a plain field of the document.
    pub fn as_field(&self) -> Option<String> {
        match &self.root {
            Expr::Root(path) if !path.is_empty() => Some(path.to_string()),
            _ => None,
        }
    }

    /// Returns the dotted paths that the expression reads; `None` if it reads the whole document or
    /// varies between evaluations.
    pub fn paths(&self) -> Option<Vec<String>> {
        let (mut paths, mut known) = (Vec::new(), true);
        self.root.each(&mut |part| match part {
            Expr::Root(path) if path.is_empty() => known = false,
            Expr::Root(path) => paths.push(path.to_string()),
            Expr::Metadata(_) => known = false,
            Expr::Call(operator, _) if !operator.deterministic => known = false,
            _ => {}
        });
        known.then_some(paths)
    }

    /// Returns whether it is evaluated for each document, even with constant arguments.
    pub fn is_never_folded(&self) -> bool {
        matches!(&self.root, Expr::Call(operator, _) if operator.foldable == Foldable::None)
    }

    /// Returns whether its value depends on the document.
    pub fn reads_document(&self) -> bool {
        let mut reads = false;
        self.root.each(&mut |part| reads |= matches!(part, Expr::Root(_) | Expr::Metadata(_)));
        reads
    }

    /// Returns whether MongoDB's second engine supports everything in the expression.
    pub fn is_supported_by_second_engine(&self) -> bool {
        self.is_supported_by_second_engine
    }

    /// Evaluates by the rules of the second engine from now on.
    pub fn use_second_engine(&mut self) {
        support::apply_rules(&mut self.root);
    }

    /// Returns whether it is `$$ROOT`, the whole document.
    pub fn is_root(&self) -> bool {
        matches!(&self.root, Expr::Root(path) if path.is_empty())
    }
}

/// Applies an operator such as `$add` to values.
pub fn apply(operator: &str, values: &[Value<'_>]) -> Result<ValueBuf> {
    let Some(operator) = table::find(operator) else { return Ok(Value::Null.to_owned()) };
    let mut arguments: Vec<Evaluated<'_>> = values.iter().map(|value| Evaluated::Value(*value)).collect();
    let result = operator.apply(&mut arguments, &Collation::SIMPLE)?;
    Ok(result.into_owned().unwrap_or_else(|| Value::Null.to_owned()))
}
