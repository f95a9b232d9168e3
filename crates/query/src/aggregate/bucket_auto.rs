//! `$bucketAuto`: a given number of buckets with about as many documents in each.

use super::Demand;
use super::accumulate::Accumulator;
use super::granularity::Granularity;
use super::group::parse_fields;
use super::operand::{Operand, Row};
use super::reshape::{is_expression, quoted};
use super::steps::{Give, Hold};
use crate::Context;
use crate::expression::Evaluated;
use crate::expression::number::Number;
use crate::sort::memory_exceeded;
use crate::{Item, ItemBuf};
use document::{Collation, DocBuf, DocWriter, Value, ValueBuf, doc};
use error::{Code, Error, Result};
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct BucketAuto {
    group_by: Operand,
    buckets: usize,
    granularity: Option<Granularity>,
    fields: Vec<(Box<str>, Accumulator)>,
    collation: Collation,
}

impl BucketAuto {
    pub fn parse(spec: Value<'_>, context: &Context) -> Result<BucketAuto> {
        let Value::Document(spec) = spec else {
            let kind = spec.kind().alias();
            let message = format!("The argument to $bucketAuto must be an object, but found type: {kind}");
            return Err(Error::new(Code(40240), message));
        };
        let (mut group_by, mut buckets, mut output, mut granularity) = (None, None, None, None);
        for (name, value) in spec.iter() {
            match name {
                "groupBy" if !is_expression(value) => {
                    let message = format!(
                        "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression object, but \
                         found: {}",
                        quoted(value)
                    );
                    return Err(Error::new(Code(40239), message));
                }
                "groupBy" => group_by = Some(Operand::parse(value, context)?),
                "buckets" => buckets = Some(parse_count(value)?),
                "output" => {
                    output = Some(value.as_document().ok_or_else(|| {
                        let kind = value.kind().alias();
                        let message =
                            format!("The $bucketAuto 'output' field must be an object, but found type: {kind}");
                        Error::new(Code(40244), message)
                    })?);
                }
                "granularity" => granularity = Some(Granularity::parse(value)?),
                _ => return Err(Error::new(Code(40245), format!("Unrecognized option to $bucketAuto: {name}"))),
            }
        }
        let (Some(group_by), Some(buckets)) = (group_by, buckets) else {
            return Err(Error::new(Code(40246), "$bucketAuto requires 'groupBy' and 'buckets' to be specified"));
        };
        let counting = doc! { "count": &doc! { "$sum": 1 } };
        let fields = parse_fields(output.filter(|output| !output.is_empty()).unwrap_or(counting.as_doc()), context)?;
        Ok(BucketAuto { group_by, buckets, granularity, fields, collation: context.collation.clone() })
    }
}

fn parse_count(value: Value<'_>) -> Result<usize> {
    if !value.kind().is_number() {
        let kind = value.kind().alias();
        let message = format!("The $bucketAuto 'buckets' field must be a numeric value, but found type: {kind}");
        return Err(Error::new(Code(40241), message));
    }
    let Some(count) = crate::update::whole_number(value).and_then(|count| i32::try_from(count).ok()) else {
        let found = match value {
            Value::Decimal128(_) => crate::expression::display(value),
            other => crate::text::general(Number::from_value(other).map_or(0.0, Number::to_f64), 6),
        };
        let message =
            format!("The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found {found}");
        return Err(Error::new(Code(40242), message));
    };
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => {
            let message = format!("The $bucketAuto 'buckets' field must be greater than 0, but found: {count}");
            Err(Error::new(Code(40243), message))
        }
    }
}

/// The documents of a run, with the values they are put into buckets by.
pub(super) struct Buckets {
    spec: Arc<BucketAuto>,
    entries: Vec<Entry>,
    memory_bytes: usize,
    memory_bytes_max: usize,
}

struct Entry {
    value: ValueBuf,
    document: ItemBuf,
}

struct Bucket {
    min: ValueBuf,
    max: ValueBuf,
    documents: Vec<ItemBuf>,
}

impl Buckets {
    pub fn new(spec: Arc<BucketAuto>, memory_bytes_max: usize) -> Buckets {
        Buckets { spec, entries: Vec::new(), memory_bytes: 0, memory_bytes_max }
    }

    fn into_documents(mut self) -> Result<Vec<DocBuf>> {
        let collation = &self.spec.collation;
        self.entries.sort_by(|a, b| collation.compare(a.value.as_value(), b.value.as_value()));
        let mut entries: VecDeque<Entry> = std::mem::take(&mut self.entries).into();
        let size = ((entries.len() as f64 / self.spec.buckets as f64).round() as usize).max(1);
        let mut buckets: Vec<Bucket> = Vec::new();
        while let Some(first) = entries.pop_front() {
            let min = match (buckets.last(), &self.spec.granularity) {
                (Some(before), Some(_)) => before.max.clone(),
                (None, Some(granularity)) => rounded(granularity, &first.value, Granularity::round_down),
                _ => first.value.clone(),
            };
            let mut bucket = Bucket { min, max: first.value, documents: vec![first.document] };
            let last = buckets.len() + 1 == self.spec.buckets;
            let more = if last { entries.len() } else { (size - 1).min(entries.len()) };
            for entry in entries.drain(..more) {
                bucket.max = entry.value;
                bucket.documents.push(entry.document);
            }
            self.settle_max(&mut bucket, &mut entries);
            buckets.push(bucket);
        }
        buckets.into_iter().map(|bucket| self.write(bucket)).collect()
    }

    /// Takes in what belongs to the bucket as well, and puts its upper end where the next bucket begins.
    fn settle_max(&self, bucket: &mut Bucket, entries: &mut VecDeque<Entry>) {
        let Some(granularity) = &self.spec.granularity else {
            while entries
                .front()
                .is_some_and(|next| self.spec.collation.compare(bucket.max.as_value(), next.value.as_value()).is_eq())
            {
                if let Some(entry) = entries.pop_front() {
                    bucket.max = entry.value;
                    bucket.documents.push(entry.document);
                }
            }
            if let Some(next) = entries.front() {
                bucket.max = next.value.clone();
            }
            return;
        };
        let boundary = rounded(granularity, &bucket.max, Granularity::round_up);
        while entries
            .front()
            .is_some_and(|next| self.spec.collation.compare(boundary.as_value(), next.value.as_value()).is_gt())
        {
            bucket.documents.extend(entries.pop_front().map(|entry| entry.document));
        }
        let is_zero = Number::from_value(boundary.as_value()).is_some_and(Number::is_zero);
        bucket.max = match entries.front().filter(|_| is_zero) {
            Some(next) => rounded(granularity, &next.value, Granularity::round_down),
            None => boundary,
        };
    }

    fn write(&self, bucket: Bucket) -> Result<DocBuf> {
        let id = doc! { "min": &bucket.min, "max": &bucket.max };
        let mut states = Vec::with_capacity(self.spec.fields.len());
        for (_, accumulator) in &self.spec.fields {
            states.push(accumulator.begin(Value::Document(id.as_doc()))?);
        }
        for document in &bucket.documents {
            let row = Row::of(document.as_item());
            for ((_, accumulator), state) in self.spec.fields.iter().zip(&mut states) {
                accumulator.add(state, &row)?;
            }
        }
        Ok(DocBuf::build(|writer: &mut DocWriter<'_>| {
            writer.append("_id", &id);
            for ((name, accumulator), state) in self.spec.fields.iter().zip(states) {
                accumulator.write(&state, name, writer);
            }
        }))
    }
}

impl Hold for Buckets {
    fn push(&mut self, document: Item<'_>) -> Result<Demand> {
        let value = self.spec.group_by.evaluate(document)?;
        if self.spec.granularity.is_some() {
            check_roundable(&value)?;
        }
        let value = value.value_or_null().to_owned();
        self.memory_bytes += size_of::<Entry>() + value.raw_value().len() + document.document.size();
        if self.memory_bytes > self.memory_bytes_max {
            return Err(memory_exceeded(self.memory_bytes_max));
        }
        self.entries.push(Entry { value, document: document.to_owned() });
        Ok(Demand::More)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Give>> {
        Ok(Box::new(self.into_documents()?.into_iter()))
    }
}

fn check_roundable(value: &Evaluated<'_>) -> Result<()> {
    let Some(number) = value.value().and_then(Number::from_value) else {
        let kind = value.type_name();
        let message = format!(
            "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: {kind}"
        );
        return Err(Error::new(Code(40258), message));
    };
    let number = number.to_f64();
    if number.is_nan() {
        let message = "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN";
        return Err(Error::new(Code(40259), message));
    }
    if number < 0.0 {
        let message =
            "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number";
        return Err(Error::new(Code(40260), message));
    }
    Ok(())
}

fn rounded(granularity: &Granularity, value: &ValueBuf, round: fn(&Granularity, f64) -> f64) -> ValueBuf {
    let Some(number) = Number::from_value(value.as_value()) else { return value.clone() };
    let result = round(granularity, number.to_f64());
    let whole = number.as_integer().is_some() && (result >= 1.0 || result == 0.0) && result < 9.2e18;
    match value.as_value() {
        _ if number.is_decimal() => Value::Decimal128(Number::Double(result).to_decimal()).to_owned(),
        _ if whole && (granularity.is_powers_of_two() || result == 0.0) => {
            Number::integer(result as i64, number.is_int32()).to_value().to_owned()
        }
        _ => Value::Double(result).to_owned(),
    }
}
