//! A history: transactions with their operations, and the events of change streams.
//!
//! As text, it has a line of JSON for each transaction and each stream:
//!
//! ```text
//! {"transaction":{"client":1,"began":10,"ended":20,"outcome":"committed",
//!                 "operations":[{"read":[7,[1,2]]},{"append":[7,3]}]}}
//! {"stream":[[7,1],[7,2],[7,3]]}
//! ```

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The name of a list.
pub type Key = i64;

/// A member of a list. It is appended to a list once at most.
pub type Element = i64;

/// An operation that the server has executed, or that a client sent to it without a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    Append(Key, Element),
    /// The whole list was read. A list that does not exist is empty.
    Read(Key, Vec<Element>),
}

/// What the client knows about the end of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Committed,
    Aborted,
    /// The commit was sent, and no reply came.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    pub client: u32,
    /// When the client sent the first operation. All clients have the same clock.
    pub began: u64,
    /// When the client received the last reply.
    pub ended: u64,
    pub outcome: Outcome,
    pub operations: Vec<Operation>,
}

impl Transaction {
    pub fn appends(&self) -> impl Iterator<Item = (Key, Element)> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Append(key, element) => Some((*key, *element)),
            Operation::Read(..) => None,
        })
    }
}

/// The appended elements that a change stream has shown, in its order.
pub type Stream = Vec<(Key, Element)>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    pub transactions: Vec<Transaction>,
    pub streams: Vec<Stream>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Transaction(Transaction),
    Stream(Stream),
}

impl History {
    /// Decodes a history. Fails if a line is no transaction or stream, or if an element is appended
    /// twice to a list: such a history has no unique order.
    pub fn parse(text: &str) -> Result<History> {
        let mut history = History::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match serde_json::from_str(line).with_context(|| format!("line {}", number + 1))? {
                Line::Transaction(transaction) => history.transactions.push(transaction),
                Line::Stream(stream) => history.streams.push(stream),
            }
        }
        let mut appended = HashSet::new();
        for (key, element) in history.transactions.iter().flat_map(Transaction::appends) {
            if !appended.insert((key, element)) {
                bail!("{element} is appended to list {key} twice");
            }
        }
        Ok(history)
    }

    /// Returns the number of transactions with this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.transactions.iter().filter(|transaction| transaction.outcome == outcome).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_decoded() {
        let text = r#"
            {"transaction":{"client":1,"began":10,"ended":20,"outcome":"unknown","operations":[{"read":[7,[1,2]]},{"append":[7,3]}]}}
            {"stream":[[7,1],[7,3]]}"#;
        let history = History::parse(text).unwrap();
        assert_eq!(history.transactions[0].operations, [Operation::Read(7, vec![1, 2]), Operation::Append(7, 3)]);
        assert_eq!(history.transactions[0].outcome, Outcome::Unknown);
        assert_eq!(history.streams, [[(7, 1), (7, 3)]]);
    }

    #[test]
    fn wrong_lines_are_refused() {
        for (text, expected) in [
            ("{}", "line 1"),
            ("\n{\"stream\":[1]}", "line 2"),
            (
                r#"{"transaction":{"client":1,"began":1,"ended":2,"outcome":"committed","operations":[{"append":[1,2]},{"append":[1,2]}]}}"#,
                "2 is appended to list 1 twice",
            ),
        ] {
            let error = History::parse(text).unwrap_err();
            assert!(format!("{error:#}").contains(expected), "{error:#}");
        }
    }
}
