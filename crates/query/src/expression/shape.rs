//! The part of a query's shape that comes from its expressions: comparisons with constants, which
//! an index could execute.
//!
//! MongoDB adds them as conditions beside an `$expr`, and identifies filters by them; it ignores
//! the rest of the expression.

use super::Expression;
use super::tree::{Expr, SpecialForm};
use document::{Kind, Value};

impl Expression {
    /// Returns the comparisons as a text; empty if there are none.
    pub(crate) fn shape(&self) -> String {
        of(&self.root).unwrap_or_default()
    }

    /// Returns the path and the value of `{$eq: ["$path", value]}`, if only values with the same
    /// key equal it, in every collation.
    pub fn equality(&self) -> Option<(String, Value<'_>)> {
        let (path, value) = self.root.equality().filter(|_| self.collation.is_simple())?;
        Some((path, value.as_value()))
    }
}

fn of(part: &Expr) -> Option<String> {
    steps::step();
    match part {
        Expr::Call(operator, arguments) => of_comparison(operator.name, arguments),
        Expr::Form(form) => match &**form {
            SpecialForm::And(all) => listed("and", all.iter().filter_map(of).collect()),
            SpecialForm::Or(any) => listed("or", any.iter().map(of).collect::<Option<_>>()?),
            _ => None,
        },
        _ => None,
    }
}

fn listed(kind: &str, mut parts: Vec<String>) -> Option<String> {
    if parts.len() < 2 {
        return parts.pop();
    }
    parts.sort_unstable_by(|a, b| {
        steps::step();
        a.cmp(b)
    });
    Some(format!("{kind}[{}]", parts.join(",")))
}

fn of_comparison(operator: &str, arguments: &[Expr]) -> Option<String> {
    let (path, constant, operator) = match arguments {
        [Expr::Root(path), Expr::Literal(constant)] => (path, constant, operator),
        [Expr::Literal(constant), Expr::Root(path)] => (path, constant, mirrored(operator)),
        _ => return None,
    };
    let is_comparison = matches!(operator, "$eq" | "$gt" | "$gte" | "$lt" | "$lte");
    let is_comparable = !matches!(constant.as_value().kind(), Kind::Array | Kind::Undefined | Kind::Regex);
    (is_comparison && is_comparable && !path.is_empty()).then(|| format!("{operator} {:?}", path.to_string()))
}

fn mirrored(operator: &str) -> &str {
    match operator {
        "$gt" => "$lt",
        "$gte" => "$lte",
        "$lt" => "$gt",
        "$lte" => "$gte",
        other => other,
    }
}
