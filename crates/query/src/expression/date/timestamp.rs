//! `$tsSecond` and `$tsIncrement`: the parts of a timestamp.

use crate::expression::evaluated::Evaluated;
use crate::expression::second_engine::differs;
use crate::expression::tree::Arity::Exactly;
use crate::expression::tree::Operator;
use document::Value;
use error::{Code, Error, Result};

pub(crate) static OPERATORS: &[Operator] = &[
    Operator::new("$tsSecond", Exactly(1), |name, arguments| timestamp(name, 5687301, &arguments[0], |time, _| time))
        .second_engine(differs(&[(5687301, 5687400, NOT_A_TIMESTAMP)])),
    Operator::new("$tsIncrement", Exactly(1), |name, arguments| {
        timestamp(name, 5687302, &arguments[0], |_, increment| increment)
    })
    .second_engine(differs(&[(5687302, 5687401, NOT_A_TIMESTAMP)])),
];

const NOT_A_TIMESTAMP: &str = "~ expects argument of type timestamp";

fn timestamp<'a>(name: &str, code: i32, argument: &Evaluated<'_>, part: fn(u32, u32) -> u32) -> Result<Evaluated<'a>> {
    match argument.value() {
        None | Some(Value::Null | Value::Undefined) => Ok(Evaluated::NULL),
        Some(Value::Timestamp { time, increment }) => Ok(i64::from(part(time, increment)).into()),
        Some(_) => {
            let found = argument.type_name();
            Err(Error::new(Code(code), format!(" Argument to {name} must be a timestamp, but is {found}")))
        }
    }
}
