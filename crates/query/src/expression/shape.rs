//! The comparisons with constants in expressions, which an index could answer: what expressions have in common that differ in their
//! values alone.
//!
//! MongoDB writes them down beside a `$expr`, and knows filters by them; all else about an expression is the same to it.

use super::{Expr, Expression, Form};
use document::{Kind, Value};

impl Expression {
    /// The comparisons as a text; empty where there are none.
    pub(crate) fn shape(&self) -> String {
        of(&self.root).unwrap_or_default()
    }

    /// The path and the value of `{$eq: ["$path", value]}`, where nothing is equal to the value but what has its key, and nothing that a
    /// collation has a say in.
    pub fn equality(&self) -> Option<(String, Value<'_>)> {
        let (path, value) = self.root.equality().filter(|_| self.collation.is_simple())?;
        Some((path, value.as_value()))
    }
}

fn of(part: &Expr) -> Option<String> {
    steps::step();
    match part {
        Expr::Call(function, arguments) => of_comparison(function.name, arguments),
        Expr::Form(form) => match &**form {
            Form::And(all) => listed("and", all.iter().filter_map(of).collect()),
            Form::Or(any) => listed("or", any.iter().map(of).collect::<Option<_>>()?),
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
