//! Finds the first line of a log that is not as it was written.

use crate::chain::{Head, Hex, Key, Sealed};
use crate::line;
use document::{DocBuf, doc};
use sha2::{Digest, Sha256};
use std::fmt;

/// Why a log is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The line is no entry.
    NoEntry,
    Changed {
        seq: u64,
    },
    Missing {
        from: u64,
        to: u64,
    },
    /// An entry appears where a later one must be.
    Repeated {
        seq: u64,
        expected: u64,
    },
    DoesNotFollow {
        seq: u64,
    },
    /// The log ends before the entry that was written last.
    Cut {
        last: u64,
        written: u64,
    },
    /// The entry is not the one that was written last.
    OtherHead {
        seq: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoEntry => f.write_str("this line is no entry of an audit log: it was inserted or changed"),
            Fault::Changed { seq } => {
                write!(f, "entry {seq} was changed, or it was written with another key")
            }
            Fault::Missing { from, to } if from == to => write!(f, "entry {from} is missing before this line"),
            Fault::Missing { from, to } => write!(f, "entries {from} to {to} are missing before this line"),
            Fault::Repeated { seq, expected } => {
                write!(f, "entry {seq} appears where entry {expected} must be: it was inserted, copied or moved")
            }
            Fault::DoesNotFollow { seq } => {
                write!(f, "entry {seq} does not continue the entry before it: one of both was replaced")
            }
            Fault::Cut { last, written } => {
                write!(f, "the log ends with entry {last}, but {written} entries were written: it was cut")
            }
            Fault::OtherHead { seq } => {
                write!(f, "entry {seq} is not the one that was written: the end of the log was replaced")
            }
        }
    }
}

/// Lines that are no entries, until the next entry explains them.
struct Torn {
    first_line: u64,
    bytes: usize,
    hash: Sha256,
}

impl Torn {
    fn new(first_line: u64, line: &[u8]) -> Torn {
        Torn { first_line, bytes: line.len(), hash: Sha256::new_with_prefix(line) }
    }

    fn push(&mut self, line: &[u8]) {
        self.bytes += 1 + line.len();
        self.hash.update(b"\n");
        self.hash.update(line);
    }

    /// Returns the parameters of the entry that explains these lines.
    fn param(self) -> DocBuf {
        let hash = Hex(&self.hash.finalize()).to_string();
        doc! { "bytes": i32::try_from(self.bytes).unwrap_or(i32::MAX), "sha256": hash.as_str() }
    }
}

/// Checks lines in their order.
pub struct Verifier {
    key: Option<Key>,
    /// The number that the first entry must have.
    from: u64,
    head: Option<Head>,
    torn: Option<Torn>,
    /// The lines received.
    lines: u64,
    pub entries: u64,
    /// The incomplete lines that later entries explain.
    pub torn_lines: u64,
    /// The entry whose hash the file with the head contains.
    recorded: Option<Head>,
}

impl Verifier {
    /// `from`: the number of the first entry, 1 for a whole log. `recorded`: the head that the
    /// writer has recorded beside the log.
    pub fn new(key: Option<Key>, from: u64, recorded: Option<Head>) -> Verifier {
        Verifier { key, from, head: None, torn: None, lines: 0, entries: 0, torn_lines: 0, recorded }
    }

    /// Returns the last entry so far.
    pub fn head(&self) -> Option<Head> {
        self.head
    }

    /// Checks the next line, without its line feed. Fails with the number of the first wrong line,
    /// counted over all files.
    pub fn line(&mut self, line: &[u8]) -> Result<(), (u64, Fault)> {
        self.lines += 1;
        let at = self.lines;
        let Some(sealed) = Sealed::parse(line) else {
            match &mut self.torn {
                Some(torn) => torn.push(line),
                None => self.torn = Some(Torn::new(at, line)),
            }
            return Ok(());
        };
        if let Some(torn) = self.torn.take() {
            let first_line = torn.first_line;
            if !explains(&sealed, &torn.param()) {
                return Err((first_line, Fault::NoEntry));
            }
            self.torn_lines += 1;
        }
        self.entry(&sealed).map_err(|fault| (at, fault))
    }

    fn entry(&mut self, sealed: &Sealed<'_>) -> Result<(), Fault> {
        let Sealed { seq, prev, .. } = *sealed;
        let expected = self.head.map_or(self.from, |head| head.seq + 1);
        if !sealed.is_intact(self.key.as_ref()) {
            return Err(Fault::Changed { seq });
        }
        if seq > expected {
            return Err(Fault::Missing { from: expected, to: seq - 1 });
        }
        if seq < expected {
            return Err(Fault::Repeated { seq, expected });
        }
        let before = self.head.or((seq == 1).then_some(Head::EMPTY));
        if before.is_some_and(|before| before.hash != prev) {
            return Err(Fault::DoesNotFollow { seq });
        }
        if self.recorded.is_some_and(|recorded| recorded.seq == seq && recorded.hash != sealed.hash) {
            return Err(Fault::OtherHead { seq });
        }
        self.head = Some(sealed.head());
        self.entries += 1;
        Ok(())
    }

    /// Checks the end of the log. `is_complete`: whether the last line ends with a line feed.
    /// Returns whether the last line is incomplete.
    pub fn end(&mut self, is_complete: bool) -> Result<bool, (u64, Fault)> {
        if let Some(torn) = self.torn.as_ref().filter(|_| is_complete) {
            return Err((torn.first_line, Fault::NoEntry));
        }
        let last = self.head.map_or(self.from.saturating_sub(1), |head| head.seq);
        match self.recorded {
            Some(recorded) if recorded.seq > last => Err((self.lines, Fault::Cut { last, written: recorded.seq })),
            _ => Ok(self.torn.is_some()),
        }
    }
}

/// Returns the parameters of the entry that explains an incomplete end of a log.
pub(crate) fn torn_param(end: &[u8]) -> DocBuf {
    Torn::new(0, end).param()
}

fn explains(sealed: &Sealed<'_>, param: &DocBuf) -> bool {
    let mut expected = b"\"param\":".to_vec();
    line::document(param.as_doc(), 0, &mut expected);
    let is_torn_line = sealed.text.starts_with(b"{\"atype\":\"tornLine\",");
    is_torn_line && sealed.text.windows(expected.len()).any(|part| *part == *expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(key: Option<&Key>, entries: u64) -> Vec<Vec<u8>> {
        let mut head = Head::EMPTY;
        let line = |number| {
            let mut line = format!("{{\"atype\":\"logout\",\"result\":{number}").into_bytes();
            head.seal(key, 0, &mut line);
            line.pop();
            line
        };
        (1..=entries).map(line).collect()
    }

    fn check(key: Option<&Key>, lines: &[Vec<u8>], recorded: Option<Head>) -> Result<u64, (u64, Fault)> {
        let mut verifier = Verifier::new(key.cloned(), 1, recorded);
        lines.iter().try_for_each(|line| verifier.line(line))?;
        verifier.end(true)?;
        Ok(verifier.entries)
    }

    #[test]
    fn each_kind_of_damage_is_found() {
        let key = Key::new(b"sixteen bytes of key");
        for key in [None, key.as_ref()] {
            let whole = log(key, 9);
            let head = Sealed::parse(&whole[8]).unwrap().head();
            assert_eq!(check(key, &whole, Some(head)), Ok(9));
            let edited = |edit: &dyn Fn(&mut Vec<Vec<u8>>)| {
                let mut lines = whole.clone();
                edit(&mut lines);
                check(key, &lines, Some(head))
            };
            assert_eq!(edited(&|lines| lines[3][12] = b'x'), Err((4, Fault::Changed { seq: 4 })));
            assert_eq!(edited(&|lines| drop(lines.remove(3))), Err((4, Fault::Missing { from: 4, to: 4 })));
            assert_eq!(edited(&|lines| drop(lines.drain(..2))), Err((1, Fault::Missing { from: 1, to: 2 })));
            assert_eq!(edited(&|lines| lines.insert(3, b"{}".to_vec())), Err((4, Fault::NoEntry)));
            let copied = lines_of(&whole, 1);
            assert_eq!(
                edited(&|lines| lines.insert(3, copied.clone())),
                Err((4, Fault::Repeated { seq: 2, expected: 4 }))
            );
            assert_eq!(edited(&|lines| lines.swap(3, 4)), Err((4, Fault::Missing { from: 4, to: 4 })));
            assert_eq!(edited(&|lines| lines.truncate(7)), Err((7, Fault::Cut { last: 7, written: 9 })));
            let other = log(key, 10);
            let forged = Head { seq: 9, hash: [1; 32] };
            assert_eq!(check(key, &other, Some(forged)), Err((9, Fault::OtherHead { seq: 9 })));
        }
        // Another log of the same key, spliced in.
        let mut lines = log(None, 3);
        let mut head = Sealed::parse(&log(None, 4)[3]).unwrap().head();
        head = Head { seq: 3, ..head };
        let mut spliced = b"{\"atype\":\"logout\",\"result\":0".to_vec();
        head.seal(None, 0, &mut spliced);
        spliced.pop();
        lines.push(spliced);
        assert_eq!(check(None, &lines, None), Err((4, Fault::DoesNotFollow { seq: 4 })));
    }

    fn lines_of(lines: &[Vec<u8>], at: usize) -> Vec<u8> {
        lines[at].clone()
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let whole = log(None, 3);
        let head = Sealed::parse(&whole[2]).unwrap().head();
        for at in 0..whole[1].len() {
            for bit in 0..8 {
                let mut lines = whole.clone();
                lines[1][at] ^= 1 << bit;
                assert!(check(None, &lines, Some(head)).is_err(), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn an_incomplete_line_is_explained_by_the_next() {
        let whole = log(None, 2);
        let torn = b"{\"atype\":\"log".to_vec();
        let mut head = Sealed::parse(&whole[1]).unwrap().head();
        let mut explanation = b"{\"atype\":\"tornLine\",\"param\":".to_vec();
        line::document(torn_param(&torn).as_doc(), 0, &mut explanation);
        explanation.extend_from_slice(b",\"result\":0");
        head.seal(None, 0, &mut explanation);
        explanation.pop();
        let lines = [whole[0].clone(), whole[1].clone(), torn.clone(), explanation.clone()];
        assert_eq!(check(None, &lines, Some(head)), Ok(3));
        let lines = [whole[0].clone(), whole[1].clone(), b"{\"atype\":\"log0".to_vec(), explanation];
        assert_eq!(check(None, &lines, Some(head)), Err((3, Fault::NoEntry)));
        let mut verifier = Verifier::new(None, 1, None);
        [&whole[0], &whole[1], &torn].iter().for_each(|line| verifier.line(line).unwrap());
        assert_eq!(verifier.end(false), Ok(true));
    }
}
