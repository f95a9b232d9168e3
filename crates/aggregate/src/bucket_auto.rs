//! `$bucketAuto`: a given number of buckets with about as many documents in each.

use super::accumulate::{Accumulator, AccumulatorState};
use super::flow::{BlockingStage, Consumer, DocumentSource};
use super::flow::{Demand, Pacer};
use super::granularity::Granularity;
use super::group::parse_fields;
use super::operand::{Operand, Row};
use super::reshape::{is_expression, quoted};
use document::{Collation, DocBuf, DocWriter, Value, ValueBuf, doc};
use error::{Code, Error, Result};
use query::expression::Evaluated;
use query::sort::{Sorted, Sorter};
use query::{Context, Item, ItemBuf, Sort};
use std::sync::Arc;
use values::number::Number;
use values::spill::Budget;

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
                "buckets" => buckets = Some(parse_bucket_count(value)?),
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
        let buckets = usize::try_from(buckets).ok().filter(|buckets| *buckets > 0).ok_or_else(|| {
            let message = format!("The $bucketAuto 'buckets' field must be greater than 0, but found: {buckets}");
            Error::new(Code(40243), message)
        })?;
        let counting = doc! { "count": &doc! { "$sum": 1 } };
        let fields = parse_fields(output.filter(|output| !output.is_empty()).unwrap_or(counting.as_doc()), context)?;
        if fields.iter().any(|(_, accumulator)| accumulator.reads_key()) {
            return Err(Error::new(Code(4544714), "Can't refer to the group key in $bucketAuto"));
        }
        Ok(BucketAuto { group_by, buckets, granularity, fields, collation: context.collation.clone() })
    }
}

fn parse_bucket_count(value: Value<'_>) -> Result<i32> {
    if !value.kind().is_number() {
        let kind = value.kind().alias();
        let message = format!("The $bucketAuto 'buckets' field must be a numeric value, but found type: {kind}");
        return Err(Error::new(Code(40241), message));
    }
    let Some(count) = values::integer::as_i64_exact(value).and_then(|count| i32::try_from(count).ok()) else {
        let found = match value {
            Value::Decimal128(_) => values::text::display(value),
            other => values::text::general(Number::from_value(other).map_or(0.0, Number::to_f64), 6),
        };
        let message =
            format!("The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found {found}");
        return Err(Error::new(Code(40242), message));
    };
    Ok(count)
}

/// The documents of a run, sorted by the values that determine their buckets.
pub(super) struct BucketAutoInput {
    spec: Arc<BucketAuto>,
    sorter: Sorter,
    count: u64,
}

impl BucketAutoInput {
    pub fn new(spec: Arc<BucketAuto>, budget: Budget) -> BucketAutoInput {
        BucketAutoInput { spec, sorter: Sorter::new(Sort::default(), None, budget), count: 0 }
    }
}

impl BlockingStage for BucketAutoInput {
    fn push(&mut self, document: Item<'_>) -> Result<Demand> {
        let value = self.spec.group_by.evaluate(document)?;
        if self.spec.granularity.is_some() {
            check_roundable(&value)?;
        }
        self.count += 1;
        self.sorter.push_with_prefix(document, |key| {
            self.spec.collation.encode_key(value.value_or_null(), key);
            Ok(())
        })?;
        Ok(Demand::More)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn DocumentSource>> {
        let size = (self.count as f64 / self.spec.buckets as f64).round() as u64;
        Ok(Box::new(BucketAutoOutput {
            spec: self.spec,
            sorted: self.sorter.finish()?,
            next_document: None,
            bucket_size: size.max(1),
            emitted: 0,
            previous_max: None,
        }))
    }
}

/// The finished buckets, returned one after the other.
struct BucketAutoOutput {
    spec: Arc<BucketAuto>,
    sorted: Sorted,
    /// The first document after the current bucket, with its value.
    next_document: Option<(ValueBuf, ItemBuf)>,
    /// Number of documents in a bucket, unless equal values require more.
    bucket_size: u64,
    emitted: usize,
    /// The upper boundary of the previous bucket.
    previous_max: Option<ValueBuf>,
}

/// A bucket that is being filled.
struct Bucket {
    min: ValueBuf,
    max: ValueBuf,
    states: Vec<AccumulatorState>,
}

impl Bucket {
    fn add(&mut self, spec: &BucketAuto, document: &ItemBuf) -> Result<()> {
        let row = Row::new(document.as_item());
        for ((_, accumulator), state) in spec.fields.iter().zip(&mut self.states) {
            steps::step();
            accumulator.add(state, &row)?;
        }
        Ok(())
    }
}

impl BucketAutoOutput {
    /// Returns the next document if its value passes `accepts`.
    fn next_if(&mut self, accepts: impl FnOnce(Value<'_>) -> bool) -> Result<Option<(ValueBuf, ItemBuf)>> {
        if self.next_document.is_none()
            && let Some(document) = self.sorted.take_next()?
        {
            let value = self.spec.group_by.evaluate(document.as_item())?.value_or_null().to_owned();
            self.next_document = Some((value, document));
        }
        Ok(self.next_document.take_if(|(value, _)| accepts(value.as_value())))
    }

    fn next_value(&mut self) -> Result<Option<ValueBuf>> {
        self.next_if(|_| false)?;
        Ok(self.next_document.as_ref().map(|(value, _)| value.clone()))
    }

    fn next_bucket(&mut self, pace: &mut Pacer<'_>) -> Result<Option<Bucket>> {
        let spec = self.spec.clone();
        let Some((value, document)) = self.next_if(|_| true)? else { return Ok(None) };
        let min = match (&self.previous_max, &spec.granularity) {
            (Some(previous), Some(_)) => previous.clone(),
            (None, Some(granularity)) => rounded(granularity, &value, Granularity::round_down),
            _ => value.clone(),
        };
        let states =
            spec.fields.iter().map(|(_, accumulator)| accumulator.new_state(Value::Null)).collect::<Result<_>>()?;
        let mut bucket = Bucket { min, max: value, states };
        bucket.add(&spec, &document)?;
        self.emitted += 1;
        let more = if self.emitted == spec.buckets { u64::MAX } else { self.bucket_size - 1 };
        for _ in 0..more {
            let Some((value, document)) = self.next_if(|_| true)? else { break };
            bucket.max = value;
            bucket.add(&spec, &document)?;
            pace()?;
        }
        self.finish_max(&mut bucket, pace)?;
        self.previous_max = Some(bucket.max.clone());
        Ok(Some(bucket))
    }

    /// Adds the documents that belong to the bucket as well, and sets its upper boundary to the
    /// start of the next bucket.
    fn finish_max(&mut self, bucket: &mut Bucket, pace: &mut Pacer<'_>) -> Result<()> {
        let spec = self.spec.clone();
        let Some(granularity) = &spec.granularity else {
            let same = bucket.max.clone();
            while let Some((value, document)) =
                self.next_if(|next| spec.collation.compare(same.as_value(), next).is_eq())?
            {
                bucket.max = value;
                bucket.add(&spec, &document)?;
                pace()?;
            }
            if let Some(next) = self.next_value()? {
                bucket.max = next;
            }
            return Ok(());
        };
        let boundary = rounded(granularity, &bucket.max, Granularity::round_up);
        while let Some((_, document)) =
            self.next_if(|next| spec.collation.compare(boundary.as_value(), next).is_gt())?
        {
            bucket.add(&spec, &document)?;
            pace()?;
        }
        let is_zero = Number::from_value(boundary.as_value()).is_some_and(Number::is_zero);
        bucket.max = match self.next_value()?.filter(|_| is_zero) {
            Some(next) => rounded(granularity, &next, Granularity::round_down),
            None => boundary,
        };
        Ok(())
    }
}

impl DocumentSource for BucketAutoOutput {
    fn emit_next(&mut self, take: &mut Consumer<'_>, pace: &mut Pacer<'_>) -> Result<Option<Demand>> {
        let Some(bucket) = self.next_bucket(pace)? else { return Ok(None) };
        let document = DocBuf::build(|writer: &mut DocWriter<'_>| {
            writer.append("_id", &doc! { "min": &bucket.min, "max": &bucket.max });
            for ((name, accumulator), state) in self.spec.fields.iter().zip(&bucket.states) {
                accumulator.write(state, name, writer);
            }
        });
        take(document.as_doc().into()).map(Some)
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
