//! The operand of `$text`: `{$search: …, $language: …, $caseSensitive: …, $diacriticSensitive: …}`.
//!
//! The search string consists of words and "phrases"; a `-` at the beginning of a word negates
//! either. The words of phrases are searched for like others; the document must also contain the
//! phrase itself.

use super::words::{Sensitivity, TextRules, terms};
use super::{Language, TextIndex};
use document::{Doc, DocWriter, Kind, Value};
use error::{Code, Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use steps::Counted;

/// A parsed `$text`, with the index that executes it.
#[derive(Clone, Debug)]
pub struct TextSearch {
    pub index: Arc<TextIndex>,
    pub text: String,
    /// The language as named in the search.
    pub language_name: String,
    pub(super) sensitivity: Sensitivity,
    /// The terms to look up in the index, in its own form. A document must have one of them.
    pub terms: BTreeSet<String>,
    /// The same words as `terms`, with case and diacritics preserved if the search is sensitive to
    /// them.
    pub exact_terms: BTreeSet<String>,
    pub negated_terms: BTreeSet<String>,
    pub phrases: Vec<String>,
    pub negated_phrases: Vec<String>,
}

impl TextSearch {
    /// Parses the operand, against the collection's index. Fails with 27 if the operand is valid
    /// but there is no index.
    pub fn parse(operand: Value<'_>, index: Option<&Arc<TextIndex>>) -> Result<TextSearch> {
        let Value::Document(operand) = operand else {
            return Err(Error::bad_value("$text expects an object"));
        };
        let text = match operand.get("$search") {
            None => return Err(Error::new(Code::NO_SUCH_KEY, "Missing expected field \"$search\"")),
            Some(value) => string("$search", value)?,
        };
        let language = operand.get("$language").map(|value| string("$language", value)).transpose()?;
        let sensitivity =
            Sensitivity { case: flag(operand, "$caseSensitive")?, diacritics: flag(operand, "$diacriticSensitive")? };
        let known = ["$search", "$language", "$caseSensitive", "$diacriticSensitive"];
        if operand.elements().count() > known.iter().filter(|name| operand.element(name).is_some()).count() {
            return Err(Error::bad_value("extra fields in $text"));
        }
        let Some(index) = index else {
            return Err(Error::new(Code::INDEX_NOT_FOUND, "text index required for $text query"));
        };
        if index.hidden {
            return Err(cannot_execute("need exactly one text index for $text query"));
        }
        let name = language.filter(|name| !name.is_empty()).unwrap_or(index.default_language_name());
        let language = match Language::named(name) {
            None if index.version > 1 => {
                let version = index.version;
                let message = format!("unsupported language: \"{name}\" for text index version {version}");
                return Err(Error::bad_value(message));
            }
            _ => Language::named_or_none(name),
        };
        let mut search = TextSearch {
            language_name: name.to_owned(),
            text: text.to_owned(),
            index: index.clone(),
            sensitivity,
            terms: BTreeSet::new(),
            exact_terms: BTreeSet::new(),
            negated_terms: BTreeSet::new(),
            phrases: Vec::new(),
            negated_phrases: Vec::new(),
        };
        search.parse_search_string(text, TextRules::for_version(index.version, language, name));
        Ok(search)
    }

    fn parse_search_string(&mut self, text: &str, rules: TextRules) {
        let mut positive = String::new();
        let mut negative = String::new();
        let mut reading = SearchParser::default();
        for token in Tokens::new(text) {
            steps::step();
            match token.kind {
                TokenKind::Words(words) => {
                    // A minus between spaces negates nothing.
                    reading.negated &= !token.after_space || reading.phrase_from.is_some();
                    reading.add_words(words, &mut positive, &mut negative);
                }
                TokenKind::Minus => reading.negated |= reading.phrase_from.is_none() && token.after_space,
                TokenKind::Quote => match reading.phrase_from.take() {
                    None => {
                        reading.negated &= !token.after_space;
                        reading.phrase_from = Some(token.start + 1);
                    }
                    Some(from) => {
                        let phrases = if reading.negated { &mut self.negated_phrases } else { &mut self.phrases };
                        phrases.push(text[from..token.start].to_owned());
                        reading.negated = false;
                    }
                },
            }
        }
        self.terms.extend(terms(&positive, rules, Sensitivity::default()));
        self.exact_terms.extend(terms(&positive, rules, self.sensitivity));
        self.negated_terms.extend(terms(&negative, rules, self.sensitivity));
    }

    /// Writes the parsed search for `explain`.
    pub fn describe(&self, writer: &mut DocWriter<'_>) {
        let mut list = |name: &str, texts: &mut dyn Iterator<Item = &String>| {
            let mut array = writer.array(name);
            texts.counted().for_each(|text| array.push(text.as_str()));
        };
        list("terms", &mut self.exact_terms.iter());
        list("negatedTerms", &mut self.negated_terms.iter());
        list("phrases", &mut self.phrases.iter());
        list("negatedPhrases", &mut self.negated_phrases.iter());
    }

    /// Returns whether the search matches exactly the documents that have one of the terms.
    pub fn has_terms_only(&self) -> bool {
        !self.sensitivity.any()
            && self.negated_terms.is_empty()
            && self.phrases.is_empty()
            && self.negated_phrases.is_empty()
    }

    pub fn case_sensitive(&self) -> bool {
        self.sensitivity.case
    }

    pub fn diacritic_sensitive(&self) -> bool {
        self.sensitivity.diacritics
    }
}

/// Returns error 291: the index cannot execute the search.
pub fn cannot_execute(reason: &str) -> Error {
    let message = format!("error processing query: planner returned error :: caused by :: {reason}");
    Error::new(Code::NO_QUERY_EXECUTION_PLANS, message)
}

/// The state of the parser of a search string.
#[derive(Default)]
struct SearchParser {
    negated: bool,
    /// The start of the open phrase.
    phrase_from: Option<usize>,
}

impl SearchParser {
    fn add_words(&mut self, words: &str, positive: &mut String, negative: &mut String) {
        // The words of a negated phrase may occur in a matching document.
        if !(self.negated && self.phrase_from.is_some()) {
            let sentence = if self.negated { negative } else { positive };
            sentence.push_str(words);
            sentence.push(' ');
        }
        if self.phrase_from.is_none() {
            self.negated = false;
        }
    }
}

struct Token<'s> {
    kind: TokenKind<'s>,
    start: usize,
    after_space: bool,
}

enum TokenKind<'s> {
    Words(&'s str),
    Minus,
    Quote,
}

/// The tokens of a search string: `-`, `"`, and the text between them and white space.
struct Tokens<'s> {
    text: &'s str,
    position: usize,
    after_space: bool,
}

impl<'s> Tokens<'s> {
    fn new(text: &'s str) -> Self {
        let mut tokens = Tokens { text, position: 0, after_space: true };
        tokens.skip_space();
        tokens
    }

    fn skip_space(&mut self) -> bool {
        let rest = &self.text[self.position..];
        let skipped = rest.len() - rest.trim_start_matches(is_space).len();
        self.position += skipped;
        skipped > 0
    }
}

impl<'s> Iterator for Tokens<'s> {
    type Item = Token<'s>;

    fn next(&mut self) -> Option<Token<'s>> {
        let start = self.position;
        let rest = &self.text[start..];
        let (kind, length) = match rest.bytes().next()? {
            b'-' => (TokenKind::Minus, 1),
            b'"' => (TokenKind::Quote, 1),
            _ => {
                let end = rest.find(|character| is_space(character) || matches!(character, '-' | '"'));
                let words = &rest[..end.unwrap_or(rest.len())];
                (TokenKind::Words(words), words.len())
            }
        };
        self.position += length;
        let token = Token { kind, start, after_space: self.after_space };
        self.after_space = self.skip_space();
        Some(token)
    }
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn string<'v>(name: &str, value: Value<'v>) -> Result<&'v str> {
    value.as_str().ok_or_else(|| wrong_type(name, "string", value.kind()))
}

fn flag(operand: Doc<'_>, name: &str) -> Result<bool> {
    match operand.get(name) {
        None => Ok(false),
        Some(Value::Boolean(flag)) => Ok(flag),
        Some(value) => Err(wrong_type(name, "bool", value.kind())),
    }
}

fn wrong_type(name: &str, expected: &str, found: Kind) -> Error {
    let found = found.alias();
    Error::type_mismatch(format!("\"{name}\" had the wrong type. Expected {expected}, found {found}"))
}
