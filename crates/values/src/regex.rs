//! Regular expressions: compiled once, run within limits.
//!
//! Patterns are those of PCRE 8, as in MongoDB, translated for PCRE2 (`dialect`). A pattern that is
//! plain text, perhaps anchored at either end, is matched without the engine. A pattern that
//! contains plain text rejects values without it before the engine runs. A pattern that backtracks
//! too long on some text fails, so that no client can keep a worker busy with one string.

mod beginning;
mod contained;
mod dialect;
mod plain;

pub use beginning::Beginning;

use document::{Element, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use memchr::memmem;
use plain::Plain;
use std::fmt;
use std::sync::Arc;

/// Steps of a call of the engine, to which those of the text are added.
const STEPS_PER_CALL: usize = 32;

/// Steps of compiling a pattern, and of each of its bytes.
const STEPS_TO_COMPILE: usize = 1000;
const STEPS_PER_BYTE: usize = 16;

/// Maximal number of backtracks on one text. PCRE's own default is ten times that.
const MATCH_LIMIT: u32 = 1_000_000;

/// A pattern with its options. Cheap to clone.
#[derive(Clone)]
pub struct Regex(Arc<Inner>);

struct Inner {
    pattern: String,
    options: String,
    program: Program,
}

enum Program {
    /// `text`
    Contains(Finder),
    /// `^text`, `text$` or `^text$`
    Anchored(Plain),
    /// `needle`: a text that every match contains.
    Pcre { engine: pcre2::bytes::Regex, needle: Option<Finder> },
}

type Finder = Box<memmem::Finder<'static>>;

impl Regex {
    /// Compiles a pattern. `options`: letters out of `imsxu`.
    ///
    /// Fails with 51091 for an invalid pattern, 51108 for an unknown option, and 2 for a zero byte
    /// in the pattern.
    pub fn new(pattern: &str, options: &str) -> Result<Regex> {
        if pattern.contains('\0') {
            return Err(Error::bad_value("Regular expression cannot contain an embedded null byte"));
        }
        if let Some(unknown) = options.chars().find(|option| !"imsxu".contains(*option)) {
            return Err(Error::new(Code(51108), format!(" invalid flag in regex options: {unknown}")));
        }
        let program = match plain::of(pattern, options) {
            Some(plain) if plain.at_start || plain.at_end => Program::Anchored(plain),
            Some(plain) => Program::Contains(finder(&plain.text)),
            None => {
                Program::Pcre { engine: compile_in_parentheses(pattern, options)?, needle: needle(pattern, options) }
            }
        };
        Ok(Regex(Arc::new(Inner { pattern: pattern.to_owned(), options: options.to_owned(), program })))
    }

    pub fn pattern(&self) -> &str {
        &self.0.pattern
    }

    pub fn options(&self) -> &str {
        &self.0.options
    }

    /// Returns the text that every match begins with, if it is obvious from the pattern: the bounds
    /// for an index on the field. The engine does not reach its limits on other texts.
    pub fn beginning(&self) -> Option<Beginning> {
        Beginning::of(self.pattern(), self.options())
    }

    /// Returns the text that a match contains, if the pattern is plain text, not anchored or
    /// anchored at the end only.
    pub fn substring(&self) -> Option<&str> {
        let needle = match &self.0.program {
            Program::Contains(finder) => finder.needle(),
            Program::Anchored(plain) if !plain.at_start => plain.text.as_bytes(),
            _ => return None,
        };
        std::str::from_utf8(needle).ok()
    }

    /// Returns texts that every match contains, as far as they are obvious from the pattern; if it
    /// ignores case, in any case.
    pub fn contained_texts(&self) -> Vec<String> {
        contained::texts(self.pattern(), self.options())
    }

    pub fn ignores_case(&self) -> bool {
        self.options().contains('i')
    }

    /// Returns whether a value is a string that the pattern matches, or the same regular
    /// expression.
    pub fn matches(&self, element: Element<'_>) -> Result<bool> {
        match element.kind {
            Kind::String | Kind::Symbol => {
                let raw = element.raw_value();
                self.matches_text(raw.get(4..raw.len().saturating_sub(1)).unwrap_or_default())
            }
            // A pattern is UTF-8, so a regular expression that is not is never equal to it.
            Kind::Regex => Ok(matches!(element.value(), Value::Regex { pattern, options }
                if pattern == self.pattern() && options == self.options())),
            _ => Ok(false),
        }
    }

    pub fn matches_text(&self, text: &[u8]) -> Result<bool> {
        steps::bytes(text.len());
        match &self.0.program {
            Program::Contains(finder) => Ok(finder.find(text).is_some() && is_utf8(text)),
            // The beginning of a text is compared by its bytes, as in an index.
            Program::Anchored(plain) => Ok(plain.matches(text) && (!plain.at_end || is_utf8(text))),
            Program::Pcre { needle: Some(finder), .. } if finder.find(text).is_none() => Ok(false),
            Program::Pcre { engine, .. } => match is_match(engine, text) {
                Err(_) if !is_utf8(text) => {
                    Ok(self.beginning().is_some_and(|it| it.is_all && text.starts_with(it.text.as_bytes())))
                }
                outcome => outcome.map_err(|error| self.failed(&error)),
            },
        }
    }

    fn failed(&self, error: &pcre2::Error) -> Error {
        let pattern = self.pattern();
        Error::new(Code(51156), format!("Error occurred while executing regular expression '{pattern}': {error}"))
    }

    /// Returns the pattern as a BSON value.
    pub fn to_value(&self) -> ValueBuf {
        ValueBuf::from(Value::Regex { pattern: self.pattern(), options: self.options() })
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/{}", self.pattern(), self.options())
    }
}

/// Runs the engine, which cannot be interrupted.
fn is_match(engine: &pcre2::bytes::Regex, text: &[u8]) -> std::result::Result<bool, pcre2::Error> {
    count_call(text);
    engine.is_match(text)
}

/// Counts the steps of a call of the engine.
pub fn count_call(text: &[u8]) {
    steps::steps(STEPS_PER_CALL + text.len() / 64);
}

/// Returns whether a text is UTF-8; patterns match no other text.
fn is_utf8(text: &[u8]) -> bool {
    text.is_ascii() || std::str::from_utf8(text).is_ok()
}

fn finder(text: &str) -> Finder {
    Box::new(memmem::Finder::new(text).into_owned())
}

/// Returns the longest text that a match contains, unless case is ignored.
fn needle(pattern: &str, options: &str) -> Option<Finder> {
    if options.contains('i') {
        return None;
    }
    contained::texts(pattern, options).iter().max_by_key(|text| text.len()).map(|text| finder(text))
}

pub fn compile(pattern: &str, options: &str) -> Result<pcre2::bytes::Regex> {
    let translated = dialect::translate(pattern, options).map_err(invalid)?;
    build(&translated.pattern, options)
}

/// Like [`compile`]. The server puts parentheses around a filter's pattern, one of which a comment
/// or a quotation at the pattern's end swallows.
fn compile_in_parentheses(pattern: &str, options: &str) -> Result<pcre2::bytes::Regex> {
    let translated = dialect::translate(pattern, options).map_err(invalid)?;
    if translated.is_open {
        return Err(invalid("missing )"));
    }
    build(&translated.pattern, options)
}

fn build(pattern: &str, options: &str) -> Result<pcre2::bytes::Regex> {
    // Options that are valid only at the very front of a pattern remain valid after another one of
    // their kind.
    let pattern = format!("(*LIMIT_MATCH={MATCH_LIMIT}){pattern}");
    steps::steps(STEPS_TO_COMPILE + STEPS_PER_BYTE * pattern.len());
    pcre2::bytes::RegexBuilder::new()
        .caseless(options.contains('i'))
        .multi_line(options.contains('m'))
        .dotall(options.contains('s'))
        .extended(options.contains('x'))
        .utf(true)
        .jit_if_available(true)
        .build(&pattern)
        .map_err(|error| invalid(&reason(&error)))
}

fn invalid(reason: &str) -> Error {
    Error::new(Code(51091), format!("Regular expression is invalid: {reason}"))
}

/// Returns the compiler's error message without the position, which includes the limit in front.
fn reason(error: &pcre2::Error) -> String {
    let text = error.to_string();
    // The server's engine, an older one, has different messages for some errors.
    match text.rsplit_once(": ").map_or(&*text, |(_, reason)| reason) {
        "missing closing parenthesis" => "missing )".to_owned(),
        "quantifier does not follow a repeatable item" => "nothing to repeat".to_owned(),
        "unmatched closing parenthesis" => "unmatched parentheses".to_owned(),
        reason => reason.to_owned(),
    }
}
