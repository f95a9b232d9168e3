//! From `{ $set: { … }, $inc: { … } }` to the tree of operators.

use super::add_to_set::AddToSet;
use super::arithmetic::{Arithmetic, ArithmeticOperation};
use super::array_filter::ArrayFilters;
use super::bit::Bit;
use super::operator::{Operand, Operator};
use super::pull::Pull;
use super::push::Push;
use super::tree::{self, FieldNodes, UpdateNode, check_path, depends_on_document, identifiers};
use document::{Doc, Value};
use error::{Error, Result};
use query::Context;
use std::cmp::Ordering;
use steps::Counted;
use values::text;

const OPERATORS: &[&str] = &[
    "$addToSet",
    "$bit",
    "$currentDate",
    "$inc",
    "$max",
    "$min",
    "$mul",
    "$pop",
    "$pull",
    "$pullAll",
    "$push",
    "$rename",
    "$set",
    "$setOnInsert",
    "$unset",
];

/// The operators of an update and their array filters.
#[derive(Clone, Debug)]
pub(super) struct Operators {
    pub tree: FieldNodes,
    pub filters: ArrayFilters,
    /// Whether a path contains `$`.
    pub needs_matched_index: bool,
}

struct OperatorParser<'c> {
    root: UpdateNode,
    filters: ArrayFilters,
    used_filters: Vec<bool>,
    needs_matched_index: bool,
    context: &'c Context,
}

pub(super) fn parse_operators(spec: Doc<'_>, filters: Option<Doc<'_>>, context: &Context) -> Result<Operators> {
    let filters = filters.map_or(Ok(ArrayFilters::default()), |filters| ArrayFilters::parse(filters, context))?;
    let used = vec![false; filters.len()];
    let mut parser = OperatorParser {
        root: UpdateNode::Fields(FieldNodes::default()),
        filters,
        used_filters: used,
        needs_matched_index: false,
        context,
    };
    for (operator, arguments) in spec.iter().counted() {
        if !OPERATORS.contains(&operator) {
            return Err(Error::failed_to_parse(format!(
                "Unknown modifier: {operator}. Expected a valid update modifier or pipeline-style update specified as an array"
            )));
        }
        let Value::Document(arguments) = arguments else {
            return Err(Error::failed_to_parse(format!(
                "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not {{{}}}",
                arguments.kind().alias(),
                text::element(operator, arguments)
            )));
        };
        for (path, argument) in arguments.iter().counted() {
            parser.add_operator(operator, path, argument)?;
        }
    }
    if let Some(unused) = parser.used_filters.iter().counted().position(|used| !used) {
        return Err(Error::failed_to_parse(format!(
            "The array filter for identifier '{}' was not used in the update {}",
            parser.filters.identifier(unused),
            text::document(spec)
        )));
    }
    let mut tree = match parser.root {
        UpdateNode::Fields(fields) => fields,
        _ => FieldNodes::default(),
    };
    tree.sort_children();
    Ok(Operators { tree, filters: parser.filters, needs_matched_index: parser.needs_matched_index })
}

impl OperatorParser<'_> {
    fn add_operator(&mut self, operator: &str, path: &str, argument: Value<'_>) -> Result<()> {
        check_path(path)?;
        if operator == "$rename" {
            return self.add_rename(path, argument);
        }
        let operator = self.parse_operator(operator, path, argument)?;
        self.insert(path, operator)
    }

    fn insert(&mut self, path: &str, operator: Operator) -> Result<()> {
        self.needs_matched_index |= path.split('.').any(|name| name == "$");
        tree::insert(&mut self.root, path, 0, operator)?;
        self.mark_filters_used(path)
    }

    fn mark_filters_used(&mut self, path: &str) -> Result<()> {
        for identifier in identifiers(path) {
            let index = self.filters.index_of(identifier).ok_or_else(|| {
                Error::bad_value(format!("No array filter found for identifier '{identifier}' in path '{path}'"))
            })?;
            self.used_filters[index] = true;
        }
        Ok(())
    }

    fn parse_operator(&self, name: &str, path: &str, argument: Value<'_>) -> Result<Operator> {
        Ok(match name {
            "$set" => Operator::Set(Operand::new(argument)),
            "$setOnInsert" => Operator::SetOnInsert(Operand::new(argument)),
            "$unset" => Operator::Unset,
            "$inc" => Operator::Arithmetic(Arithmetic::parse(ArithmeticOperation::Increment, path, argument)?),
            "$mul" => Operator::Arithmetic(Arithmetic::parse(ArithmeticOperation::Multiply, path, argument)?),
            "$min" => self.min_or_max(Ordering::Less, argument),
            "$max" => self.min_or_max(Ordering::Greater, argument),
            "$currentDate" => parse_current_date(argument)?,
            "$push" => Operator::Push(Box::new(Push::parse(argument, &self.context.collation)?)),
            "$addToSet" => Operator::AddToSet(Box::new(AddToSet::parse(argument, &self.context.collation)?)),
            "$pull" => Operator::Pull(Box::new(Pull::parse(argument, self.context)?)),
            "$pullAll" => Operator::Pull(Box::new(Pull::parse_all(argument, self.context)?)),
            "$pop" => Operator::Pop { first: parse_pop(path, argument)? },
            _ => Operator::Bit(Bit::parse(argument)?),
        })
    }

    fn min_or_max(&self, replaces: Ordering, argument: Value<'_>) -> Operator {
        let collation = self.context.collation.clone();
        Operator::Extreme { replaces, operand: Operand::new(argument), collation }
    }

    fn add_rename(&mut self, source: &str, target: Value<'_>) -> Result<()> {
        self.insert(source, Operator::RenameSource)?;
        let named = text::element(source, target).to_string();
        let target = target
            .as_name()
            .ok_or_else(|| Error::bad_value(format!("The 'to' field for $rename must be a string: {named}")))?;
        let target = &*target;
        check_path(target)?;
        let refusal = if target.contains('\0') {
            "The 'to' field for $rename cannot contain an embedded null byte".to_owned()
        } else if source == target {
            format!("The source and target field for $rename must differ: {named}")
        } else if is_proper_prefix(source, target) || is_proper_prefix(target, source) {
            format!("The source and target field for $rename must not be on the same path: {named}")
        } else if depends_on_document(source) {
            format!("The source field for $rename may not be dynamic: {source}")
        } else if depends_on_document(target) {
            format!("The destination field for $rename may not be dynamic: {target}")
        } else {
            return self.insert(target, Operator::Rename { source: source.into() });
        };
        Err(Error::bad_value(refusal))
    }
}

/// Returns whether the first path is a proper prefix of the second.
fn is_proper_prefix(above: &str, below: &str) -> bool {
    below.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}

fn parse_current_date(argument: Value<'_>) -> Result<Operator> {
    let spec = match argument {
        Value::Boolean(_) => return Ok(Operator::CurrentDate),
        Value::Document(spec) => spec,
        other => {
            return Err(Error::bad_value(format!(
                "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression \
                 ({{$type: 'timestamp/date'}}).",
                other.kind().alias()
            )));
        }
    };
    let mut operator = None;
    for (name, value) in spec.iter() {
        match (name, value) {
            ("$type", Value::String("date")) => operator = Some(Operator::CurrentDate),
            ("$type", Value::String("timestamp")) => operator = Some(Operator::CurrentTimestamp),
            ("$type", _) => operator = None,
            _ => return Err(Error::bad_value(format!("Unrecognized $currentDate option: {name}"))),
        }
    }
    operator.ok_or_else(|| {
        Error::bad_value(
            "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}",
        )
    })
}

fn parse_pop(path: &str, argument: Value<'_>) -> Result<bool> {
    let named = text::element(path, argument);
    if !argument.kind().is_number() {
        return Err(Error::failed_to_parse(format!("Expected a number in: {named}")));
    }
    match values::integer::as_i64_exact(argument) {
        Some(1) => Ok(false),
        Some(-1) => Ok(true),
        Some(other) => Err(Error::failed_to_parse(format!("$pop expects 1 or -1, found: {other}"))),
        None => Err(Error::failed_to_parse(format!("Expected an integer: {named}"))),
    }
}
