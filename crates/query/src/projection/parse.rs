//! From a specification to the tree.

use super::Projection;
use super::slice::Slice;
use super::tree::{FieldAction, ProjectionFields, ProjectionMode};
use crate::expression::check_field_path;
use crate::{Context, Expression, Predicate};
use document::{Doc, DocBuf, Element, Kind, Value};
use error::{Code, Error, Result};
use std::sync::Arc;
use steps::Counted;
use values::text;

pub(super) struct ProjectionParser<'c> {
    context: &'c Context,
    /// Whether the forms specific to `find` are accepted.
    is_find: bool,
    /// Unknown until a field determines it.
    mode: Option<ProjectionMode>,
    /// The value of a plain `_id: 0` or `_id: 1`.
    id: Option<bool>,
    root: ProjectionFields,
    has_slice: bool,
    has_element_match: bool,
    /// The filter that the positional operator refers to, once the operator has occurred.
    positional: Option<Arc<Predicate>>,
    has_meta: bool,
    /// The command's filter.
    filter: Doc<'c>,
    /// The first failure of a constant expression. Errors of the specification itself are reported
    /// first.
    failure: Option<Error>,
}

/// Returns a field's value as a boolean, if it is one or a number.
fn as_boolean(value: Value<'_>) -> Option<bool> {
    (value.kind().is_number() || value.kind() == Kind::Boolean).then(|| value.is_truthy())
}

fn is_operator(document: Doc<'_>) -> bool {
    document.first().is_some_and(|first| first.key_bytes().starts_with(b"$"))
}

/// Fails if the positional operator cannot refer to a filter. Conditions by distance are rejected
/// when the filter is parsed.
fn check_positional_filter(filter: Doc<'_>) -> Result<()> {
    for element in filter.elements().counted() {
        match element.key_bytes() {
            b"$text" => return Err(Error::bad_value("$text is not allowed in this context")),
            b"$expr" | b"$jsonSchema" => {
                let message = format!("{} is not allowed in this context", element.key());
                return Err(Error::new(Code::QUERY_FEATURE_NOT_ALLOWED, message));
            }
            b"$and" | b"$or" | b"$nor" => {
                let branches = element.value().as_array().unwrap_or(Doc::EMPTY);
                branches.values().counted().filter_map(Value::as_document).try_for_each(check_positional_filter)?;
            }
            _ => {}
        }
    }
    Ok(())
}

impl<'c> ProjectionParser<'c> {
    /// Returns a parser for the projection of a find with this filter.
    pub fn for_find(context: &'c Context, filter: Doc<'c>) -> Self {
        ProjectionParser { is_find: true, filter, ..Self::for_stage(context) }
    }

    pub fn for_stage(context: &'c Context) -> Self {
        ProjectionParser {
            context,
            is_find: false,
            mode: None,
            id: None,
            root: ProjectionFields::default(),
            has_slice: false,
            has_element_match: false,
            positional: None,
            has_meta: false,
            filter: Doc::EMPTY,
            failure: None,
        }
    }

    pub fn parse(mut self, spec: Doc<'_>) -> Result<Projection> {
        let outer_requests = self.context.metadata_requests.take();
        for element in spec.elements().counted() {
            match as_boolean(element.value()) {
                Some(flag) if element.key() == "_id" => {
                    if self.id.replace(flag).is_some() || self.root.find(b"_id").is_some() {
                        return Err(Error::new(Code(31250), "Path collision at _id"));
                    }
                }
                _ => self.parse_field(&mut Vec::new(), element)?,
            }
        }
        let mode = self.resolved_mode();
        self.insert_id(mode)?;
        self.context.folding.report(self.failure)?;
        let needs = self.context.metadata_requests.take();
        self.context.metadata_requests.add(outer_requests.and(needs));
        Ok(Projection { mode, root: self.root, positional: self.positional, needs, ..Projection::default() })
    }

    fn resolved_mode(&self) -> ProjectionMode {
        match self.mode {
            Some(mode) => mode,
            None if self.id == Some(true) => ProjectionMode::Include,
            None if self.has_slice => ProjectionMode::Exclude,
            None if self.has_element_match => ProjectionMode::Include,
            None if self.has_meta && !self.is_find => ProjectionMode::Include,
            None => ProjectionMode::Exclude,
        }
    }

    fn insert_id(&mut self, mode: ProjectionMode) -> Result<()> {
        let is_free = self.root.find(b"_id").is_none();
        match (mode, self.id) {
            (ProjectionMode::Include, None) if !is_free => Ok(()),
            (ProjectionMode::Include, None | Some(true)) => self.root.insert(&["_id"], FieldAction::Include, false),
            (ProjectionMode::Exclude, Some(false)) => self.root.insert(&["_id"], FieldAction::Exclude, false),
            _ => Ok(()),
        }
    }

    /// Parses one field within `prefix`, which is unchanged if this returns without an error.
    fn parse_field<'v>(&mut self, prefix: &mut Vec<&'v str>, element: Element<'v>) -> Result<()> {
        let (name, positional) = self.split_positional(element.key())?;
        if let Err(error) = check_field_path(name) {
            // Errors of the value are reported first.
            match element.value() {
                Value::Document(inner) if inner.is_empty() => return Err(empty_projection()),
                Value::String(_) | Value::Array(_) => drop(Expression::parse(element.value(), self.context)?),
                _ => {}
            }
            return Err(error);
        }
        let depth = prefix.len();
        prefix.extend(name.split('.'));
        match (element.value(), as_boolean(element.value())) {
            (_, Some(flag)) => self.parse_inclusion(prefix, element.key(), flag, positional)?,
            (Value::Document(_), _) if positional => {
                let message = "positional projection cannot be used with an expression or sub object";
                return Err(Error::new(Code(31271), message));
            }
            (Value::Document(inner), _) if inner.is_empty() => return Err(empty_projection()),
            (Value::Document(operator), _) if is_operator(operator) => self.parse_operator(prefix, operator)?,
            (Value::Document(_), _) if self.root.has_leaf(prefix) => {
                return Err(Error::new(Code(31250), format!("Path collision at {}", prefix.join("."))));
            }
            (Value::Document(inner), _) => {
                if let Some(above) = (1..prefix.len()).find(|above| self.root.has_leaf(&prefix[..*above])) {
                    let (path, rest) = (prefix.join("."), prefix[above..].join("."));
                    return Err(Error::new(Code(31249), format!("Path collision at {path} remaining portion {rest}")));
                }
                inner.elements().counted().try_for_each(|element| self.parse_field(prefix, element))?;
            }
            _ if positional => {
                return Err(Error::new(Code(31308), "positional projection cannot be used with a literal"));
            }
            (value, _) => self.compute(prefix, value)?,
        }
        prefix.truncate(depth);
        Ok(())
    }

    /// Removes the suffix `.$` of a name.
    fn split_positional<'v>(&self, name: &'v str) -> Result<(&'v str, bool)> {
        if name.contains(".$.") {
            return Err(Error::new(
                Code(31394),
                "As of 4.4, it's illegal to specify positional operator in the middle of a path.Positional \
                 projection may only be used at the end, for example: a.b.$. If the query previously used a form \
                 like a.b.$.d, remove the parts following the '$' and the results will be equivalent.",
            ));
        }
        match name.strip_suffix(".$") {
            Some(_) if !self.is_find => {
                Err(Error::new(Code(31324), "Cannot use positional projection in aggregation projection"))
            }
            Some(name) => Ok((name, true)),
            None => Ok((name, false)),
        }
    }

    fn parse_inclusion(&mut self, path: &[&str], name: &str, flag: bool, positional: bool) -> Result<()> {
        if positional {
            self.check_positional(flag)?;
        }
        let action = if flag { FieldAction::Include } else { FieldAction::Exclude };
        self.insert_action(path, action, positional)?;
        if flag {
            if self.mode == Some(ProjectionMode::Exclude) {
                return Err(Error::new(
                    Code(31253),
                    format!("Cannot do inclusion on field {name} in exclusion projection"),
                ));
            }
            self.mode = Some(ProjectionMode::Include);
            return Ok(());
        }
        if self.mode == Some(ProjectionMode::Include) {
            return Err(Error::new(
                Code(31254),
                format!("Cannot do exclusion on field {name} in inclusion projection"),
            ));
        }
        self.mode = Some(ProjectionMode::Exclude);
        Ok(())
    }

    fn check_positional(&mut self, flag: bool) -> Result<()> {
        if !flag {
            return Err(Error::new(Code(31395), "positional projection cannot be used with exclusion"));
        }
        if self.positional.is_some() {
            return Err(Error::new(Code(31276), "Cannot specify more than one positional projection per query."));
        }
        if self.has_element_match {
            return Err(Error::new(Code(31256), "Cannot specify positional operator and $elemMatch."));
        }
        check_positional_filter(self.filter)?;
        self.positional = Some(Arc::new(Predicate::parse_as_written(self.filter, self.context)?));
        Ok(())
    }

    /// Inserts an action into the tree. A plain `_id: 0` or `_id: 1` is not in the tree yet, but
    /// conflicts.
    fn insert_action(&mut self, path: &[&str], action: FieldAction, positional: bool) -> Result<()> {
        match path {
            ["_id"] if self.id.is_some() => Err(Error::new(Code(31250), "Path collision at _id")),
            ["_id", rest @ ..] if self.id.is_some() => {
                let rest = rest.join(".");
                let message = format!("Path collision at _id.{rest} remaining portion {rest}");
                Err(Error::new(Code(31249), message))
            }
            _ => self.root.insert(path, action, positional),
        }
    }

    fn parse_operator(&mut self, path: &[&str], operator: Doc<'_>) -> Result<()> {
        check_no_other_fields(operator)?;
        let Some(first) = operator.first() else { return Ok(()) };
        match first.key() {
            "$slice" if self.is_find => self.parse_slice(path, operator, first.value()),
            "$elemMatch" if self.is_find => self.parse_element_match(path, first.value()),
            "$meta" => self.parse_meta(path, operator),
            _ => self.compute(path, Value::Document(operator)),
        }
    }

    /// Parses `$meta`, which is allowed in inclusions and exclusions alike.
    fn parse_meta(&mut self, path: &[&str], operator: Doc<'_>) -> Result<()> {
        let expression = self.expression(Value::Document(operator))?;
        self.has_meta = true;
        self.insert_action(path, FieldAction::Compute(expression), false)
    }

    /// Parses `$slice`. An operand not of the short form may be the expression of that name.
    fn parse_slice(&mut self, path: &[&str], operator: Doc<'_>, operand: Value<'_>) -> Result<()> {
        let complaint = match Slice::parse(operand) {
            Ok(slice) => match self.insert_action(path, FieldAction::Slice(slice), false) {
                Ok(()) => {
                    self.has_slice = true;
                    return Ok(());
                }
                Err(error) => (error.code().0, error.message().to_owned()),
            },
            Err((code, message)) => (code, message.to_owned()),
        };
        self.compute(path, Value::Document(operator)).map_err(|error| {
            if error.code() != Code(28667) {
                return error;
            }
            let (operator, (code, message)) = (text::document(operator), complaint);
            error.context(&format!(
                "Invalid $slice syntax. The given syntax {operator} did not match the find() syntax because :: \
                 Location{code}: {message} :: The given syntax did not match the expression $slice syntax. :: caused \
                 by :: "
            ))
        })
    }

    fn parse_element_match(&mut self, path: &[&str], operand: Value<'_>) -> Result<()> {
        if !matches!(operand, Value::Document(_)) {
            let found = operand.kind().alias();
            let message = format!("elemMatch: Invalid argument, object required, but got {found}");
            return Err(Error::new(Code(31274), message));
        }
        self.has_element_match = true;
        if self.positional.is_some() {
            return Err(Error::new(Code(31255), "Cannot specify positional operator and $elemMatch."));
        }
        let [field] = path else {
            return Err(Error::new(Code(31275), "Cannot use $elemMatch projection on a nested field."));
        };
        let mut condition = DocBuf::new();
        condition.append("$elemMatch", operand);
        let mut filter = DocBuf::new();
        filter.append(field, &condition);
        let predicate = Predicate::parse(filter.as_doc(), self.context)?;
        self.insert_action(path, FieldAction::ElementMatch(predicate), false)
    }

    /// Adds a computed field, which makes the projection an inclusion.
    fn compute(&mut self, path: &[&str], value: Value<'_>) -> Result<()> {
        let is_exclusion = self.mode == Some(ProjectionMode::Exclude);
        check_expression_name(value)?;
        if is_exclusion && matches!(value, Value::Document(_)) {
            let message = "Cannot use expression other than $meta in exclusion projection";
            return Err(Error::new(Code(31252), message));
        }
        let expression = self.expression(value)?;
        self.insert_action(path, FieldAction::Compute(expression), false)?;
        if is_exclusion {
            let found = text::element(path.last().unwrap_or(&""), value);
            return Err(Error::new(
                Code(31310),
                format!("Cannot use an expression {found} in an exclusion projection"),
            ));
        }
        self.mode = Some(ProjectionMode::Include);
        Ok(())
    }

    fn expression(&mut self, value: Value<'_>) -> Result<Expression> {
        check_expression_name(value)?;
        let (expression, failure) = Expression::parse_folding(value, self.context)?;
        self.failure = self.failure.take().or(failure);
        Ok(expression)
    }
}

fn check_expression_name(value: Value<'_>) -> Result<()> {
    let name = value.as_document().and_then(Doc::first).map(Element::key);
    match name.filter(|name| name.starts_with('$') && !Expression::is_operator(name)) {
        None => Ok(()),
        Some("$elemMatch") => Err(Error::new(Code::INVALID_PIPELINE_OPERATOR, "Cannot use $elemMatch in this context")),
        Some(name) => Err(Error::new(Code(31325), format!("Unknown expression {name}"))),
    }
}

fn empty_projection() -> Error {
    Error::new(Code(51270), "An empty sub-projection is not a valid value. Found empty object at path")
}

/// Fails if a document that begins with an operator has other fields.
fn check_no_other_fields(operator: Doc<'_>) -> Result<()> {
    match operator.elements().counted().count() {
        1 => Ok(()),
        _ => operator.elements().try_for_each(|element| check_field_path(element.key())),
    }
}
