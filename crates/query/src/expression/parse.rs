//! From BSON to an expression tree.

use super::functions::{self, Arity, Function};
use super::path::FieldPath;
use super::scope::Variable;
use super::{Expr, control, iterate};
use crate::Context;
use crate::metadata::Meta;
use crate::predicate::check_texts;
use document::{Doc, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use hashbrown::{HashMap, HashSet};
use steps::Counted;
use values::text;

/// A parser, and the names of the variables in scope.
pub(crate) struct Parser<'c> {
    context: &'c Context,
    frames: Vec<Names>,
}

/// The names that a form binds.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    /// The last index of each name, if there are many.
    places: HashMap<String, usize>,
}

/// Up to this number of names, comparing with each is faster than hashing.
const COMPARED_MAX: usize = 16;

impl Names {
    fn new(names: Vec<String>) -> Names {
        if names.len() <= COMPARED_MAX {
            return Names { names, places: HashMap::new() };
        }
        let places = names.iter().counted().enumerate().map(|(place, name)| (name.clone(), place)).collect();
        Names { names, places }
    }

    /// Returns the index of a variable; of several with one name the last one counts.
    fn place(&self, name: &str) -> Option<usize> {
        match self.places.is_empty() {
            true => self.names.iter().rposition(|known| known == name),
            false => self.places.get(name).copied(),
        }
    }
}

impl<'c> Parser<'c> {
    pub fn new(context: &'c Context, variables: &[&str]) -> Self {
        let names: Vec<String> = variables.iter().map(|name| (*name).to_owned()).collect();
        Parser { context, frames: if names.is_empty() { Vec::new() } else { vec![Names::new(names)] } }
    }

    pub fn parse(&mut self, value: Value<'_>) -> Result<Expr> {
        steps::step();
        match value {
            Value::String(text) if text.starts_with('$') => self.parse_reference(text),
            Value::IllFormed { kind: Kind::String, .. } => match value.as_name() {
                Some(text) if text.starts_with('$') => self.parse_reference(&text),
                _ => literal(value),
            },
            Value::Document(document) => self.parse_document(document),
            Value::Array(array) => Ok(Expr::Array(self.parse_all(array)?)),
            value => literal(value),
        }
    }

    pub fn parse_all(&mut self, array: Doc<'_>) -> Result<Vec<Expr>> {
        array.values().map(|value| self.parse(value)).collect()
    }

    /// Parses the arguments of an operator: an array's elements, or a single value that is no
    /// array.
    pub fn parse_arguments(&mut self, operand: Value<'_>) -> Result<Vec<Expr>> {
        match operand {
            Value::Array(array) => self.parse_all(array),
            value => Ok(vec![self.parse(value)?]),
        }
    }

    /// Parses with more variables in scope.
    pub fn parse_inside(&mut self, names: Vec<String>, value: Value<'_>) -> Result<Expr> {
        self.frames.push(Names::new(names));
        let parsed = self.parse(value);
        self.frames.pop();
        parsed
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
    pub fn parse_operator(&mut self, name: &str, operand: Value<'_>) -> Result<Expr> {
        match name {
            "$literal" | "$const" => return literal(operand),
            "$meta" => {
                let meta = Meta::parse(operand)?;
                self.context.requests.note(meta);
                return Ok(Expr::Metadata(meta));
            }
            _ => {}
        }
        let form = match control::parse(self, name, operand)? {
            Some(form) => Some(form),
            None => iterate::parse(self, name, operand)?,
        };
        if let Some(form) = form {
            return Ok(Expr::Form(Box::new(form)));
        }
        let Some(function) = functions::find(name) else {
            return Err(Error::new(Code::INVALID_PIPELINE_OPERATOR, format!("Unrecognized expression '{name}'")));
        };
        let arguments = match function.arity {
            Arity::Named(parse) => parse(self, name, operand)?,
            _ => self.parse_arguments(operand)?,
        };
        check_arity(function, arguments.len())?;
        Ok(Expr::Call(function, arguments))
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
            "NOW" if !self.context.has_clock => Ok(Expr::Call(&functions::NO_CLOCK[0], Vec::new())),
            "CLUSTER_TIME" if !self.context.has_clock => Ok(Expr::Call(&functions::NO_CLOCK[1], Vec::new())),
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
            "SEARCH_META" if self.context.pipelines_around > 0 => Ok(Expr::Missing),
            "SEARCH_META" => {
                let message = "Can't access $$SEARCH_META without a $search stage earlier in the pipeline";
                Err(Error::new(Code(6347903), message))
            }
            _ if self.context.missing.contains(name) => Ok(Expr::Missing),
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
            .find_map(|(frame, names)| Some(Variable { frame, index: names.place(name)? }))
    }
}

pub(super) fn is_operator(name: &str) -> bool {
    matches!(name, "$literal" | "$const" | "$meta")
        || control::NAMES.contains(&name)
        || iterate::NAMES.contains(&name)
        || functions::find(name).is_some()
}

fn literal(value: Value<'_>) -> Result<Expr> {
    check_texts(value)?;
    Ok(Expr::Literal(ValueBuf::from(value)))
}

fn check_arity(function: &Function, given: usize) -> Result<()> {
    let name = match function.name {
        // An alias.
        "$substr" => "$substrBytes",
        name => name,
    };
    match function.arity {
        Arity::Any if name == "$setEquals" && given < 2 => {
            Err(Error::new(Code(17045), format!("$setEquals needs at least two arguments had: {given}")))
        }
        Arity::Exactly(1) if given != 1 && name.starts_with("$to") && !matches!(name, "$toLower" | "$toUpper") => {
            Err(Error::new(Code(50723), format!("{name} requires a single argument, got {given}")))
        }
        Arity::Exactly(wanted) if given != wanted => Err(Error::new(
            Code(16020),
            format!("Expression {name} takes exactly {wanted} arguments. {given} were passed in."),
        )),
        Arity::Between(least, most) if given < least || given > most => Err(Error::new(
            Code(28667),
            format!(
                "Expression {name} takes at least {least} arguments, and at most {most}, but {given} were passed in."
            ),
        )),
        _ => Ok(()),
    }
}

/// Checks a variable's name in a reference: built-in ones begin with a capital.
fn check_reference(name: &str) -> Result<()> {
    check_name(name, |first| first.is_ascii_alphabetic() || !first.is_ascii())
}

/// Checks a variable's name in a binding. `CURRENT` is the only built-in variable that can be
/// bound.
pub fn check_binding(name: &str) -> Result<()> {
    if name == "CURRENT" {
        return Ok(());
    }
    check_name(name, |first| first.is_ascii_lowercase() || !first.is_ascii())
}

fn check_name(name: &str, may_start: fn(char) -> bool) -> Result<()> {
    let Some(first) = name.chars().next() else {
        return Err(Error::failed_to_parse("empty variable names are not allowed"));
    };
    if !may_start(first) {
        return Err(Error::failed_to_parse(format!(
            "'{name}' starts with an invalid character for a user variable name"
        )));
    }
    match name.chars().find(|letter| letter.is_ascii() && !letter.is_ascii_alphanumeric() && *letter != '_') {
        None => Ok(()),
        Some(letter) => Err(Error::failed_to_parse(format!(
            "'{name}' contains an invalid character for a variable name: '{letter}'"
        ))),
    }
}
