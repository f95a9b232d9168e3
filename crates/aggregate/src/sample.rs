//! `$sample`: some documents, chosen at random.

use super::flow::Demand;
use super::flow::{BlockingStage, DocumentSource};
use document::Value;
use error::{Code, Error, Result};
use query::sort::Sorter;
use query::{Item, ItemBuf, Meta, MetadataBuf, Sort};
use rand::RngExt;
use values::spill::Budget;

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
    /// Whether the numbers drawn are requested (`{$meta: "randVal"}`).
    pub records_rand_val: bool,
}

/// Draws a number per document; the smallest numbers win, and their order is the order of the
/// result.
pub(super) struct Sampler {
    size: usize,
    records_rand_val: bool,
    sorter: Sorter,
}

impl Sampler {
    pub fn new(sample: Sample, budget: Budget) -> Sampler {
        let size = usize::try_from(sample.size).unwrap_or(usize::MAX);
        let sorter = Sorter::new(Sort::default(), Some(size), budget);
        Sampler { size, records_rand_val: sample.records_rand_val, sorter }
    }
}

impl BlockingStage for Sampler {
    fn push(&mut self, item: Item<'_>) -> Result<Demand> {
        if self.size == 0 {
            return Ok(Demand::Enough);
        }
        let drawn: u64 = rand::rng().random();
        let with_number = self.records_rand_val.then(|| with_rand_val(drawn, item));
        self.sorter.push_with_prefix(with_number.as_ref().map_or(item, ItemBuf::as_item), |key| {
            key.extend_from_slice(&drawn.to_be_bytes());
            Ok(())
        })?;
        Ok(Demand::More)
    }

    fn sample_size(&self) -> Option<usize> {
        Some(self.size)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(self.sorter.finish()?))
    }
}

/// Records the number scaled to between 0 and 1, the largest first.
fn with_rand_val(number: u64, item: Item<'_>) -> ItemBuf {
    let mut metadata = MetadataBuf::default();
    metadata.begin(item.metadata);
    metadata.set(Meta::RandVal, 1.0 - number as f64 / u64::MAX as f64);
    Item { metadata: metadata.as_metadata(), ..item }.to_owned()
}
