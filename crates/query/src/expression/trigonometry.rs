//! Trigonometric and hyperbolic functions.

use super::arithmetic::{number, operand, real};
use super::evaluated::Evaluated;
use super::second_engine::{ReplacedError, checked, differs, null_first};
use super::tree::Arity::Exactly;
use super::tree::Operator;
use astro_float::BigFloat;
use document::Value;
use error::{Code, Error, Result};
use values::decimal;
use values::number::Number;
use values::text::display;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::new("$sin", Exactly(1), |name, arguments| bounded(name, &arguments[0], FINITE, f64::sin, BigFloat::sin))
        .second_engine(differs(BOUNDED)),
    Operator::new("$cos", Exactly(1), |name, arguments| bounded(name, &arguments[0], FINITE, f64::cos, BigFloat::cos))
        .second_engine(differs(BOUNDED)),
    Operator::new("$tan", Exactly(1), |name, arguments| bounded(name, &arguments[0], FINITE, f64::tan, BigFloat::tan))
        .second_engine(differs(BOUNDED)),
    Operator::new("$asin", Exactly(1), |name, arguments| bounded(name, &arguments[0], UNIT, f64::asin, BigFloat::asin))
        .second_engine(differs(BOUNDED)),
    Operator::new("$acos", Exactly(1), |name, arguments| bounded(name, &arguments[0], UNIT, f64::acos, BigFloat::acos))
        .second_engine(differs(BOUNDED)),
    Operator::new("$atan", Exactly(1), |name, arguments| real(name, &arguments[0], f64::atan, BigFloat::atan))
        .second_engine(differs(ANGLE)),
    Operator::new("$sinh", Exactly(1), |name, arguments| real(name, &arguments[0], f64::sinh, BigFloat::sinh))
        .second_engine(differs(ANGLE)),
    Operator::new("$cosh", Exactly(1), |name, arguments| real(name, &arguments[0], f64::cosh, BigFloat::cosh))
        .second_engine(differs(ANGLE)),
    Operator::new("$tanh", Exactly(1), |name, arguments| real(name, &arguments[0], f64::tanh, BigFloat::tanh))
        .second_engine(differs(ANGLE)),
    Operator::new("$asinh", Exactly(1), |name, arguments| {
        real(name, &arguments[0], arc_hyperbolic_sine, BigFloat::asinh)
    })
    .second_engine(differs(ANGLE)),
    Operator::new("$acosh", Exactly(1), |name, arguments| {
        bounded(name, &arguments[0], FROM_ONE, arc_hyperbolic_cosine, BigFloat::acosh)
    })
    .second_engine(differs(BOUNDED)),
    Operator::new("$atanh", Exactly(1), |name, arguments| {
        bounded(name, &arguments[0], UNIT, f64::atanh, BigFloat::atanh)
    })
    .second_engine(differs(BOUNDED)),
    Operator::new("$atan2", Exactly(2), arc_tangent).second_engine(checked(
        null_first,
        &[(51044, 5688500, "~ supports only numeric types"), (51045, 5688500, "~ supports only numeric types")],
    )),
    Operator::new("$degreesToRadians", Exactly(1), |name, arguments| {
        turn(name, &arguments[0], std::f64::consts::PI / 180.0, decimal::real::RADIANS_PER_DEGREE)
    })
    .second_engine(differs(ANGLE)),
    Operator::new("$radiansToDegrees", Exactly(1), |name, arguments| {
        turn(name, &arguments[0], 180.0 / std::f64::consts::PI, decimal::real::DEGREES_PER_RADIAN)
    })
    .second_engine(differs(ANGLE)),
];

const ANGLE: &[ReplacedError] = &[(28765, 4995501, "~ supports only numeric types")];
const BOUNDED: &[ReplacedError] =
    &[(28765, 4995502, "~ supports only numeric types"), (50989, 4995503, "Cannot apply ~, value is out of its range")];

/// From this number on, C libraries take the square root of a number's square to be the number
/// itself.
const ROOT_OF_SQUARE: f64 = (1_u32 << 28) as f64;

/// Computes like C libraries; `f64::asinh` rounds its last digit otherwise.
fn arc_hyperbolic_sine(number: f64) -> f64 {
    let (size, square) = (number.abs(), number * number);
    let result = if size > ROOT_OF_SQUARE {
        size.ln() + std::f64::consts::LN_2
    } else if size > 2.0 {
        (2.0 * size + 1.0 / ((square + 1.0).sqrt() + size)).ln()
    } else {
        (size + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
    };
    result.copysign(number)
}

/// Computes like C libraries; `f64::acosh` rounds its last digit otherwise.
fn arc_hyperbolic_cosine(number: f64) -> f64 {
    if number >= ROOT_OF_SQUARE {
        number.ln() + std::f64::consts::LN_2
    } else if number > 2.0 {
        (2.0 * number - 1.0 / (number + (number * number - 1.0).sqrt())).ln()
    } else {
        let above = number - 1.0;
        (above + (2.0 * above + above * above).sqrt()).ln_1p()
    }
}

/// The domain of a function, and its notation in messages.
#[derive(Clone, Copy)]
struct Domain {
    contains: fn(f64) -> bool,
    text: &'static str,
}

const FINITE: Domain = Domain { contains: |number| !number.is_infinite(), text: "(-inf,inf)" };
const UNIT: Domain = Domain { contains: |number| number.is_nan() || number.abs() <= 1.0, text: "[-1,1]" };
const FROM_ONE: Domain = Domain { contains: |number| number.is_nan() || number >= 1.0, text: "[1,inf]" };

/// Returns the number as a double; a finite decimal becomes a finite one, however large.
fn within_doubles(number: Number) -> f64 {
    match number {
        Number::Decimal(number) if decimal::is_finite(number) => number.to_f64().clamp(f64::MIN, f64::MAX),
        number => number.to_f64(),
    }
}

fn bounded<'a>(
    name: &str,
    argument: &Evaluated<'_>,
    domain: Domain,
    compute: fn(f64) -> f64,
    exact: decimal::real::Function,
) -> Result<Evaluated<'a>> {
    match operand(name, argument)? {
        Some(number) if !(domain.contains)(within_doubles(number)) => {
            let (found, domain) = (display(number.to_value()), domain.text);
            Err(Error::new(Code(50989), format!("cannot apply {name} to {found}, value must be in {domain}")))
        }
        _ => real(name, argument, compute, exact),
    }
}

fn arc_tangent<'a>(name: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let [a, b] = &*arguments else { return Ok(Evaluated::Missing) };
    if a.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let numeric = |value: &Evaluated<'_>, code| {
        number(value).ok_or_else(|| {
            Error::new(Code(code), format!("{name} only supports numeric types, not {}", value.type_name()))
        })
    };
    let y = numeric(a, 51044)?;
    if b.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let x = numeric(b, 51045)?;
    let result = y.to_f64().atan2(x.to_f64());
    if y.is_decimal() || x.is_decimal() {
        let exact = decimal::real::arc_tangent(y.to_decimal(), x.to_decimal());
        return Ok(Value::Decimal128(exact.unwrap_or_else(|| decimal::from_f64(result))).into());
    }
    Ok(result.into())
}

/// Converts an angle to another unit.
fn turn<'a>(name: &str, argument: &Evaluated<'_>, factor: f64, exact: (u128, i32)) -> Result<Evaluated<'a>> {
    Ok(match operand(name, argument)? {
        None => Evaluated::NULL,
        Some(Number::Decimal(number)) => {
            let factor = document::Decimal128::from_parts(false, exact.0, exact.1);
            Value::Decimal128(factor.map_or(number, |factor| decimal::multiply(number, factor))).into()
        }
        Some(number) => (number.to_f64() * factor).into(),
    })
}
