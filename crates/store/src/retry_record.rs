//! The record of a retryable write: the outcomes of its first statements, as a BSON document.
//!
//! A store writes the record in the transaction that carries out the statements, so that either
//! both are stored after a crash or neither. A batch that is sent again is answered from the
//! record, and continues behind it.
//!
//! The stores use different names for the fields ([`RecordFormat`]), since each must read the
//! records it has stored.

use crate::StatementOutcome;
use document::{Doc, DocBuf, DocWriter, Value};
use error::{Code, Error};

/// The outcome of a statement, which may be an error.
pub type Outcome = Result<StatementOutcome, Error>;

/// A store's layout of records. Equal outcomes that follow one another are stored as one entry.
#[derive(Clone, Copy, Debug)]
pub struct RecordFormat {
    /// The field with the number of outcomes, if the record has one.
    pub total: Option<&'static str>,
    /// The field with the array of entries.
    pub entries: &'static str,
    /// The field of an entry with the number of outcomes that it stands for.
    pub repeats: &'static str,
    /// Whether `repeats` is an int32 that is left out where it is 1; else it is an int64.
    pub repeats_if_several: bool,
}

impl RecordFormat {
    /// Encodes outcomes, in the order of their statements.
    pub fn encode<'o>(&self, outcomes: impl Iterator<Item = &'o Outcome> + Clone) -> DocBuf {
        DocBuf::build(|writer| {
            if let Some(total) = self.total {
                writer.append(total, outcomes.clone().count() as i64);
            }
            let mut outcomes = outcomes.peekable();
            let mut entries = writer.array(self.entries);
            while let Some(outcome) = outcomes.next() {
                let mut repeats = 1i64;
                while outcomes.next_if_eq(&outcome).is_some() {
                    repeats += 1;
                }
                let mut entry = entries.document();
                match self.repeats_if_several {
                    true if repeats == 1 => {}
                    true => entry.append(self.repeats, repeats as i32),
                    false => entry.append(self.repeats, repeats),
                }
                encode_outcome(outcome, &mut entry);
            }
        })
    }

    /// Decodes the outcomes of a record; `None` if it is damaged.
    pub fn decode(&self, record: Doc<'_>) -> Option<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for entry in record.get(self.entries)?.as_array()?.values() {
            let entry = entry.as_document()?;
            let repeats = match entry.get(self.repeats) {
                None if self.repeats_if_several => 1,
                repeats => count_of(repeats?)?,
            };
            outcomes.extend(std::iter::repeat_n(decode_outcome(entry)?, repeats as usize));
        }
        Some(outcomes)
    }

    /// Returns the number of outcomes without decoding them; `None` if the record does not hold it.
    pub fn total_of(&self, record: Doc<'_>) -> Option<u64> {
        count_of(record.get(self.total?)?)
    }
}

fn encode_outcome(outcome: &Outcome, entry: &mut DocWriter<'_>) {
    match outcome {
        Ok(outcome) => {
            entry.append("matched", outcome.matched as i64);
            entry.append("modified", outcome.modified as i64);
            if let Some(id) = &outcome.upserted {
                entry.append("upserted", id);
            }
            if let Some(image) = &outcome.image {
                entry.append("image", image);
            }
        }
        Err(error) => {
            entry.append("code", error.code().0);
            entry.append("message", error.message());
            if let Some(details) = error.details().and_then(Doc::from_bytes) {
                entry.append("details", details);
            }
        }
    }
}

fn decode_outcome(entry: Doc<'_>) -> Option<Outcome> {
    if let Some(Value::Int32(code)) = entry.get("code") {
        let error = Error::new(Code(code), entry.get("message")?.as_str()?);
        return Some(Err(match entry.get("details").and_then(Value::as_document) {
            Some(details) => error.with_details(details.as_bytes().to_vec()),
            None => error,
        }));
    }
    Some(Ok(StatementOutcome {
        text_score: None,
        matched: count_of(entry.get("matched")?)?,
        modified: count_of(entry.get("modified")?)?,
        upserted: entry.get("upserted").map(Value::to_owned),
        image: entry.get("image").and_then(Value::as_document).map(Doc::to_owned),
    }))
}

fn count_of(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Int64(count) => u64::try_from(count).ok(),
        Value::Int32(count) => u64::try_from(count).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{array, doc};

    const COUNTED: RecordFormat =
        RecordFormat { total: Some("n"), entries: "s", repeats: "count", repeats_if_several: false };
    const PLAIN: RecordFormat =
        RecordFormat { total: None, entries: "outcomes", repeats: "times", repeats_if_several: true };

    fn outcomes() -> Vec<Outcome> {
        let inserted = StatementOutcome { matched: 1, ..Default::default() };
        let upserted = StatementOutcome { upserted: Some(Value::Int32(7).to_owned()), ..Default::default() };
        let image = StatementOutcome { modified: 1, image: Some(doc! { "a": 1 }), ..inserted.clone() };
        let error = Error::new(Code::DUPLICATE_KEY, "E11000").with_details(doc! { "keyPattern": 1 }.into_vec());
        vec![Ok(inserted.clone()), Ok(inserted.clone()), Ok(upserted), Err(error), Ok(inserted), Ok(image)]
    }

    #[test]
    fn outcomes_survive_being_recorded() {
        for format in [COUNTED, PLAIN] {
            let record = format.encode(outcomes().iter());
            assert_eq!(format.decode(record.as_doc()), Some(outcomes()));
            assert_eq!(format.total_of(record.as_doc()), format.total.map(|_| 6));
            let mut damaged = DocBuf::new();
            damaged.append(format.entries, 1);
            assert_eq!(format.decode(damaged.as_doc()), None);
        }
    }

    /// Records are stored, so their bytes must not change.
    #[test]
    fn the_stored_formats_stay() {
        let two = || vec![outcomes().remove(0), outcomes().remove(1), outcomes().remove(2)];
        let inserted = |repeats| doc! { "count": repeats, "matched": 1_i64, "modified": 0_i64 };
        let upserted = doc! { "count": 1_i64, "matched": 0_i64, "modified": 0_i64, "upserted": 7 };
        let counted = doc! { "n": 3_i64, "s": &array![&inserted(2_i64), &upserted] };
        assert_eq!(COUNTED.encode(two().iter()), counted);
        let inserted = doc! { "times": 2, "matched": 1_i64, "modified": 0_i64 };
        let upserted = doc! { "matched": 0_i64, "modified": 0_i64, "upserted": 7 };
        assert_eq!(PLAIN.encode(two().iter()), doc! { "outcomes": &array![&inserted, &upserted] });
    }
}
