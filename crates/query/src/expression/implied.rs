//! Conditions on fields that an expression implies. An index can find the documents of an `$expr`
//! by them.

use super::Expression;
use super::tree::{Expr, SpecialForm};
use document::{Kind, ValueBuf};

impl Expression {
    /// Returns the paths and values of equalities that hold for every document for which the
    /// expression is true: of fields with constants, and those of an `$and` before the first part
    /// that may fail. None under a non-simple collation.
    pub fn implied_equalities(&self) -> Vec<(String, ValueBuf)> {
        let mut equalities = Vec::new();
        if self.collation.is_simple() {
            self.root.imply(&mut equalities);
        }
        equalities
    }
}

impl Expr {
    /// Returns false if the following parts may not be evaluated for every document.
    fn imply(&self, equalities: &mut Vec<(String, ValueBuf)>) -> bool {
        steps::step();
        match self {
            // The second engine may differ by failing.
            Expr::InSecondEngine(inner, _) => {
                inner.imply(equalities);
                false
            }
            Expr::Form(form) => match &**form {
                SpecialForm::And(all) => all.iter().all(|part| part.imply(equalities)),
                _ => self.never_fails(),
            },
            part => match part.equality() {
                Some((path, value)) => {
                    equalities.push((path, value.clone()));
                    true
                }
                None => part.never_fails(),
            },
        }
    }

    /// Returns the path and value of `{$eq: ["$path", value]}`, if only values with the same key
    /// equal it. Null is excluded, because it does not equal a missing field here.
    pub(super) fn equality(&self) -> Option<(String, &ValueBuf)> {
        let Expr::Call(operator, arguments) = self else { return None };
        let (path, value) = match arguments.as_slice() {
            [Expr::Root(path), Expr::Literal(value)] | [Expr::Literal(value), Expr::Root(path)] => (path, value),
            _ => return None,
        };
        let is_plain = !matches!(value.kind(), Kind::Array | Kind::Undefined | Kind::Null | Kind::Regex);
        (operator.name == "$eq" && is_plain && !path.is_empty()).then(|| (path.to_string(), value))
    }

    pub(super) fn never_fails(&self) -> bool {
        let mut never = true;
        self.each(&mut |part| {
            never &= match part {
                Expr::Call(operator, _) => operator.never_fails,
                Expr::Form(form) => {
                    matches!(
                        **form,
                        SpecialForm::And(_)
                            | SpecialForm::Or(_)
                            | SpecialForm::Condition { .. }
                            | SpecialForm::IfNull(_)
                    )
                }
                Expr::InSecondEngine(..) => false,
                _ => true,
            };
        });
        never
    }
}

#[cfg(test)]
mod tests {
    use crate::{Context, Expression};
    use document::{DocBuf, Value, array, doc};

    fn implied(expression: &DocBuf) -> String {
        let expression = Expression::parse(Value::Document(expression.as_doc()), &Context::at(0)).unwrap();
        let of_one = |(path, value): (_, _)| format!("{path}: Equal({value:?})");
        expression.implied_equalities().into_iter().map(of_one).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn equalities_are_implied_up_to_what_may_fail() {
        let equal = |path: &str, value: Value<'_>| doc! { "$eq": &array![path, value] };
        let (a, b) = (equal("$a.b", Value::Int32(1)), doc! { "$eq": &array!["x", "$c"] });
        assert!(implied(&a).starts_with("a.b: Equal("));
        let divided = doc! { "$gt": &array![&doc! { "$divide": &array![1, "$d"] }, 0] };
        let above = doc! { "$gt": &array!["$d", 0] };
        let count = |all: &document::ValueBuf| implied(&doc! { "$and": all }).matches("Equal(").count();
        assert_eq!(count(&array![&a, &b]), 2);
        assert_eq!(count(&array![&above, &a, &doc! { "$and": &array![&above, &b] }]), 2);
        assert_eq!(count(&array![&a, &divided, &b]), 1);
        for nothing in [
            doc! { "$or": &array![&a, &b] },
            equal("$a", Value::Null),
            doc! { "$eq": &array!["$a", &array![1]] },
            doc! { "$eq": &array!["$a", "$b"] },
            doc! { "$ne": &array!["$a", 1] },
            doc! { "$eq": &array!["$$ROOT", 1] },
        ] {
            assert_eq!(implied(&nothing), "");
        }
    }
}
