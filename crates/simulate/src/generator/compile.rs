//! Compiles texts with expressions to generators.

use super::functions::FUNCTIONS;
use super::{Draw, Generator, Scope, Source, integer};
use crate::expression::{Piece, Term, pieces};
use document::{Value, ValueBuf};
use strict_toml::nearest;

/// Compiles a text with expressions. A single expression keeps its type; anything else is text.
pub fn compile(text: &str, scope: &mut Scope<'_>) -> Result<Generator, String> {
    let pieces = pieces(text)?;
    let mut parts = Vec::new();
    for piece in &pieces {
        parts.push(match piece {
            Piece::Text(text) => Generator::Constant(ValueBuf::from(Value::String(text))),
            Piece::Expression(term) => resolve(term, scope)?,
        });
    }
    Ok(if parts.len() == 1 { parts.remove(0) } else { Generator::Join(parts) })
}

fn resolve(term: &Term, scope: &mut Scope<'_>) -> Result<Generator, String> {
    Ok(match term {
        Term::Integer(number) => Generator::Constant(integer(*number)),
        Term::Double(number) => Generator::Constant(ValueBuf::from(Value::Double(*number))),
        Term::Text(text) => Generator::Constant(ValueBuf::from(Value::String(text))),
        Term::Name(name) => resolve_name(name, scope)?,
        Term::Call(name, arguments) => resolve_call(name, arguments, scope)?,
        Term::Arithmetic(operator, left, right) => {
            let both = [resolve(left, scope)?, resolve(right, scope)?];
            fold(Generator::Arithmetic(*operator, Box::new(both)))?
        }
    })
}

/// Evaluates arithmetic on constants at compile time.
fn fold(generator: Generator) -> Result<Generator, String> {
    match &generator {
        Generator::Arithmetic(_, both) if both.iter().all(|one| matches!(one, Generator::Constant(_))) => {
            let value = generator.draw(&mut Draw::from(&mut Source::new(0, &[], 0, 1)))?;
            Ok(Generator::Constant(value))
        }
        _ => Ok(generator),
    }
}

fn resolve_name(name: &str, scope: &mut Scope<'_>) -> Result<Generator, String> {
    if let Some(index) = scope.variables.iter().position(|known| known == name) {
        return Ok(Generator::Variable(index));
    }
    if let Some((_, value)) = scope.constants.iter().find(|(known, _)| known == name) {
        return Ok(Generator::Constant(value.clone()));
    }
    match name {
        "index" => Ok(Generator::Index),
        "process" => Ok(Generator::Process),
        "element" if scope.in_array => Ok(Generator::Element),
        "element" => Err("element may be used in the \"of\" of an array only".to_owned()),
        "true" | "false" => Ok(Generator::Constant(ValueBuf::from(Value::Boolean(name == "true")))),
        "null" => Ok(Generator::Constant(ValueBuf::from(Value::Null))),
        _ => resolve_call(name, &[], scope),
    }
}

fn resolve_call(name: &str, arguments: &[Term], scope: &mut Scope<'_>) -> Result<Generator, String> {
    let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) else {
        return Err(unknown(name, scope));
    };
    if !function.arguments.contains(&arguments.len()) {
        return Err(format!("it is {}, not with {} arguments", function.usage, arguments.len()));
    }
    let arguments = arguments.iter().map(|argument| resolve(argument, scope)).collect::<Result<Vec<_>, _>>()?;
    (function.make)(arguments, scope).map_err(|message| format!("{}: {message}", function.usage))
}

fn unknown(name: &str, scope: &Scope<'_>) -> String {
    let variables = scope.variables.iter().chain(scope.constants.iter().map(|(name, _)| name)).map(String::as_str);
    let known = variables.chain(FUNCTIONS.iter().map(|function| function.name)).chain(["index", "process", "element"]);
    let problem = format!("unknown name {name:?}");
    match nearest(name, known) {
        Some(meant) => format!("{problem}; did you mean {meant:?}?"),
        None => problem,
    }
}
