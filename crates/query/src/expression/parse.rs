//! From BSON to an expression tree.

use super::path::FieldPath;
use super::scope::{Variable, check_reference};
use super::table;
use super::tree::{Arity, Expr, Operator, ParseExpr};
use crate::Context;
use crate::limits::check_texts;
use crate::metadata::Meta;
use document::{Doc, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use hashbrown::{HashMap, HashSet};
use steps::Counted;
use values::text;

/// A parser, and the names of the variables in scope.
pub(crate) struct Parser<'c> {
    context: &'c Context,
    frames: Vec<FrameNames>,
}

/// The names that a form binds.
#[derive(Default)]
struct FrameNames {
    names: Vec<String>,
    /// The last index of each name, if there are many.
    last_indices: HashMap<String, usize>,
}

/// Up to this number of names, comparing with each is faster than hashing.
const COMPARED_MAX: usize = 16;

impl FrameNames {
    fn new(names: Vec<String>) -> FrameNames {
        if names.len() <= COMPARED_MAX {
            return FrameNames { names, last_indices: HashMap::new() };
        }
        let last_indices = names.iter().counted().enumerate().map(|(index, name)| (name.clone(), index)).collect();
        FrameNames { names, last_indices }
    }

    /// Returns the index of a variable; of several with one name the last one counts.
    fn index_of(&self, name: &str) -> Option<usize> {
        match self.last_indices.is_empty() {
            true => self.names.iter().rposition(|known| known == name),
            false => self.last_indices.get(name).copied(),
        }
    }
}

impl<'c> Parser<'c> {
    pub fn new(context: &'c Context, variables: &[&str]) -> Self {
        let names: Vec<String> = variables.iter().map(|name| (*name).to_owned()).collect();
        Parser { context, frames: if names.is_empty() { Vec::new() } else { vec![FrameNames::new(names)] } }
    }

    fn parse_document(&mut self, document: Doc<'_>) -> Result<Expr> {
        match document.first() {
            Some(first) if first.key_bytes().starts_with(b"$") => {
                if document.elements().count() > 1 {
                    let found = text::document(document);
                    return Err(Error::new(
                        Code(15983),
                        format!("an object representing an expression must have exactly one field: {found}"),
                    ));
                }
                self.parse_operator(first.key(), first.value())
            }
            _ => self.parse_object(document),
        }
    }

    fn parse_object(&mut self, document: Doc<'_>) -> Result<Expr> {
        let mut fields: Vec<(Box<str>, Expr)> = Vec::new();
        let mut known = HashSet::new();
        for (name, value) in document.iter() {
            super::path::check_name(name)?;
            if name.contains('.') {
                return Err(Error::new(
                    Code(16412),
                    "FieldPath field names may not contain '.'. Consider using $getField or $setField.",
                ));
            }
            if !known.insert(name) {
                return Err(Error::new(
                    Code(16406),
                    format!("duplicate field name specified in object literal: {}", text::document(document)),
                ));
            }
            fields.push((name.into(), self.parse(value)?));
        }
        Ok(Expr::Document(fields))
    }

    /// Parses `{name: operand}`, an operator with its operand.
    fn parse_operator(&mut self, name: &str, operand: Value<'_>) -> Result<Expr> {
        if let Some(special) = table::find_special(name) {
            return special.parse(self, operand);
        }
        let Some(operator) = table::find(name) else {
            return Err(Error::new(Code::INVALID_PIPELINE_OPERATOR, format!("Unrecognized expression '{name}'")));
        };
        let arguments = match operator.arity {
            Arity::Named(parse) => parse(self, name, operand)?,
            _ => self.parse_arguments(operand)?,
        };
        check_arity(operator, arguments.len())?;
        Ok(Expr::Call(operator, arguments))
    }

    /// Parses `$a.b` and `$$name.a.b`.
    fn parse_reference(&mut self, text: &str) -> Result<Expr> {
        let Some(variable) = text.strip_prefix("$$") else {
            let path = &text[1..];
            if path.is_empty() {
                return Err(Error::new(Code(16872), "'$' by itself is not a valid FieldPath"));
            }
            let path = FieldPath::parse(path)?;
            return self.resolve("CURRENT", path);
        };
        let (name, path) = match variable.split_once('.') {
            Some((name, "")) => {
                check_reference(name)?;
                return Err(Error::new(Code(40353), "FieldPath must not end with a '.'."));
            }
            Some((name, path)) => (name, FieldPath::parse(path)?),
            None => (variable, FieldPath::default()),
        };
        check_reference(name)?;
        self.resolve(name, path)
    }

    fn resolve(&self, name: &str, path: FieldPath) -> Result<Expr> {
        if let Some(variable) = self.find(name) {
            return Ok(Expr::Variable(variable, path));
        }
        let constant = |value: Option<Value<'_>>| match path.evaluate(value).into_owned() {
            Some(value) => Expr::Literal(value),
            None => Expr::Missing,
        };
        match name {
            "ROOT" => Ok(Expr::Root(path)),
            // Bound by a command or a `$lookup`.
            "CURRENT" => Ok(match self.context.variables.get(name) {
                Some(Value::Undefined) => Expr::Missing,
                Some(value) => constant(Some(value)),
                None => Expr::Root(path),
            }),
            "NOW" if !self.context.has_clock => Ok(Expr::Call(&NO_CLOCK[0], Vec::new())),
            "CLUSTER_TIME" if !self.context.has_clock => Ok(Expr::Call(&NO_CLOCK[1], Vec::new())),
            "NOW" => Ok(constant(Some(Value::DateTime(self.context.now_ms)))),
            "REMOVE" => Ok(Expr::Missing),
            "CLUSTER_TIME" => {
                let time = u32::try_from(self.context.now_ms.div_euclid(1000)).unwrap_or(0);
                Ok(constant(Some(Value::Timestamp { time, increment: 1 })))
            }
            "IS_MR" | "JS_SCOPE" => {
                Err(Error::new(Code(51144), format!("Builtin variable '$${name}' is not available")))
            }
            // In nested pipelines it is missing, which is no error.
            "SEARCH_META" if self.context.enclosing_pipelines > 0 => Ok(Expr::Missing),
            "SEARCH_META" => {
                let message = "Can't access $$SEARCH_META without a $search stage earlier in the pipeline";
                Err(Error::new(Code(6347903), message))
            }
            _ if self.context.missing_variables.contains(name) => Ok(Expr::Missing),
            _ => match self.context.variables.get(name) {
                Some(Value::Undefined) => Ok(Expr::Missing),
                Some(value) => Ok(constant(Some(value))),
                None => Err(Error::new(Code(17276), format!("Use of undefined variable: {name}"))),
            },
        }
    }

    fn find(&self, name: &str) -> Option<Variable> {
        self.frames
            .iter()
            .rev()
            .enumerate()
            .find_map(|(frame, names)| Some(Variable { frame, index: names.index_of(name)? }))
    }
}

impl ParseExpr for Parser<'_> {
    fn parse(&mut self, value: Value<'_>) -> Result<Expr> {
        steps::step();
        match value {
            Value::String(text) if text.starts_with('$') => self.parse_reference(text),
            Value::IllFormed { kind: Kind::String, .. } => match value.as_name() {
                Some(text) if text.starts_with('$') => self.parse_reference(&text),
                _ => self.parse_literal(value),
            },
            Value::Document(document) => self.parse_document(document),
            Value::Array(array) => Ok(Expr::Array(self.parse_all(array)?)),
            value => self.parse_literal(value),
        }
    }

    fn parse_inside(&mut self, names: Vec<String>, value: Value<'_>) -> Result<Expr> {
        self.frames.push(FrameNames::new(names));
        let parsed = self.parse(value);
        self.frames.pop();
        parsed
    }

    fn parse_literal(&mut self, value: Value<'_>) -> Result<Expr> {
        check_texts(value)?;
        Ok(Expr::Literal(ValueBuf::from(value)))
    }

    fn note_metadata(&mut self, meta: Meta) {
        self.context.metadata_requests.note(meta);
    }
}

pub(super) fn is_operator(name: &str) -> bool {
    table::find_special(name).is_some() || table::find(name).is_some()
}

fn check_arity(operator: &Operator, given: usize) -> Result<()> {
    let exactly = |name: &str, expected: usize| match given == expected {
        true => Ok(()),
        false => Err(Error::new(
            Code(16020),
            format!("Expression {name} takes exactly {expected} arguments. {given} were passed in."),
        )),
    };
    let name = operator.name;
    match operator.arity {
        Arity::Exactly(expected) => exactly(name, expected),
        Arity::AliasOf(name, expected) => exactly(name, expected),
        Arity::Conversion if given != 1 => {
            Err(Error::new(Code(50723), format!("{name} requires a single argument, got {given}")))
        }
        Arity::AtLeastTwo { code } if given < 2 => {
            Err(Error::new(Code(code), format!("{name} needs at least two arguments had: {given}")))
        }
        Arity::Between(least, most) if given < least || given > most => Err(Error::new(
            Code(28667),
            format!(
                "Expression {name} takes at least {least} arguments, and at most {most}, but {given} were passed in."
            ),
        )),
        _ => Ok(()),
    }
}

/// `$$NOW` and `$$CLUSTER_TIME` in commands for which MongoDB does not define them.
static NO_CLOCK: [Operator; 2] = [
    Operator::new("$$NOW", Arity::Any, |name, _| Err(no_clock(name))).nondeterministic(),
    Operator::new("$$CLUSTER_TIME", Arity::Any, |name, _| Err(no_clock(name))).nondeterministic(),
];

fn no_clock(name: &str) -> Error {
    Error::new(Code(51144), format!("Builtin variable '{name}' is not available"))
}
