//! From a filter document to a tree: the top level, where names are fields or logical operators.

use super::level::{Level, not_optimized};
use super::operands::{comparable, is_operator_document, is_reference_field};
use super::operators::{ill_formed_pattern, parse_operators, parse_regex_value};
use super::schema::parse::parse_schema;
use super::simplify;
use super::tree::{Node, Test};
use crate::Context;
use crate::expression::Expression;
use document::path::Path;
use document::{Doc, DocBuf, Element, Kind, Value, doc};
use error::{Code, Error, Result};
use fulltext::TextSearch;
use geo::near::{Near, is_near};
use std::cell::RefCell;
use std::sync::Arc;
use steps::Counted;
use values::text;

/// Maximal number of components of a path: the number of levels of a stored document.
const PARTS_MAX: usize = 180;

/// Parses a whole filter.
pub(crate) fn parse(filter: Doc<'_>, context: &Context) -> Result<Node> {
    let failure = RefCell::new(None);
    let root = parse_filter(filter, Level::top(context, &failure, parse_filter))?;
    context.folding.report(failure.into_inner())?;
    Ok(root)
}

/// Parses the filter of a command, which may sort documents by distance.
pub(crate) fn parse_query(filter: Doc<'_>, context: &Context) -> Result<Node> {
    let failure = RefCell::new(None);
    let root = parse_filter(filter, Level { of_command: true, ..Level::top(context, &failure, parse_filter) })?;
    context.folding.report(failure.into_inner())?;
    Ok(root)
}

/// Returns whether a filter that was parsed successfully contains `$expr`.
pub(crate) fn has_expression(filter: Doc<'_>) -> bool {
    filter.elements().counted().any(|element| match element.key_bytes() {
        b"$expr" => true,
        b"$and" | b"$or" | b"$nor" => {
            let branches = element.value().as_array().unwrap_or(Doc::EMPTY);
            branches.values().counted().filter_map(Value::as_document).any(has_expression)
        }
        _ => false,
    })
}

/// Parses a filter, or a branch of one.
pub(crate) fn parse_filter(filter: Doc<'_>, level: Level<'_>) -> Result<Node> {
    let several = |all: &Vec<Node>| all.len() > 1;
    level.within_expression(|| parse_conditions(filter, level), several).map(simplify::and)
}

fn parse_conditions(filter: Doc<'_>, level: Level<'_>) -> Result<Vec<Node>> {
    let mut all = Vec::new();
    for element in filter.elements() {
        steps::step();
        let name = element.key();
        if let Some(operator) = name.strip_prefix('$').filter(|_| !is_reference_field(name)) {
            parse_pathless(operator, element, level, &mut all)?;
            continue;
        }
        if name.split('.').nth(PARTS_MAX).is_some() {
            return Err(Error::new(Code(5729100), "FieldPath is too long"));
        }
        let path = Path::new(name);
        if is_reference_field(name) {
            // Names that are operators elsewhere are none here.
            all.push(Node::Path { path, test: level.collated(Test::Equal(comparable(element.value())?)) });
            continue;
        }
        match element.value() {
            Value::Document(operators) if operators.first().is_some_and(|it| is_near(it.key())) => {
                if !level.of_command || !level.whole_document {
                    return Err(level.refuse_near(name, operators));
                }
                all.push(Node::Near(Arc::new(Near::parse(name, operators)?)));
            }
            Value::Document(operators) if is_operator_document(operators) => {
                let condition = |test| Node::Path { path: path.clone(), test };
                all.extend(parse_operators(name, operators, level)?.into_iter().map(|test| match test {
                    Test::And(tests) => Node::And(tests.into_iter().map(condition).collect()),
                    test => condition(test),
                }));
            }
            Value::Regex { pattern, options } => {
                all.push(Node::Path { path, test: parse_regex_value(pattern, options)? });
            }
            Value::IllFormed { kind: Kind::Regex, .. } => return Err(ill_formed_pattern()),
            value => all.push(Node::Path { path, test: level.collated(Test::Equal(comparable(value)?)) }),
        }
    }
    Ok(all)
}

fn parse_pathless(operator: &str, element: Element<'_>, level: Level<'_>, all: &mut Vec<Node>) -> Result<()> {
    match operator {
        "and" => all.push(simplify::and(parse_branches(element, level)?)),
        "or" => all.push(simplify::or(parse_branches(element, level)?, level)),
        "nor" => all.push(Node::Nor(parse_branches(element, level)?)),
        "comment" => {}
        "alwaysTrue" => check_one(element)?,
        "alwaysFalse" => {
            check_one(element)?;
            all.push(Node::Never);
        }
        "expr" | "text" | "where" | "sampleRate" if !level.whole_document => {
            return Err(Error::bad_value(format!("${operator} can only be applied to the top-level document")));
        }
        "expr" => {
            let (expression, failure) = Expression::parse_folding(element.value(), level.context)?;
            if let Some(failure) = failure {
                level.failure.borrow_mut().get_or_insert_with(|| not_optimized(failure));
            }
            all.push(Node::expression(expression.into_reparsed()));
        }
        "jsonSchema" => match element.value() {
            Value::Document(schema) => all.push(Node::Schema(Arc::new(parse_schema(schema)?))),
            _ => return Err(Error::type_mismatch("$jsonSchema must be an object")),
        },
        "text" => {
            let search = TextSearch::parse(element.value(), level.context.text_indexes.current())?;
            let partial = search.index.partial_filter.as_ref();
            let partial = partial.map(|filter| parse(filter.as_doc(), &Context::at(0))).transpose()?;
            all.push(Node::Text { search: Arc::new(search), partial: partial.map(Arc::new) });
        }
        "where" => return Err(refuse_script(element, level)),
        "sampleRate" => all.push(parse_sample_rate(element.value(), level.context)?),
        "not" => {
            return Err(Error::bad_value(
                "unknown top level operator: $not. If you are trying to negate an entire expression, use $nor.",
            ));
        }
        _ => {
            return Err(Error::bad_value(format!(
                "unknown top level operator: ${operator}. If you have a field name that starts with a '$' symbol, \
                 consider using $getField or $setField."
            )));
        }
    }
    Ok(())
}

/// Returns the error for JavaScript, which is not supported: `$where` fails as on a server that was
/// started without it.
fn refuse_script(element: Element<'_>, level: Level<'_>) -> Error {
    match element.kind {
        _ if !level.of_command => Error::bad_value("$where is not allowed in this context"),
        Kind::String | Kind::Code | Kind::CodeWithScope => {
            Error::new(Code(6108304), "no globalScriptEngine in $where parsing")
        }
        _ => Error::bad_value("$where got bad type"),
    }
}

/// Parses `{$sampleRate: p}`, a comparison with a random number.
fn parse_sample_rate(rate: Value<'_>, context: &Context) -> Result<Node> {
    if !rate.kind().is_number() {
        return Err(Error::bad_value("argument to $sampleRate must be a numeric type"));
    }
    let number = match rate {
        Value::Double(number) => number,
        Value::Decimal128(number) => number.to_f64(),
        whole => values::integer::as_i64_truncated(whole).unwrap_or(-1) as f64,
    };
    if !(0.0..=1.0).contains(&number) {
        return Err(Error::bad_value("numeric argument to $sampleRate must be in [0, 1]"));
    }
    if number == 1.0 {
        return Ok(simplify::and(Vec::new()));
    }
    if number == 0.0 {
        return Ok(Node::Never);
    }
    let random = doc! { "$rand": &doc! {} };
    let mut operands = DocBuf::new();
    operands.append("0", &random);
    operands.append("1", number);
    let mut test = DocBuf::new();
    test.append("$lt", Value::Array(operands.as_doc()));
    Ok(Node::expression(Expression::parse(Value::Document(test.as_doc()), context)?))
}

fn parse_branches(element: Element<'_>, level: Level<'_>) -> Result<Vec<Node>> {
    let operator = element.key();
    let level = level.deeper(operator)?;
    let Value::Array(branches) = element.value() else {
        return Err(Error::bad_value(format!("{operator} must be an array")));
    };
    if branches.is_empty() {
        return Err(Error::bad_value("$and/$or/$nor must be a nonempty array"));
    }
    let parse = |branch: Value<'_>| match branch {
        Value::Document(branch) => parse_filter(branch, level),
        _ => Err(Error::bad_value("$or/$and/$nor entries need to be full objects")),
    };
    level.within_expression(|| branches.values().counted().map(parse).collect(), |_| true)
}

/// Fails unless the operand of `$alwaysTrue` or `$alwaysFalse` is the number 1.
fn check_one(element: Element<'_>) -> Result<()> {
    let operator = element.key();
    if !element.kind.is_number() {
        let found = text::element(operator, element.value());
        return Err(Error::failed_to_parse(format!("Expected a number in: {found}")));
    }
    match values::integer::as_i64_exact(element.value()) {
        Some(1) => Ok(()),
        _ => Err(Error::failed_to_parse(format!("{operator} must be an integer value of 1"))),
    }
}
