//! `$text`: the words of a text, the operand of a search, and the score of a document.
//!
//! In reading order: [`language`] (names; stop words and stems), [`characters`] (delimiters, case,
//! diacritics), [`words`] (from a text to terms), [`definition`] (the definition of a text index),
//! [`fields`] (the texts of a document that it covers), [`score`] (the weight of each term in a
//! document), [`search`] (the operand of `$text`), [`matching`] (documents against it).
//!
//! Semantics are those of text indexes of version 3, and of earlier versions for indexes that have
//! one: <https://www.mongodb.com/docs/manual/core/index-text/>.

pub mod characters;
pub mod definition;
pub mod fields;
pub mod language;
pub mod matching;
pub mod score;
pub mod search;
pub mod stem;
mod stop_words;
pub mod words;

#[cfg(test)]
mod tests;

pub use definition::{TextIndex, TextIndexes};
pub use language::Language;
pub use search::TextSearch;
