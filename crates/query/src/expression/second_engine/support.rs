//! The expressions that MongoDB's second engine supports, and the application of its rules.

use crate::expression::table::find_special;
use crate::expression::tree::{Expr, Foldable, SpecialForm};

/// Returns whether the engine supports an expression as it was written, including parts that are
/// folded later.
pub(crate) fn is_supported(root: &Expr) -> bool {
    let mut supported = true;
    root.each(&mut |part| {
        supported &= match part {
            Expr::Call(operator, _) => operator.second_engine.is_supported(),
            Expr::Form(form) => {
                find_special(form.operator_name()).is_some_and(|operator| operator.second_engine.is_supported())
            }
            Expr::Array(_) | Expr::Metadata(_) => false,
            _ => true,
        };
    });
    supported
}

/// Returns the number of `$and` and `$or` with a single condition.
pub(crate) fn single_conditions(root: &Expr) -> usize {
    let mut count = 0;
    root.each(&mut |part| {
        let is_single = matches!(part, Expr::Form(form) if matches!(&**form,
            SpecialForm::And(all) | SpecialForm::Or(all) if all.len() == 1));
        count += usize::from(is_single);
    });
    count
}

/// Applies the rules of the engine to an expression.
pub(crate) fn apply_rules(root: &mut Expr) {
    if let Expr::Call(operator, arguments) = root
        && operator.foldable == Foldable::Full
        && arguments.iter().all(Expr::is_constant)
    {
        // Constants are computed by the first engine.
        return;
    }
    root.each_mut(&mut |part| {
        let rule = match part {
            Expr::Call(operator, _) => operator.second_engine.rule(),
            Expr::Form(form) => find_special(form.operator_name()).and_then(|operator| operator.second_engine.rule()),
            _ => None,
        };
        if let Some(rule) = rule {
            let plain = std::mem::replace(part, Expr::Missing);
            *part = Expr::InSecondEngine(Box::new(plain), rule);
        }
    });
}
