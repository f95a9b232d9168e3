//! Functions of real numbers on decimals: roots, exponentials, logarithms, trigonometry, to 34
//! digits.
//!
//! The server's library computes most of them in binary with 113 bits and rounds to 34 digits at
//! the end. The same is done here, with more bits in between. So all digits but the last always
//! agree, and the last nearly always does.

use super::{DIGITS, EXPONENT_MIN, Finite, NAN, Rounding, divide, infinity, multiply};
use crate::decimal::wide::Wide;
use astro_float::{BigFloat, Consts, Radix, RoundingMode, Sign};
use document::Decimal128;
use document::decimal::Parts;
use std::cell::RefCell;

/// A function of `astro_float`; its arguments are the precision in bits, a rounding mode and cached
/// constants.
pub type Function = fn(&BigFloat, usize, RoundingMode, &mut Consts) -> BigFloat;

/// The precision of computations, and that of the server's results.
const WORKING_BITS: usize = 256;
const RESULT_BITS: i64 = 113;
const NEAREST: RoundingMode = RoundingMode::ToEven;
/// The rounding mode of functions of real numbers. With rounding to the nearest, the library adds
/// bits until the direction of rounding is certain, which never happens if the result is exact
/// (1.5², log₂ 8). The working precision exceeds that of the result anyway.
const AS_IT_COMES: RoundingMode = RoundingMode::None;
/// Number of digits of a result that are used for rounding.
const LOOKED_AT: usize = 60;
/// From this number of digits before the point on, angles are converted with all their digits:
/// after removing whole turns, the server knows every digit of the rest.
const DIGITS_OF_ANGLES: i32 = 20;

/// π/2, and the factors between degrees and radians: 34 digits and an exponent.
const QUARTER_TURN: u128 = 1_570_796_326_794_896_619_231_321_691_639_751;
pub const RADIANS_PER_DEGREE: (u128, i32) = (1_745_329_251_994_329_576_923_690_768_488_613, -35);
const PI: (u128, i32) = (3_141_592_653_589_793_238_462_643_383_279_503, -33);
const HALF_PI: (u128, i32) = (1_570_796_326_794_896_619_231_321_691_639_751, -33);
pub const DEGREES_PER_RADIAN: (u128, i32) = (5_729_577_951_308_232_087_679_815_481_410_517, -32);

thread_local! {
    static CONSTANTS: RefCell<Option<Consts>> = const { RefCell::new(None) };
}

/// Steps of computing one: about twenty microseconds.
const STEPS: usize = 2000;

fn with_constants<T>(compute: impl FnOnce(&mut Consts) -> T) -> Option<T> {
    // Counted before borrowing the constants, which other tasks of the thread need.
    steps::steps(STEPS);
    CONSTANTS.with_borrow_mut(|constants| {
        if constants.is_none() {
            *constants = Consts::new().ok();
        }
        constants.as_mut().map(compute)
    })
}

/// Applies a function; returns `None` if doubles suffice: for special values and numbers of extreme
/// size.
pub fn apply(number: Decimal128, function: Function) -> Option<Decimal128> {
    let argument = to_big(number)?;
    with_constants(|constants| {
        let result = function(&argument, WORKING_BITS, AS_IT_COMES, constants);
        from_big(&as_result(result), constants)
    })
}

/// Like [`apply`], for an angle, from which whole turns are removed first.
pub fn apply_to_angle(number: Decimal128, function: Function) -> Option<Decimal128> {
    let size = size(number)?;
    if size <= DIGITS_OF_ANGLES {
        return apply(number, function);
    }
    // Four bits hold a digit, with room to spare.
    let bits = WORKING_BITS + 4 * size as usize;
    let text = number.to_string();
    with_constants(|constants| {
        let argument = BigFloat::parse(&text, Radix::Dec, bits, NEAREST, constants);
        let result = function(&argument, WORKING_BITS, AS_IT_COMES, constants);
        from_big(&as_result(result), constants)
    })
}

/// Returns the number of digits before the point of a finite number; negative if zeros follow the
/// point.
fn size(number: Decimal128) -> Option<i32> {
    match number.parts() {
        Parts::Finite { coefficient, exponent, .. } => Some(exponent + Wide::from(coefficient).digits() as i32),
        _ => None,
    }
}

/// Returns the angle of a point from the axis of `x`.
pub fn arc_tangent(y: Decimal128, x: Decimal128) -> Option<Decimal128> {
    let is_left = x.to_f64() < 0.0;
    if let (Parts::Infinity { negative }, true) = (x.parts(), super::is_finite(y)) {
        return match negative {
            true => Decimal128::from_parts(y.to_f64() < 0.0, PI.0, PI.1),
            false => Some(nothing(EXPONENT_MIN)),
        };
    }
    if matches!(y.parts(), Parts::Infinity { .. }) && super::is_finite(x) {
        return Decimal128::from_parts(y.to_f64() < 0.0, HALF_PI.0, HALF_PI.1);
    }
    let (down, y, x) = (y.to_f64() < 0.0, to_big(y)?, to_big(x)?);
    with_constants(|constants| {
        let pi = constants.pi(WORKING_BITS, NEAREST);
        let half = pi.div(&BigFloat::from_word(2, WORKING_BITS), WORKING_BITS, NEAREST);
        let angle = if x.is_zero() {
            if y.is_zero() {
                y
            } else if down {
                half.neg()
            } else {
                half
            }
        } else {
            let angle = y.div(&x, WORKING_BITS, NEAREST).atan(WORKING_BITS, AS_IT_COMES, constants);
            match (is_left, down) {
                (false, _) => angle,
                (true, true) => angle.sub(&pi, WORKING_BITS, NEAREST),
                (true, false) => angle.add(&pi, WORKING_BITS, NEAREST),
            }
        };
        from_big(&as_result(angle), constants)
    })
}

fn to_big(number: Decimal128) -> Option<BigFloat> {
    if !super::is_finite(number) {
        return None;
    }
    let text = number.to_string();
    with_constants(|constants| as_result(BigFloat::parse(&text, Radix::Dec, WORKING_BITS, NEAREST, constants)))
}

/// Rounds to 113 bits, the server's precision.
fn as_result(number: BigFloat) -> BigFloat {
    let fraction_bits = number.exponent().map_or(0, |exponent| RESULT_BITS - i64::from(exponent));
    match usize::try_from(fraction_bits) {
        Ok(bits) if !number.is_zero() => number.round(bits, NEAREST),
        _ => number,
    }
}

fn from_big(number: &BigFloat, constants: &mut Consts) -> Decimal128 {
    if number.is_nan() {
        return NAN;
    }
    if number.is_inf() {
        return infinity(number.is_inf_neg());
    }
    let Ok((sign, mut digits, point)) = number.convert_to_radix(Radix::Dec, NEAREST, constants) else { return NAN };
    while digits.last() == Some(&0) {
        digits.pop();
    }
    digits.truncate(LOOKED_AT);
    let coefficient =
        digits.iter().fold(Wide::from(0), |sum, digit| sum.times_power_of_ten(1).plus(Wide::from(u128::from(*digit))));
    let mut exponent = point - digits.len() as i32;
    let mut coefficient = coefficient;
    // An integer has no exponent as long as there is room for its zeros.
    while exponent > 0 && coefficient.digits() < DIGITS {
        coefficient = coefficient.times_power_of_ten(1);
        exponent -= 1;
    }
    if coefficient.is_zero() {
        exponent = 0;
    }
    Finite { negative: sign == Sign::Neg, coefficient, exponent }.pack(Rounding::HalfEven)
}

/// Returns the square root: exact if possible, with half the exponent.
pub fn square_root(number: Decimal128) -> Option<Decimal128> {
    let Parts::Finite { negative, coefficient, exponent } = number.parts() else { return None };
    let wanted = exponent.div_euclid(2);
    if coefficient == 0 {
        return Decimal128::from_parts(negative, 0, wanted);
    }
    // The root is computed from a coefficient with an even exponent, so extreme exponents do no
    // harm.
    let shifted = Decimal128::from_parts(false, coefficient, exponent - 2 * wanted)?;
    let argument = to_big_exactly(shifted)?;
    let root = with_constants(|constants| from_big(&argument.sqrt(WORKING_BITS, NEAREST), constants))?;
    let Parts::Finite { coefficient: mut digits, exponent: mut power, .. } = root.parts() else { return None };
    let is_exact = document::compare::equal(
        document::Value::Decimal128(multiply(root, root)),
        document::Value::Decimal128(shifted),
    ) && Wide::from(digits).digits() <= DIGITS / 2 + 1;
    while is_exact && power < 0 && digits % 10 == 0 {
        digits /= 10;
        power += 1;
    }
    Decimal128::from_parts(false, digits, power + wanted)
}

fn to_big_exactly(number: Decimal128) -> Option<BigFloat> {
    let text = number.to_string();
    with_constants(|constants| BigFloat::parse(&text, Radix::Dec, WORKING_BITS, NEAREST, constants))
}

/// Returns the logarithm to a base. The server has the bases 2 and 10; for others it divides by the
/// logarithm of the base.
pub fn logarithm(number: Decimal128, base: Decimal128) -> Option<Decimal128> {
    match base.to_i64_exact() {
        Some(2) => apply(number, BigFloat::log2),
        Some(10) => apply(number, BigFloat::log10),
        _ => Some(divide(apply(number, BigFloat::ln)?, base)),
    }
}

/// Returns a power, with all its 34 digits written out.
pub fn power(base: Decimal128, exponent: Decimal128) -> Decimal128 {
    let nearly = base.to_f64().powf(exponent.to_f64());
    if base.is_zero() && nearly == 0.0 {
        return nothing(EXPONENT_MIN);
    }
    let computed = to_big(base).zip(to_big(exponent)).and_then(|(number, times)| {
        with_constants(|constants| {
            let result = number.pow(&times, WORKING_BITS, AS_IT_COMES, constants);
            from_big(&as_result(result), constants)
        })
    });
    match computed.unwrap_or_else(|| super::from_f64(nearly)) {
        small if small.is_zero() => nothing(EXPONENT_MIN),
        power => spelled_out(power),
    }
}

/// Appends zeros to the digits, so that there are 34.
fn spelled_out(number: Decimal128) -> Decimal128 {
    let Parts::Finite { negative, coefficient, exponent } = number.parts() else { return number };
    let room = DIGITS.saturating_sub(Wide::from(coefficient).digits()).min((exponent - EXPONENT_MIN).max(0) as u32);
    let digits = Wide::from(coefficient).times_power_of_ten(room).low();
    Decimal128::from_parts(negative, digits, exponent - room as i32).unwrap_or(number)
}

/// Returns zero with an exponent.
fn nothing(exponent: i32) -> Decimal128 {
    Decimal128::from_parts(false, 0, exponent).unwrap_or(NAN)
}

/// Returns the results for which the server's library has special exponents, and those at infinity.
pub fn corner(name: &str, number: Decimal128) -> Option<Decimal128> {
    let one = |negative| Decimal128::from_parts(negative, 1, 0);
    if let Parts::Infinity { negative } = number.parts() {
        return match name {
            "$atan" => Decimal128::from_parts(negative, QUARTER_TURN, 1 - DIGITS as i32),
            "$tanh" => one(negative),
            _ => None,
        };
    }
    match name {
        "$tan" | "$asin" | "$sinh" if number.is_zero() => Some(nothing(-40)),
        "$asinh" | "$atanh" if number.is_zero() => Some(nothing(EXPONENT_MIN)),
        "$cos" | "$cosh" if size(number).is_some_and(|size| size < -(DIGITS as i32)) || number.is_zero() => {
            one(false).map(spelled_out)
        }
        "$exp" if number.to_f64() < f64::from(4 * EXPONENT_MIN) => Some(nothing(EXPONENT_MIN)),
        "$acos" if number.to_i64_exact() == Some(1) => Some(nothing(EXPONENT_MIN)),
        _ => None,
    }
}
