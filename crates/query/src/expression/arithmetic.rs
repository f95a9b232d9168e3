//! Arithmetic.

use super::evaluated::Evaluated;
use super::second_engine::{checked, differs, null_first};
use super::tree::Arity::{Any, Between, Exactly};
use super::tree::{Algebra, Operator};
use astro_float::BigFloat;
use document::Value;
use document::decimal::Parts;
use error::{Code, Error, Result};
use values::decimal;
use values::integer::{as_i64_exact, to_i64_exact};
use values::number::{Number, Sum, to_i64};
use values::text::display;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::new("$add", Any, add).algebra(Algebra::Commutative).second_engine(checked(add_in_second_engine, &[])),
    Operator::new("$subtract", Exactly(2), subtract),
    Operator::new("$multiply", Any, multiply).algebra(Algebra::Commutative).second_engine(checked(
        multiply_in_second_engine,
        &[(14, 5073102, "only numbers are allowed in an $multiply expression")],
    )),
    Operator::new("$divide", Exactly(2), divide)
        .second_engine(differs(&[(2, 4848401, "can't $divide by zero"), (14, 5073101, NOT_NUMERIC)])),
    Operator::new("$mod", Exactly(2), modulo).second_engine(differs(&[
        (16610, 4848403, "can't $mod by zero"),
        (5733415, 4848403, "can't $mod by zero"),
        (16611, 5154000, NOT_NUMERIC),
    ])),
    Operator::new("$abs", Exactly(1), abs).second_engine(differs(&[(28765, 4903700, NOT_NUMERIC)])),
    Operator::new("$ceil", Exactly(1), |name, arguments| whole(name, &arguments[0], f64::ceil, decimal::ceil))
        .second_engine(differs(&[(28765, 4903702, NOT_NUMERIC)])),
    Operator::new("$floor", Exactly(1), |name, arguments| whole(name, &arguments[0], f64::floor, decimal::floor))
        .second_engine(differs(&[(28765, 4903704, NOT_NUMERIC)])),
    Operator::new("$round", Between(1, 2), round),
    Operator::new("$trunc", Between(1, 2), round),
    Operator::new("$sqrt", Exactly(1), sqrt).second_engine(differs(&[
        (28765, 4903709, NOT_NUMERIC),
        (28714, 4903710, "~'s argument must be greater than or equal to 0"),
    ])),
    Operator::new("$exp", Exactly(1), |name, arguments| real(name, &arguments[0], f64::exp, BigFloat::exp))
        .second_engine(differs(&[(28765, 4903703, NOT_NUMERIC)])),
    Operator::new("$ln", Exactly(1), |name, arguments| logarithm(name, 28766, &arguments[0], f64::ln, BigFloat::ln))
        .second_engine(differs(&[
            (28765, 4903705, NOT_NUMERIC),
            (28766, 4903706, "~'s argument must be a positive number"),
        ])),
    Operator::new("$log10", Exactly(1), |name, arguments| {
        logarithm(name, 28761, &arguments[0], f64::log10, BigFloat::log10)
    })
    .second_engine(differs(&[
        (28765, 4903707, NOT_NUMERIC),
        (28761, 4903708, "~'s argument must be a positive number"),
    ])),
    Operator::new("$log", Exactly(2), log),
    Operator::new("$pow", Exactly(2), pow),
];

const NOT_NUMERIC: &str = "~ only supports numeric types";

/// Adds two arguments in one way, any other number of them in another.
fn add_in_second_engine<'a>(name: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
    if let Some(null) = null_first(name, arguments)? {
        return Ok(Some(null));
    }
    let pair = arguments.len() == 2;
    let mut dates = 0;
    for argument in arguments.iter() {
        match argument.value_or_null() {
            Value::DateTime(_) => dates += 1,
            value if value.kind().is_number() => {}
            _ => {
                let code = Code(if pair { 4974201 } else { 4974203 });
                return Err(Error::new(code, "only numbers and dates are allowed in an $add expression"));
            }
        }
    }
    if dates > 1 {
        let code = Code(if pair { 4974202 } else { 4848404 });
        return Err(Error::new(code, "only one date allowed in an $add expression"));
    }
    if pair {
        widen(arguments, |sum, number| sum.checked_add(number));
    }
    Ok(None)
}

fn multiply_in_second_engine<'a>(name: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
    let null = null_first(name, arguments)?;
    widen(arguments, |product, number| product.checked_mul(number));
    Ok(null)
}

/// Converts the first argument to a decimal if integers would overflow 64 bits.
fn widen(arguments: &mut [Evaluated<'_>], join: fn(i64, i64) -> Option<i64>) {
    let whole = |argument: &Evaluated<'_>| match argument.value() {
        Some(Value::Int32(number)) => Some(i64::from(number)),
        Some(Value::Int64(number)) => Some(number),
        _ => None,
    };
    let [first, rest @ ..] = arguments else { return };
    let Some(first_number) = whole(first) else { return };
    let mut joined = first_number;
    for argument in rest {
        let Some(number) = whole(argument) else { return };
        let Some(next) = join(joined, number) else {
            *first = Evaluated::Value(Value::Decimal128(Number::Int64(first_number).to_decimal()));
            return;
        };
        joined = next;
    }
}

pub(super) fn number(value: &Evaluated<'_>) -> Option<Number> {
    value.value().and_then(Number::from_value)
}

fn add<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let (mut sum, mut has_date) = (Sum::default(), false);
    for argument in arguments.iter() {
        if argument.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        match argument.value_or_null() {
            Value::DateTime(_) if has_date => {
                return Err(Error::new(Code(16612), "only one date allowed in an $add expression"));
            }
            Value::DateTime(milliseconds) => {
                has_date = true;
                sum.add(Number::Int64(milliseconds));
            }
            value => sum.add(Number::from_value(value).ok_or_else(|| {
                let found = argument.type_name();
                Error::new(Code(16554), format!("$add only supports numeric or date types, not {found}"))
            })?),
        }
    }
    if !has_date {
        return Ok(sum.total().to_value().into());
    }
    let milliseconds = match sum.total() {
        decimal @ Number::Decimal(_) => to_i64(decimal.to_value())?,
        _ => sum.whole_total().ok_or_else(|| Error::new(Code::OVERFLOW, "date overflow in $add"))?,
    };
    Ok(Value::DateTime(milliseconds).into())
}

fn subtract<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let [a, b] = &*arguments else { return Ok(Evaluated::Missing) };
    // The server evaluates the second argument first.
    if b.is_nullish() | a.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        return Ok(difference(a, b).to_value().into());
    }
    match (a.value_or_null(), b.value_or_null()) {
        // Beyond 64 bits it wraps around, as on the server.
        (Value::DateTime(a), Value::DateTime(b)) => Ok(a.wrapping_sub(b).into()),
        (Value::DateTime(a), b) if b.kind().is_number() => {
            let b = to_i64(b)?;
            if b == i64::MIN {
                return Err(Error::new(Code(159), "Cannot negate the minimum duration"));
            }
            let overflow = || Error::new(Code(159), format!("Overflow while adding {}ms to {a}ms", -b));
            Ok(Value::DateTime(a.checked_sub(b).ok_or_else(overflow)?).into())
        }
        _ => Err(Error::type_mismatch(format!("can't $subtract {} from {}", b.type_name(), a.type_name()))),
    }
}

fn difference(a: Number, b: Number) -> Number {
    match (a.as_integer(), b.as_integer()) {
        (Some(left), Some(right)) => match left.checked_sub(right) {
            Some(difference) => Number::integer(difference, a.is_int32() && b.is_int32()),
            None => Number::Double((i128::from(left) - i128::from(right)) as f64),
        },
        _ if a.is_decimal() || b.is_decimal() => {
            Number::Decimal(decimal::add(a.to_decimal(), decimal::negate(b.to_decimal())))
        }
        _ => Number::Double(a.to_f64() - b.to_f64()),
    }
}

fn multiply<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let mut product = Number::Int32(1);
    for argument in arguments.iter() {
        if argument.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let factor = number(argument).ok_or_else(|| {
            Error::type_mismatch(format!("$multiply only supports numeric types, not {}", argument.type_name()))
        })?;
        product = match (product.as_integer(), factor.as_integer()) {
            (Some(a), Some(b)) => match a.checked_mul(b) {
                Some(whole) => Number::integer(whole, product.is_int32() && factor.is_int32()),
                None => Number::Double(a as f64 * b as f64),
            },
            _ if product.is_decimal() || factor.is_decimal() => {
                Number::Decimal(decimal::multiply(product.to_decimal(), factor.to_decimal()))
            }
            _ => Number::Double(product.to_f64() * factor.to_f64()),
        };
    }
    Ok(product.to_value().into())
}

fn divide<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let [a, b] = &*arguments else { return Ok(Evaluated::Missing) };
    // The server evaluates the second argument first.
    if b.is_nullish() | a.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let (Some(dividend), Some(divisor)) = (number(a), number(b)) else {
        let (a, b) = (a.type_name(), b.type_name());
        return Err(Error::type_mismatch(format!("$divide only supports numeric types, not {a} and {b}")));
    };
    if divisor.is_zero() {
        return Err(Error::bad_value("can't $divide by zero"));
    }
    if dividend.is_decimal() || divisor.is_decimal() {
        return Ok(Value::Decimal128(decimal::divide(dividend.to_decimal(), divisor.to_decimal())).into());
    }
    Ok((dividend.to_f64() / divisor.to_f64()).into())
}

fn modulo<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    Evaluated::mark_all_read(arguments);
    let [a, b] = &*arguments else { return Ok(Evaluated::Missing) };
    if a.is_nullish() || b.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let (Some(dividend), Some(divisor)) = (number(a), number(b)) else {
        let (a, b) = (a.type_name(), b.type_name());
        return Err(Error::new(Code(16611), format!("$mod only supports numeric types, not {a} and {b}")));
    };
    if divisor.is_zero() {
        let code = if dividend.is_decimal() || divisor.is_decimal() { 5733415 } else { 16610 };
        return Err(Error::new(Code(code), "can't $mod by zero"));
    }
    Ok(remainder(dividend, divisor).to_value().into())
}

fn remainder(a: Number, b: Number) -> Number {
    if a.is_decimal() || b.is_decimal() {
        return Number::Decimal(decimal::remainder(a.to_decimal(), b.to_decimal()));
    }
    if let (Some(left), Some(right)) = (a.as_integer(), b.as_integer()) {
        return Number::integer(left.wrapping_rem(right), a.is_int32() && b.is_int32());
    }
    // The remainder of an integer by a double that is an integer of 32 bits is an integer.
    match (a, as_i64_exact(b.to_value()).and_then(|whole| i32::try_from(whole).ok())) {
        (Number::Int32(left), Some(right)) => Number::Int32(left.wrapping_rem(right)),
        (Number::Int64(left), Some(right)) => Number::Int64(left.wrapping_rem(right.into())),
        _ => Number::Double(a.to_f64() % b.to_f64()),
    }
}

/// Returns the number that is the only argument of an operator; `None` for null.
pub(super) fn operand(name: &str, argument: &Evaluated<'_>) -> Result<Option<Number>> {
    if argument.is_nullish() {
        return Ok(None);
    }
    match number(argument) {
        Some(number) => Ok(Some(number)),
        None => {
            let found = argument.type_name();
            Err(Error::new(Code(28765), format!("{name} only supports numeric types, not {found}")))
        }
    }
}

fn abs<'a>(name: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let Some(number) = operand(name, &arguments[0])? else { return Ok(Evaluated::NULL) };
    Ok(match number {
        Number::Int32(number) => Number::integer(i64::from(number).abs(), true),
        Number::Int64(i64::MIN) => return Err(Error::new(Code(28680), "can't take $abs of long long min")),
        Number::Int64(number) => Number::Int64(number.abs()),
        Number::Double(number) => Number::Double(number.abs()),
        Number::Decimal(number) => Number::Decimal(decimal::absolute(number)),
    }
    .to_value()
    .into())
}

fn whole<'a>(
    name: &str,
    argument: &Evaluated<'_>,
    double: fn(f64) -> f64,
    decimal: fn(document::Decimal128) -> document::Decimal128,
) -> Result<Evaluated<'a>> {
    let Some(number) = operand(name, argument)? else { return Ok(Evaluated::NULL) };
    Ok(match number {
        Number::Double(number) => Number::Double(double(number)),
        Number::Decimal(number) => Number::Decimal(decimal(number)),
        integer => integer,
    }
    .to_value()
    .into())
}

/// `$round` (half to even) and `$trunc`, to a number of decimal places.
fn round<'a>(name: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let argument = &arguments[0];
    if argument.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(number) = number(argument) else {
        let found = argument.type_name();
        return Err(Error::new(Code(51081), format!("{name} only supports numeric types, not {found}")));
    };
    let places = match arguments.get(1) {
        None => 0,
        Some(places) if places.is_nullish() => return Ok(Evaluated::NULL),
        Some(places) => decimal_places(name, places)?,
    };
    let towards_zero = name == "$trunc";
    Ok(match number {
        Number::Double(number) if !number.is_finite() => Number::Double(number),
        Number::Double(number) if places == 0 => {
            Number::Double(if towards_zero { number.trunc() } else { number.round_ties_even() })
        }
        Number::Double(number) => {
            Number::Double(decimal::round(decimal::exact_from_f64(number), places, towards_zero).to_f64())
        }
        Number::Decimal(number) => Number::Decimal(decimal::round(number, places, towards_zero)),
        integer if places >= 0 => integer,
        integer => round_integer(name, integer, places, towards_zero)?,
    }
    .to_value()
    .into())
}

fn decimal_places(name: &str, places: &Evaluated<'_>) -> Result<i32> {
    let value = places.value_or_null();
    if !value.kind().is_number() {
        let found = places.type_name();
        return Err(Error::new(Code(16004), format!("can't convert from BSON type {found} to long")));
    }
    let whole = to_i64_exact(value)?
        .and_then(|whole| i32::try_from(whole).ok())
        .ok_or_else(|| Error::new(Code(51082), format!("precision argument to  {name} must be a integral value")))?;
    Some(whole).filter(|places| (-20..=100).contains(places)).ok_or_else(|| {
        Error::new(Code(51083), format!("cannot apply {name} with precision value {whole} value must be in [-20, 100]"))
    })
}

fn round_integer(name: &str, number: Number, places: i32, towards_zero: bool) -> Result<Number> {
    let whole = i128::from(number.as_integer().unwrap_or_default());
    let unit = 10_i128.pow(places.unsigned_abs());
    let (quotient, rest) = (whole / unit, whole % unit);
    let twice = rest.abs() * 2;
    let away = !towards_zero && (twice > unit || (twice == unit && quotient % 2 != 0));
    let rounded = (quotient + if away { whole.signum() } else { 0 }) * unit;
    match i64::try_from(rounded) {
        Ok(rounded) => Ok(Number::integer(rounded, number.is_int32())),
        Err(_) => Err(Error::new(
            Code(51080),
            format!(
                "invalid conversion from Decimal128 result in {name} resulting from arguments: [{whole}, {places}]"
            ),
        )),
    }
}

/// Returns whether the logarithm is defined; it is not for NaN. Decimals may be too small for a
/// double.
fn is_above_zero(number: Number) -> bool {
    match number {
        Number::Decimal(number) => match number.parts() {
            Parts::Finite { negative, coefficient, .. } => !negative && coefficient != 0,
            Parts::Infinity { negative } => !negative,
            _ => true,
        },
        number => number.to_f64().is_nan() || number.to_f64() > 0.0,
    }
}

/// Computes a function of real numbers, on doubles or on decimals.
pub(super) fn real<'a>(
    name: &str,
    argument: &Evaluated<'_>,
    compute: fn(f64) -> f64,
    exact: decimal::real::Function,
) -> Result<Evaluated<'a>> {
    Ok(match operand(name, argument)? {
        None => Evaluated::NULL,
        Some(Number::Decimal(number)) => Value::Decimal128(
            decimal::real::corner(name, number)
                .or_else(|| match name {
                    "$sin" | "$cos" | "$tan" => decimal::real::apply_to_angle(number, exact),
                    _ => decimal::real::apply(number, exact),
                })
                .unwrap_or_else(|| decimal::from_f64(compute(number.to_f64()))),
        )
        .into(),
        Some(number) => compute(number.to_f64()).into(),
    })
}

fn sqrt<'a>(name: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    match operand(name, &arguments[0])? {
        Some(number) if number.to_f64() < 0.0 => {
            Err(Error::new(Code(28714), "$sqrt's argument must be greater than or equal to 0"))
        }
        Some(Number::Decimal(number)) => {
            let root = decimal::real::square_root(number);
            Ok(Value::Decimal128(root.unwrap_or_else(|| decimal::from_f64(number.to_f64().sqrt()))).into())
        }
        Some(number) => Ok(number.to_f64().sqrt().into()),
        None => Ok(Evaluated::NULL),
    }
}

fn logarithm<'a>(
    name: &str,
    code: i32,
    argument: &Evaluated<'_>,
    compute: fn(f64) -> f64,
    exact: decimal::real::Function,
) -> Result<Evaluated<'a>> {
    match operand(name, argument)? {
        Some(number) if !is_above_zero(number) => {
            let found = display(Value::Double(number.to_f64()));
            Err(Error::new(Code(code), format!("{name}'s argument must be a positive number, but is {found}")))
        }
        // NaN has no decimal logarithm.
        Some(Number::Decimal(number)) if number.is_nan() => Ok(f64::NAN.into()),
        _ => real(name, argument, compute, exact),
    }
}

fn log<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    Evaluated::mark_all_read(arguments);
    let [argument, base] = &*arguments else { return Ok(Evaluated::Missing) };
    if argument.is_nullish() || base.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let numeric = |value: &Evaluated<'_>, code, what: &str| {
        number(value)
            .ok_or_else(|| Error::new(Code(code), format!("$log's {what} must be numeric, not {}", value.type_name())))
    };
    let (argument, base) = (numeric(argument, 28756, "argument")?, numeric(base, 28757, "base")?);
    if !is_above_zero(argument) {
        let found = display(Value::Double(argument.to_f64()));
        return Err(Error::new(Code(28758), format!("$log's argument must be a positive number, but is {found}")));
    }
    if !is_above_zero(base) || base.to_f64() == 1.0 {
        let found = display(Value::Double(base.to_f64()));
        return Err(Error::new(
            Code(28759),
            format!("$log's base must be a positive number not equal to 1, but is {found}"),
        ));
    }
    let result = argument.to_f64().ln() / base.to_f64().ln();
    let any_nan = argument.to_f64().is_nan() || base.to_f64().is_nan();
    if (argument.is_decimal() || base.is_decimal()) && !any_nan {
        let exact = decimal::real::logarithm(argument.to_decimal(), base.to_decimal());
        let result = if result.is_nan() { f64::INFINITY } else { result };
        return Ok(Value::Decimal128(exact.unwrap_or_else(|| decimal::from_f64(result))).into());
    }
    Ok(result.into())
}

fn pow<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    Evaluated::mark_all_read(arguments);
    let [base, exponent] = &*arguments else { return Ok(Evaluated::Missing) };
    if base.is_nullish() || exponent.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let numeric = |value: &Evaluated<'_>, code, what: &str| {
        number(value)
            .ok_or_else(|| Error::new(Code(code), format!("$pow's {what} must be numeric, not {}", value.type_name())))
    };
    let (base, exponent) = (numeric(base, 28762, "base")?, numeric(exponent, 28763, "exponent")?);
    // For decimals the sign counts, even that of zero and NaN.
    let negative = match base.is_decimal() || exponent.is_decimal() {
        true => decimal::is_negative(exponent.to_decimal()),
        false => exponent.to_f64() < 0.0,
    };
    if base.is_zero() && negative {
        return Err(Error::new(Code(28764), "$pow cannot take a base of 0 and a negative exponent"));
    }
    Ok(power(base, exponent).to_value().into())
}

fn power(base: Number, exponent: Number) -> Number {
    if base.is_decimal() || exponent.is_decimal() {
        return Number::Decimal(decimal::real::power(base.to_decimal(), exponent.to_decimal()));
    }
    if let (Some(whole), Some(times)) = (base.as_integer(), exponent.as_integer())
        && let Some(result) = integer_power(whole, times)
    {
        return Number::integer(result, base.is_int32() && exponent.is_int32());
    }
    Number::Double(base.to_f64().powf(exponent.to_f64()))
}

fn integer_power(base: i64, exponent: i64) -> Option<i64> {
    match base {
        0 if exponent > 0 => Some(0),
        1 => Some(1),
        -1 => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        _ => base.checked_pow(u32::try_from(exponent).ok()?),
    }
}
