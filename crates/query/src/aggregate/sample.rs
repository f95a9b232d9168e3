//! `$sample`: some documents, chosen at random.

use super::Demand;
use super::steps::{Give, Hold};
use crate::sort::memory_exceeded;
use crate::{Item, ItemBuf, Meta, MetadataBuf};
use document::Value;
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

/// `$sample`
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub size: u64,
    /// The numbers drawn are asked for (`{$meta: "randVal"}`).
    pub shows_numbers: bool,
}

/// Draws a number per document; the smallest numbers win, and their order is the order of the result.
pub(super) struct Sampler {
    size: usize,
    shows_numbers: bool,
    drawn: Vec<(u64, ItemBuf)>,
    memory_bytes: usize,
    memory_bytes_max: usize,
}

impl Sampler {
    pub fn new(sample: Sample, memory_bytes_max: usize) -> Sampler {
        let size = usize::try_from(sample.size).unwrap_or(usize::MAX);
        Sampler { size, shows_numbers: sample.shows_numbers, drawn: Vec::new(), memory_bytes: 0, memory_bytes_max }
    }

    fn drop_losers(&mut self) {
        if self.drawn.len() > self.size {
            self.drawn.select_nth_unstable_by_key(self.size, |(number, _)| *number);
            self.drawn.truncate(self.size);
            self.memory_bytes = self.drawn.iter().map(|(_, document)| document.size()).sum();
        }
    }
}

impl Hold for Sampler {
    fn push(&mut self, item: Item<'_>) -> Result<Demand> {
        if self.size == 0 {
            return Ok(Demand::Enough);
        }
        let item = item.to_owned();
        self.memory_bytes += item.size();
        self.drawn.push((rand::rng().random(), item));
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
        let shown = |(number, item)| if self.shows_numbers { show_number(number, &item) } else { item };
        let items: Vec<ItemBuf> = self.drawn.into_iter().map(shown).collect();
        Ok(Box::new(items.into_iter()))
    }
}

/// Notes the number as one between 0 and 1, of which the largest comes first.
fn show_number(number: u64, item: &ItemBuf) -> ItemBuf {
    let item = item.as_item();
    let mut metadata = MetadataBuf::default();
    metadata.begin(item.metadata);
    metadata.set(Meta::RandVal, 1.0 - number as f64 / u64::MAX as f64);
    Item { metadata: metadata.as_metadata(), ..item }.to_owned()
}
