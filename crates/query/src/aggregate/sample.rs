//! `$sample`: some documents, chosen at random.

use super::Demand;
use super::steps::{Give, Hold};
use crate::sort::memory_exceeded;
use document::{Doc, DocBuf, Value};
use error::{Code, Error, Result};
use rand::RngExt;

pub(super) fn parse(spec: Value<'_>) -> Result<u64> {
    let Value::Document(spec) = spec else {
        return Err(Error::new(Code(28745), "the $sample stage specification must be an object"));
    };
    let mut size = None;
    for (name, value) in spec.iter() {
        if name != "size" {
            return Err(Error::new(Code(28748), format!("unrecognized option to $sample: {name}")));
        }
        size = Some(match value {
            Value::Int32(number) => i64::from(number),
            Value::Int64(number) => number,
            Value::Double(number) => number as i64,
            Value::Decimal128(number) => number.to_f64() as i64,
            _ => return Err(Error::new(Code(28746), "size argument to $sample must be a number")),
        });
    }
    let size = size.ok_or_else(|| Error::new(Code(28749), "$sample stage must specify a size"))?;
    u64::try_from(size).map_err(|_| Error::new(Code(28747), "size argument to $sample must not be negative"))
}

/// Draws a number per document; the smallest numbers win, and their order is the order of the result.
pub(super) struct Sampler {
    size: usize,
    drawn: Vec<(u64, DocBuf)>,
    memory_bytes: usize,
    memory_bytes_max: usize,
}

impl Sampler {
    pub fn new(size: u64, memory_bytes_max: usize) -> Sampler {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        Sampler { size, drawn: Vec::new(), memory_bytes: 0, memory_bytes_max }
    }

    fn drop_losers(&mut self) {
        if self.drawn.len() > self.size {
            self.drawn.select_nth_unstable_by_key(self.size, |(number, _)| *number);
            self.drawn.truncate(self.size);
            self.memory_bytes = self.drawn.iter().map(|(_, document)| document.as_bytes().len()).sum();
        }
    }
}

impl Hold for Sampler {
    fn push(&mut self, document: Doc<'_>) -> Result<Demand> {
        if self.size == 0 {
            return Ok(Demand::Enough);
        }
        self.memory_bytes += document.size();
        self.drawn.push((rand::rng().random(), document.to_owned()));
        if self.drawn.len() >= self.size.saturating_mul(2) {
            self.drop_losers();
        }
        if self.memory_bytes > self.memory_bytes_max {
            return Err(memory_exceeded(self.memory_bytes_max));
        }
        Ok(Demand::More)
    }

    fn finish(mut self: Box<Self>) -> Result<Box<dyn Give>> {
        self.drop_losers();
        self.drawn.sort_unstable_by_key(|(number, _)| *number);
        let documents: Vec<DocBuf> = self.drawn.into_iter().map(|(_, document)| document).collect();
        Ok(Box::new(documents.into_iter()))
    }
}
