//! `$text`: which words a text has, what a search asks for, and how well a document answers it.
//!
//! In reading order: [`language`] (names; stop words and stems), [`characters`] (delimiters, case, diacritics), [`words`] (a text
//! becomes terms), [`definition`] (what a text index says), [`fields`] (which texts of a document it covers), [`score`]
//! (how much each term weighs in a document), [`search`] (the operand of `$text`), [`matching`] (documents against it).
//!
//! Semantics are those of text indexes of version 3, and of those before where an index says so:
//! <https://www.mongodb.com/docs/manual/core/index-text/>.

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
