use super::Expression;
use crate::Context;
use error::Result;
use shorthand::{document, value};

const INPUT: &str = "{s: 'str', i: 5, l: 7L, d: 2.5, n: null, b: true, a: [1, 2, 3], o: {x: 1}, z: 0, neg: -1, e: [], \
                     as: ['a', 'b'], t: Date(1582979696789), docs: [{x: 1}, {x: 2}, 3]}";

fn evaluate(expression: &str) -> Result<Option<document::ValueBuf>> {
    let parsed = Expression::parse(value(expression).as_value(), &Context::at(0))?;
    Ok(parsed.evaluate(document(INPUT).as_doc())?.into_owned())
}

/// Checks the values of expressions for [`INPUT`]; expectations are a 6.0 server's.
fn check_expressions(cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        let expected = if *expected == "missing" { None } else { Some(value(expected)) };
        let found = evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        assert_eq!(found, expected, "{expression}");
    }
}

fn check_refused(cases: &[(&str, i32, &str)]) {
    for (expression, code, message) in cases {
        match evaluate(expression) {
            Ok(found) => panic!("{expression} gives {found:?}"),
            Err(error) => assert_eq!((error.code().0, error.message()), (*code, *message), "{expression}"),
        }
    }
}

#[test]
fn paths_and_variables() {
    check_expressions(&[
        ("'$o.x'", "1"),
        ("'$docs.x'", "[1, 2]"),
        ("'$a.0'", "[]"),
        ("'$missing.x'", "missing"),
        ("'$$ROOT.o.x'", "1"),
        ("'$$REMOVE'", "missing"),
        ("['$i', '$missing']", "[5, null]"),
        ("{y: '$missing', x: '$i'}", "{x: 5}"),
        ("{$literal: '$i'}", "'$i'"),
        ("{$let: {vars: {CURRENT: '$o'}, in: '$x'}}", "1"),
        ("{$let: {vars: {v: '$o'}, in: {$let: {vars: {w: '$i'}, in: {$add: ['$$v.x', '$$w']}}}}}", "6"),
    ]);
    check_refused(&[
        ("'$'", 16872, "'$' by itself is not a valid FieldPath"),
        ("'$$'", 9, "empty variable names are not allowed"),
        ("'$a..b'", 15998, "FieldPath field names may not be empty strings."),
        ("'$$x'", 17276, "Use of undefined variable: x"),
        ("'$$_x'", 9, "'_x' starts with an invalid character for a user variable name"),
        ("{$foo: 1}", 168, "Unrecognized expression '$foo'"),
        ("{$let: {vars: {X: 1}, in: 1}}", 9, "'X' starts with an invalid character for a user variable name"),
    ]);
}

#[test]
fn arithmetic() {
    check_expressions(&[
        ("{$add: [2147483647, 1]}", "2147483648L"),
        ("{$add: [9223372036854775807L, 1]}", "9223372036854775808.0"),
        ("{$add: [9223372036854775807L, 1, -1]}", "9223372036854775807L"),
        ("{$add: [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]}", "1.0"),
        ("{$add: ['$t', 1.5]}", "Date(1582979696790)"),
        ("{$add: ['$i', '$missing']}", "null"),
        ("{$subtract: ['$t', '$t']}", "0L"),
        ("{$subtract: [-2147483648, 1]}", "-2147483649L"),
        ("{$multiply: [1073741824, 4]}", "4294967296L"),
        ("{$multiply: []}", "1"),
        ("{$divide: [6, 3]}", "2.0"),
        ("{$mod: [-7, 3]}", "-1"),
        ("{$mod: [7, 2.0]}", "1"),
        ("{$mod: ['$d', 1]}", "0.5"),
        ("{$abs: -2147483648}", "2147483648L"),
        ("{$round: 2.5}", "2.0"),
        ("{$round: [1350, -2]}", "1400"),
        ("{$round: [1.005, 2]}", "1.0"),
        ("{$trunc: [2.3, 1]}", "2.2"),
        ("{$pow: [2, 63]}", "9223372036854775808.0"),
        ("{$pow: [-1, -3]}", "-1"),
        ("{$sqrt: 16}", "4.0"),
        ("{$log: [8, 2]}", "3.0"),
        ("{$sum: ['$a', 1]}", "1"),
        ("{$sum: '$a'}", "6"),
        ("{$avg: '$a'}", "2.0"),
        ("{$max: ['$n', 3]}", "3"),
    ]);
    check_refused(&[
        ("{$add: ['$s', 1]}", 16554, "$add only supports numeric or date types, not string"),
        ("{$add: ['$t', '$t']}", 16612, "only one date allowed in an $add expression"),
        ("{$subtract: ['$i', '$s']}", 14, "can't $subtract string from int"),
        ("{$divide: ['$i', '$z']}", 2, "can't $divide by zero"),
        ("{$mod: ['$i', '$z']}", 16610, "can't $mod by zero"),
        ("{$substr: ['$s', 1]}", 16020, "Expression $substrBytes takes exactly 3 arguments. 2 were passed in."),
        ("{$subtract: ['$i']}", 16020, "Expression $subtract takes exactly 2 arguments. 1 were passed in."),
        ("{$sqrt: '$neg'}", 28714, "$sqrt's argument must be greater than or equal to 0"),
        ("{$round: [1.5, 101]}", 51083, "cannot apply $round with precision value 101 value must be in [-20, 100]"),
    ]);
}

#[test]
fn decisions_and_comparison() {
    check_expressions(&[
        ("{$cond: ['$b', '$missing', 1]}", "missing"),
        ("{$cond: {if: '$z', then: 1, else: 2}}", "2"),
        ("{$ifNull: ['$n', '$missing', '$i']}", "5"),
        ("{$switch: {branches: [{case: '$n', then: 2}], default: 7}}", "7"),
        ("{$and: ['$b', '$z']}", "false"),
        ("{$or: []}", "false"),
        ("{$not: ['$n']}", "true"),
        ("{$cmp: ['$n', '$missing']}", "1"),
        ("{$gt: ['$missing', MinKey]}", "true"),
        ("{$eq: [1, 1.0]}", "true"),
        ("{$type: '$missing'}", "'missing'"),
    ]);
    check_refused(&[
        ("{$switch: {branches: []}}", 40068, "$switch requires at least one branch"),
        ("{$cond: {if: 1, then: 2}}", 17082, "Missing 'else' parameter to $cond"),
        ("{$ifNull: ['$n']}", 1257300, "$ifNull needs at least two arguments, had: 1"),
    ]);
}

#[test]
fn strings() {
    check_expressions(&[
        ("{$concat: ['$s', '!']}", "'str!'"),
        ("{$concat: ['$s', '$n']}", "null"),
        ("{$toUpper: 'éb'}", "'éB'"),
        ("{$toLower: '$missing'}", "''"),
        ("{$substrBytes: ['hello', 1, -1]}", "'ello'"),
        ("{$substrCP: ['éaé', 1, 5]}", "'aé'"),
        ("{$strLenBytes: 'é'}", "2"),
        ("{$strLenCP: 'é'}", "1"),
        ("{$split: ['a,b,,c', ',']}", "['a', 'b', '', 'c']"),
        ("{$indexOfCP: ['éaé', 'é', 1]}", "2"),
        ("{$indexOfBytes: ['éaé', 'é', 1]}", "3"),
        ("{$trim: {input: ' x '}}", "'x'"),
        ("{$trim: {input: '$s', chars: 's'}}", "'tr'"),
        ("{$replaceAll: {input: '$s', find: '', replacement: 'i'}}", "'isitiri'"),
        ("{$regexFind: {input: '$s', regex: 't(.)(x)?'}}", "{match: 'tr', idx: 1, captures: ['r', null]}"),
        ("{$regexMatch: {input: '$s', regex: 'S', options: 'i'}}", "true"),
        ("{$strcasecmp: ['A', 'a']}", "0"),
    ]);
    check_refused(&[
        ("{$concat: ['$i']}", 16702, "$concat only supports strings, not int"),
        ("{$strLenCP: '$i'}", 34471, "$strLenCP requires a string argument, found: int"),
        ("{$split: ['a', '']}", 40087, "$split requires a non-empty separator"),
        ("{$toLower: '$a'}", 16007, "can't convert from BSON type array to String"),
        (
            "{$substrBytes: ['éa', 1, 1]}",
            28656,
            "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.",
        ),
    ]);
}

#[test]
fn arrays_and_objects() {
    check_expressions(&[
        ("{$size: '$a'}", "3"),
        ("{$arrayElemAt: ['$a', -1]}", "3"),
        ("{$arrayElemAt: ['$a', 5]}", "missing"),
        ("{$slice: ['$a', -2]}", "[2, 3]"),
        ("{$map: {input: '$a', in: {$add: ['$$this', 1]}}}", "[2, 3, 4]"),
        ("{$filter: {input: '$a', as: 'v', cond: {$gt: ['$$v', 1]}, limit: 1}}", "[2]"),
        ("{$reduce: {input: '$a', initialValue: 0, in: {$add: ['$$value', '$$this']}}}", "6"),
        ("{$concatArrays: ['$a', '$as']}", "[1, 2, 3, 'a', 'b']"),
        ("{$in: [1.0, '$a']}", "true"),
        ("{$range: [5, 0, -2]}", "[5, 3, 1]"),
        ("{$zip: {inputs: ['$a', '$as'], useLongestLength: true}}", "[[1, 'a'], [2, 'b'], [3, null]]"),
        ("{$setUnion: [[1, 2, 2], [3, 1]]}", "[1, 2, 3]"),
        ("{$setDifference: [[3, 1, 1, 2], [2]]}", "[3, 1]"),
        ("{$sortArray: {input: [3, 'a', null, [1], {x: 1}], sortBy: 1}}", "[null, 3, 'a', {x: 1}, [1]]"),
        ("{$maxN: {n: 2, input: [1, null, 3]}}", "[3, 1]"),
        ("{$mergeObjects: ['$o', {x: 2, y: 3}, null]}", "{x: 2, y: 3}"),
        ("{$objectToArray: '$o'}", "[{k: 'x', v: 1}]"),
        ("{$arrayToObject: [[['a', 1], ['b', 2]]]}", "{a: 1, b: 2}"),
        ("{$getField: {field: 'x', input: '$o'}}", "1"),
        ("{$setField: {field: 'x', input: '$o', value: '$$REMOVE'}}", "{}"),
    ]);
    check_refused(&[
        ("{$size: '$n'}", 17124, "The argument to $size must be an array, but was of type: null"),
        ("{$map: {input: '$i', in: 1}}", 16883, "input to $map must be an array not int"),
        ("{$in: [1, '$i']}", 40081, "$in requires an array as a second argument, found: int"),
        ("{$mergeObjects: ['$i']}", 40400, "$mergeObjects requires object inputs, but input 5 is of type int"),
        ("{$range: [0, 5, 0]}", 34449, "$range requires a non-zero step value"),
    ]);
}

#[test]
fn conversion() {
    check_expressions(&[
        ("{$toInt: '12'}", "12"),
        ("{$toInt: 2.9}", "2"),
        ("{$toString: 123456789.123}", "'1.23457e+08'"),
        ("{$toString: '$t'}", "'2020-02-29T12:34:56.789Z'"),
        ("{$toBool: '$s'}", "true"),
        ("{$toLong: '$t'}", "1582979696789L"),
        ("{$toDate: '2020-01-02T03:04:05.123+02:00'}", "Date(1577927045123)"),
        ("{$convert: {input: '$s', to: 'int', onError: 'bad'}}", "'bad'"),
        ("{$convert: {input: '$n', to: 'int', onNull: 7}}", "7"),
    ]);
    check_refused(&[
        (
            "{$toInt: '$s'}",
            241,
            "Failed to parse number 'str' in $convert with no onError value: Did not consume whole string.",
        ),
        ("{$toInt: 1e10}", 241, "Conversion would overflow target type in $convert with no onError value: 1e+10"),
        ("{$toInt: '$a'}", 241, "Unsupported conversion from array to int in $convert with no onError value"),
    ]);
}

#[test]
fn dates() {
    check_expressions(&[
        ("{$year: '$t'}", "2020"),
        ("{$dayOfWeek: '$t'}", "7"),
        ("{$week: '$t'}", "8"),
        ("{$isoWeek: '$t'}", "9"),
        ("{$isoWeekYear: '$t'}", "2020L"),
        ("{$hour: {date: '$t', timezone: '+05:30'}}", "18"),
        ("{$hour: {date: '$t', timezone: 'America/New_York'}}", "7"),
        ("{$dateToString: {date: '$t', format: '%Y-%m-%d %j %U %V %z %Z'}}", "'2020-02-29 060 08 09 +0000 0'"),
        ("{$dateFromParts: {year: 2020, month: 13, day: 0}}", "Date(1609372800000)"),
        ("{$dateFromString: {dateString: '02/01/2020', format: '%d/%m/%Y'}}", "Date(1577923200000)"),
        ("{$dateAdd: {startDate: '$t', unit: 'year', amount: 1}}", "Date(1614515696789)"),
        ("{$dateTrunc: {date: '$t', unit: 'week'}}", "Date(1582416000000)"),
        ("{$dateDiff: {startDate: '$t', endDate: Date(1577836799005), unit: 'day'}}", "-60L"),
    ]);
    check_refused(&[
        ("{$year: '$s'}", 16006, "can't convert from BSON type string to Date"),
        ("{$hour: {date: '$t', timezone: '+5'}}", 40485, "unrecognized time zone identifier: \"+5\""),
        ("{$dateToString: {date: '$t', format: '%q'}}", 18536, "Invalid format character '%q' in format string"),
    ]);
}

#[test]
fn values_on_the_way_are_bounded() {
    let doubling = "{$reduce: {input: {$range: [0, 60]}, initialValue: ['some text'], in: {$concatArrays: ['$$value', '$$value']}}}";
    assert_eq!(evaluate(doubling).expect_err("too large").code().0, 13548);
}
