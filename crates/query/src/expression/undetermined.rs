//! `$rand` and `$function`, whose value does not depend on their arguments alone.

use super::tree::{Arity, Expr, Operator, ParseExpr};
use document::Value;
use error::{Code, Error, Result};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::new("$rand", Arity::Named(parse_random), |_, _| Ok(rand::random::<f64>().into())).nondeterministic(),
    Operator::new("$function", Arity::Named(parse_script), |_, _| Err(no_javascript())).nondeterministic(),
];

/// Returns the error for JavaScript, the same as on a server that has it switched off.
pub fn no_javascript() -> Error {
    Error::new(Code(31264), "Cannot run server-side javascript without the javascript engine enabled")
}

fn parse_script(_: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        let found = operand.kind().alias();
        return Err(Error::new(Code(31260), format!("{name} requires an object as an argument, found: {found}")));
    };
    let given =
        |field: &str, code: i32, message: &str| operand.get(field).ok_or_else(|| Error::new(Code(code), message));
    let body = given("body", 31261, "The body function must be specified.")?;
    given("args", 31263, "The args field must be specified.")?;
    let language = given("lang", 31418, "The lang field must be specified.")?;
    if !matches!(body, Value::String(_) | Value::Code(_)) {
        return Err(Error::new(Code(31262), "The body function must evaluate to type string or code"));
    }
    if language.as_str() != Some("js") {
        return Err(Error::new(Code(31419), "Currently the only supported language specifier is 'js'."));
    }
    Ok(Vec::new())
}

fn parse_random(_: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    match operand {
        Value::Document(empty) | Value::Array(empty) if empty.is_empty() => Ok(Vec::new()),
        Value::Document(_) | Value::Array(_) => {
            Err(Error::new(Code(3040501), format!("{name} does not currently accept arguments")))
        }
        _ => Err(Error::new(Code(10065), format!("invalid parameter: expected an object ({name})"))),
    }
}
