//! Expressions as evaluated by MongoDB's second engine.
//!
//! MongoDB 6.0 runs a `$group` at the front of a pipeline in an engine of its own, if that supports
//! everything in it. It has other error codes, and some operators check the types of their
//! arguments in another order: null precedes errors of the other arguments.
//!
//! Operators compute the same values, so a rule is wrapped around a call: the checks before it, and
//! the other codes of its errors.

use super::date::check_zone;
use super::functions;
use super::iterate;
use super::scope::Scope;
use super::{Evaluated, Expr, Expression, Form};
use document::Value;
use error::{Code, Error, Result};
use values::number::Number;

/// How the engine differs for one operator.
#[derive(Debug)]
pub(crate) struct Rule {
    name: &'static str,
    /// Checks or changes the arguments; a returned value replaces the call's.
    before: Option<Before>,
    errors: &'static [Replaced],
}

type Before = for<'a> fn(&str, &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>>;

/// A code, and the code and the message that replace it. `~` in a message is the operator's name.
type Replaced = (i32, i32, &'static str);

impl Expression {
    /// Returns whether the engine supports everything in the expression.
    pub fn is_known_to_second_engine(&self) -> bool {
        self.known
    }

    /// Applies the rules of the second engine.
    pub fn enter_second_engine(&mut self) {
        let is_folded = |function: &functions::Function| matches!(function.folding(), functions::Folding::Full);
        if let Expr::Call(function, arguments) = &self.root
            && is_folded(function)
            && arguments.iter().all(Expr::is_constant)
        {
            // Constants are computed by the first engine.
            return;
        }
        self.root.each_mut(&mut |part| {
            let name = match part {
                Expr::Call(function, _) => function.name,
                Expr::Form(form) => match **form {
                    Form::Switch { .. } => "$switch",
                    Form::Filter { .. } => "$filter",
                    _ => return,
                },
                _ => return,
            };
            if let Some(rule) = RULES.iter().find(|rule| rule.name == name) {
                let plain = std::mem::replace(part, Expr::Missing);
                *part = Expr::InSecondEngine(Box::new(plain), rule);
            }
        });
    }
}

/// Returns whether the engine supports an expression as it was written, including parts that are
/// folded later.
pub(super) fn is_known(root: &Expr) -> bool {
    let mut known = true;
    root.each(&mut |part| known &= is_known_part(part));
    known
}

impl Expr {
    /// Returns the number of `$and` and `$or` with a single condition.
    pub(super) fn lone_conditions(&self) -> usize {
        let mut count = 0;
        self.each(&mut |part| {
            let is_lone =
                matches!(part, Expr::Form(form) if matches!(&**form, Form::And(all) | Form::Or(all) if all.len() == 1));
            count += usize::from(is_lone);
        });
        count
    }
}

fn is_known_part(part: &Expr) -> bool {
    match part {
        Expr::Call(function, _) => {
            PLAIN.contains(&function.name) || RULES.iter().any(|rule| rule.name == function.name)
        }
        Expr::Form(form) => !matches!(**form, Form::Map { .. } | Form::Reduce { .. }),
        Expr::Array(_) | Expr::Metadata(_) => false,
        _ => true,
    }
}

impl Rule {
    pub(super) fn evaluate<'s>(&'static self, plain: &'s Expr, scope: &Scope<'s>) -> Result<Evaluated<'s>> {
        let value = match (plain, self.before) {
            (Expr::Call(function, arguments), Some(before)) => {
                functions::call_with(arguments, scope, |values| match before(self.name, values)? {
                    Some(value) => Ok(value),
                    None => function.apply(values, scope.collation),
                })
            }
            (Expr::Form(form), _) => check_limit(form, scope).and_then(|()| form.evaluate(scope)),
            (plain, _) => plain.evaluate(scope),
        };
        value.map_err(|error| self.error(error))
    }

    fn error(&self, error: Error) -> Error {
        replaced(self.name, self.errors, error)
    }
}

/// Checks the limit of a `$filter` before its input.
fn check_limit<'s>(form: &'s Form, scope: &Scope<'s>) -> Result<()> {
    match form {
        Form::Filter { limit: Some(limit), .. } => iterate::filter_limit(&limit.evaluate(scope)?).map(drop),
        _ => Ok(()),
    }
}

fn replaced(name: &str, errors: &[Replaced], error: Error) -> Error {
    // If one code covers errors of several arguments, the quoted name of the argument distinguishes
    // them.
    let quoted = |text: &str| text.split('\'').nth(1).filter(|name| !name.is_empty()).map(|name| format!("'{name}'"));
    let is_meant = |text: &str| quoted(text).is_none_or(|quoted| error.message().contains(&quoted));
    let same_code = || errors.iter().filter(|(classic, ..)| Code(*classic) == error.code());
    match same_code().find(|(.., text)| is_meant(text)).or_else(|| same_code().next()) {
        Some((_, code, text)) => Error::new(Code(*code), text.replace('~', name)),
        None => error,
    }
}

/// Returns the error of `$mergeObjects` as an accumulator.
pub fn of_merge_objects(error: Error) -> Error {
    replaced("$mergeObjects", &[(40400, 5911200, "~ only supports objects")], error)
}

/// Returns the error of the `$switch` that `$bucket` is translated into.
pub fn of_switch(error: Error) -> Error {
    replaced("$switch", NO_BRANCH, error)
}

/// Operators that are the same in both engines.
const PLAIN: &[&str] = &["$eq", "$ne", "$isArray", "$isNumber", "$not"];

const NO_BRANCH: &[Replaced] =
    &[(40066, 4934200, "~ could not find a matching branch for an input, and no default was specified.")];
const ANGLE: &[Replaced] = &[(28765, 4995501, "~ supports only numeric types")];
const BOUNDED: &[Replaced] =
    &[(28765, 4995502, "~ supports only numeric types"), (50989, 4995503, "Cannot apply ~, value is out of its range")];
const SETS: &[Replaced] = &[
    (17043, 5126900, "All operands of ~ must be arrays."),
    (17047, 5126900, "All operands of ~ must be arrays."),
    (17048, 5126900, "All operands of ~ must be arrays."),
    (17049, 5126900, "All operands of ~ must be arrays."),
];
const DAYS: &[Replaced] = &[(16006, 4998202, "~ date must have a format of a date")];
const SEARCHES: &[Replaced] = &[
    (51104, 5073401, "~: input must be of type string"),
    (51105, 5126601, "~: regex pattern must have either string or BSON RegEx type"),
    (51106, 5126603, "~: regex flags must have either string or null type"),
    (51156, 5073403, "~: error occurred while executing the regular expression"),
];
const INDEX_OF: &[Replaced] = &[
    (40091, 5075300, "~ string must resolve to a string or null"),
    (40093, 5075300, "~ string must resolve to a string or null"),
    (40097, 5075304, "~ start index must be positive"),
    (40096, 5075303, "~ start index must resolve to a number"),
];
const SHIFTS: &[Replaced] = &[
    (40517, 5166601, "~ expects timezone argument of type string"),
    (40485, 5166602, "~ expects a valid timezone"),
    (5166403, 5166603, "~ must have startDate argument convertable to date"),
    (5166404, 5166604, "~ expects unit argument of type string"),
    (9, 5166605, "~ expects a valid time unit"),
    (5166405, 5166606, "~ has an invalid amount argument"),
];
const DIFFERENCE: &[Replaced] = &[
    (5166307, 5166500, "~ parameter 'startDate' must be coercible to date"),
    (5166307, 5166501, "~ parameter 'endDate' must be coercible to date"),
    (5439013, 5166502, "~ parameter 'unit' must be a string"),
    (5439014, 5166503, "~ parameter 'unit' must be a valid time unit"),
    (40517, 5166504, "~ parameter 'timezone' must be a string"),
    (40485, 5166505, "~ parameter 'timezone' must be a valid timezone"),
    (5439015, 5338801, "~ parameter 'startOfWeek' must be a string"),
    (5439016, 5338802, "~ parameter 'startOfWeek' must be a valid day of the week"),
];
const FROM_PARTS: &[Replaced] = &[
    (31034, 4848972, "a part of a date must evaluate to a value in the range [-32768, 32767]"),
    (31095, 4848972, "isoWeekYear must evaluate to an integer in the range 1 to 9999"),
    (40523, 4848972, "year must evaluate to an integer in the range 1 to 9999"),
    (40515, 4848979, "a part of a date must evaluate to an integer"),
    (40517, 4848980, "timezone must evaluate to a string"),
];
const TO_PARTS: &[Replaced] = &[
    (40517, 4997701, "~ timezone must be a string"),
    (40521, 4997702, "~ iso8601 must be a boolean"),
    (16006, 4997703, "~ date must have the format of a date"),
    (40485, 4997704, "~ timezone must be a valid timezone"),
];
const REPLACING: &[Replaced] = &[
    (51746, 5154400, "~ requires that 'input' be a string"),
    (51745, 5154400, "~ requires that 'find' be a string"),
    (51744, 5154400, "~ requires that 'replacement' be a string"),
];
const NOT_NUMERIC: &str = "~ only supports numeric types";
const CASES: &[Replaced] = &[(16007, 5066300, "~ input type is not supported")];

const fn rule(name: &'static str, errors: &'static [Replaced]) -> Rule {
    Rule { name, before: None, errors }
}

const fn looking(name: &'static str, before: Before, errors: &'static [Replaced]) -> Rule {
    Rule { name, before: Some(before), errors }
}

static RULES: &[Rule] = &[
    rule("$abs", &[(28765, 4903700, NOT_NUMERIC)]),
    rule("$ceil", &[(28765, 4903702, NOT_NUMERIC)]),
    rule("$exp", &[(28765, 4903703, NOT_NUMERIC)]),
    rule("$floor", &[(28765, 4903704, NOT_NUMERIC)]),
    rule("$ln", &[(28765, 4903705, NOT_NUMERIC), (28766, 4903706, "~'s argument must be a positive number")]),
    rule("$log10", &[(28765, 4903707, NOT_NUMERIC), (28761, 4903708, "~'s argument must be a positive number")]),
    rule(
        "$sqrt",
        &[(28765, 4903709, NOT_NUMERIC), (28714, 4903710, "~'s argument must be greater than or equal to 0")],
    ),
    looking("$add", add, &[]),
    looking("$multiply", multiply, &[(14, 5073102, "only numbers are allowed in an $multiply expression")]),
    rule("$divide", &[(2, 4848401, "can't $divide by zero"), (14, 5073101, NOT_NUMERIC)]),
    rule(
        "$mod",
        &[
            (16610, 4848403, "can't $mod by zero"),
            (5733415, 4848403, "can't $mod by zero"),
            (16611, 5154000, NOT_NUMERIC),
        ],
    ),
    rule("$sin", BOUNDED),
    rule("$cos", BOUNDED),
    rule("$tan", BOUNDED),
    rule("$asin", BOUNDED),
    rule("$acos", BOUNDED),
    rule("$acosh", BOUNDED),
    rule("$atanh", BOUNDED),
    rule("$atan", ANGLE),
    rule("$sinh", ANGLE),
    rule("$cosh", ANGLE),
    rule("$tanh", ANGLE),
    rule("$asinh", ANGLE),
    rule("$degreesToRadians", ANGLE),
    rule("$radiansToDegrees", ANGLE),
    looking(
        "$atan2",
        null_first,
        &[(51044, 5688500, "~ supports only numeric types"), (51045, 5688500, "~ supports only numeric types")],
    ),
    looking("$cmp", nothing_first, &[]),
    looking("$gt", nothing_first, &[]),
    looking("$gte", nothing_first, &[]),
    looking("$lt", nothing_first, &[]),
    looking("$lte", nothing_first, &[]),
    looking("$concat", null_first, &[(16702, 5073001, "~ supports only strings")]),
    rule("$toLower", CASES),
    rule("$toUpper", CASES),
    looking("$indexOfBytes", index_of, INDEX_OF),
    looking("$indexOfCP", index_of, INDEX_OF),
    rule("$replaceOne", REPLACING),
    looking("$regexMatch", search, SEARCHES),
    looking("$regexFind", search, SEARCHES),
    looking("$regexFindAll", search, SEARCHES),
    looking("$concatArrays", null_first, &[(28664, 5153400, "~ only supports arrays")]),
    looking("$setUnion", null_first, SETS),
    looking("$setIntersection", null_first, SETS),
    rule("$setDifference", SETS),
    rule("$anyElementTrue", &[(17041, 5159200, "~'s argument must be an array")]),
    rule("$reverseArray", &[(34435, 5154901, "~ argument must be an array")]),
    rule("$sortArray", &[(2942504, 6096700, "~ input argument must be an array")]),
    rule(
        "$filter",
        &[
            (28651, 5073201, "input to $filter must be an array"),
            (327391, 327391, "'$filter.limit' must evaluate to an integer"),
            (327392, 327392, "'$filter.limit' must be greater than 0"),
        ],
    ),
    looking("$range", range, &[]),
    rule(
        "$arrayElemAt",
        &[
            (28689, 5126701, "~ first argument must be an array"),
            (28690, 5126702, "~ second argument must be a number"),
            (28691, 5126703, "~ second argument cannot be represented as a 32-bit integer"),
        ],
    ),
    rule("$first", &[(28689, 5126704, "~ argument must be an array")]),
    rule("$last", &[(28689, 5126704, "~ argument must be an array")]),
    rule("$bsonSize", &[(31393, 5043001, "~ requires a document input")]),
    rule("$switch", NO_BRANCH),
    looking("$dayOfMonth", day, DAYS),
    looking("$dayOfYear", day, DAYS),
    looking("$dayOfWeek", day, DAYS),
    rule("$dateToParts", TO_PARTS),
    rule("$dateFromParts", FROM_PARTS),
    rule("$dateAdd", SHIFTS),
    rule("$dateSubtract", SHIFTS),
    rule("$dateDiff", DIFFERENCE),
    rule("$tsSecond", &[(5687301, 5687400, "~ expects argument of type timestamp")]),
    rule("$tsIncrement", &[(5687302, 5687401, "~ expects argument of type timestamp")]),
];

/// Returns null if any argument is null, whatever the others are.
fn null_first<'a>(_: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
    Evaluated::look_at_all(arguments);
    Ok(arguments.iter().any(Evaluated::is_nullish).then_some(Evaluated::NULL))
}

/// Adds two arguments in one way, any other number of them in another.
fn add<'a>(name: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
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

fn multiply<'a>(name: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
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

/// Here a missing value sorts before MinKey.
fn nothing_first<'a>(_: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
    if arguments.iter().any(Evaluated::is_missing) {
        for argument in arguments.iter_mut().filter(|argument| argument.value() == Some(Value::MinKey)) {
            // Any other value sorts after it.
            *argument = Evaluated::Value(Value::MaxKey);
        }
    }
    Ok(None)
}

fn index_of<'a>(name: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
    let is_text = |argument: &Evaluated<'_>| matches!(argument.value(), Some(Value::String(_) | Value::Symbol(_)));
    match arguments {
        [text, part, ..] if is_text(text) && !is_text(part) => {
            let code = Code(if part.is_nullish() { 5075301 } else { 5075302 });
            Err(Error::new(code, format!("{name} substring must resolve to a string")))
        }
        _ => Ok(None),
    }
}

/// Checks the arguments of a search: with a null input the others are ignored, without a pattern the
/// result is missing. Options are checked before the pattern.
fn search<'a>(name: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
    Evaluated::look_at_all(arguments);
    let [input, pattern, options] = arguments else { return Ok(None) };
    if input.is_nullish() {
        *pattern = Evaluated::NULL;
        *options = Evaluated::NULL;
        return Ok(None);
    }
    let Some(Value::String(_)) = input.value() else { return Ok(None) };
    let refuse = |code: i32, reason: &str| Err(Error::new(Code(code), format!("{name}: {reason}")));
    match options.value() {
        Some(Value::String(given)) if given.contains('\0') => {
            return refuse(5126604, "regex flags must not have embedded null bytes");
        }
        Some(Value::String(given)) if !given.is_empty() => {
            if matches!(pattern.value(), Some(Value::Regex { options, .. }) if !options.is_empty()) {
                return refuse(5126605, "regex options cannot be specified in both BSON RegEx and 'options' field");
            }
        }
        Some(Value::String(_) | Value::Null | Value::Undefined) | None => {}
        Some(_) => return refuse(5126603, "regex flags must have either string or null type"),
    }
    Ok(pattern.is_missing().then_some(Evaluated::Missing))
}

fn range<'a>(name: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
    const PARTS: [(&str, i32, i32); 3] =
        [("start", 5154300, 5154303), ("end", 5154301, 5154304), ("step", 5154302, 5154305)];
    Evaluated::look_at_all(arguments);
    for (argument, (part, code, _)) in arguments.iter().zip(PARTS) {
        if argument.is_missing() {
            return Ok(Some(Evaluated::Missing));
        }
        if !argument.value_or_null().kind().is_number() {
            return Err(Error::new(Code(code), format!("{name} only supports numeric types for {part}")));
        }
    }
    for (argument, (part, _, code)) in arguments.iter().zip(PARTS) {
        let number = values::integer::exact(argument.value_or_null());
        match number.map(i32::try_from) {
            Some(Ok(0)) if part == "step" => {
                return Err(Error::new(Code(5154306), format!("{name} requires a non-zero step value")));
            }
            Some(Ok(_)) => {}
            _ => {
                let message = format!("{name} {part} argument cannot be represented as a 32-bit integer");
                return Err(Error::new(Code(code), message));
            }
        }
    }
    Ok(None)
}

/// Checks the time zone before the date.
fn day<'a>(name: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
    Evaluated::look_at_all(arguments);
    let [_, zone, is_given] = arguments else { return Ok(None) };
    match check_zone(name, zone, is_given.is_truthy()) {
        Ok(true) => Ok(None),
        Ok(false) => Ok(Some(Evaluated::NULL)),
        Err(error) if error.code() == Code(40485) => {
            Err(Error::new(Code(4998201), format!("{name} timezone must be a valid timezone")))
        }
        Err(_) => Err(Error::new(Code(4998200), format!("{name} timezone must be a string"))),
    }
}
