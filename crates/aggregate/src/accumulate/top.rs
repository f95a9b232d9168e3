//! `$top`, `$bottom`, `$topN`, `$bottomN`: values of the documents that sort first or last.

use super::collect::{self, evaluate_limit};
use crate::operand::Operand;
use document::{Collation, DocWriter, Value, ValueBuf};
use error::{Code, Error, Result};
use query::{Context, Expression, Item, Sort};
use std::collections::BTreeMap;
use steps::Counted;
use values::text;

#[derive(Debug)]
pub(crate) struct Top {
    /// The expressions to sort by, and whether each ascends. Arrays compare as a whole, unlike in a
    /// `$sort`.
    order: Vec<(Operand, bool)>,
    output: Operand,
    /// `None` for the forms that return one value rather than an array.
    limit: Option<Expression>,
    bottom: bool,
    collation: Collation,
}

/// Retained values by their sort keys and the numbers of their documents.
pub(crate) type RankedValues = BTreeMap<(Vec<u8>, u64), ValueBuf>;

impl Top {
    pub fn parse(operator: &str, argument: Value<'_>, context: &Context) -> Result<Top> {
        let Value::Document(spec) = argument else {
            let found = text::element(operator, argument);
            return Err(Error::new(Code(5788001), format!("specification must be an object; found {found}")));
        };
        let many = operator.ends_with('N');
        let (mut sort, mut output, mut limit) = (None, None, None);
        for (name, value) in spec.iter() {
            match name {
                "n" if many => limit = Some(Expression::parse(value, context)?),
                "output" => output = Some(Operand::parse(value, context)?),
                "sortBy" => {
                    let (Value::Document(order) | Value::Array(order)) = value else {
                        let message = "invalid parameter: expected an object (sortBy)";
                        return Err(Error::new(Code(10065), message));
                    };
                    sort = Some(order);
                }
                _ => return Err(Error::new(Code(5788002), format!("Unknown argument to {operator} '{name}'"))),
            }
        }
        if many && limit.is_none() {
            return Err(Error::new(Code(5788003), "Missing value for 'n'"));
        }
        let output = output.ok_or_else(|| Error::new(Code(5788004), "Missing value for 'output'"))?;
        let sort = sort.ok_or_else(|| Error::new(Code(5788005), "Missing value for 'sortBy'"))?;
        let sort = if sort.is_empty() { Sort::default() } else { Sort::parse_stage(sort, context)? };
        let operand = |path: &str| Operand::parse(Value::String(&format!("${path}")), context);
        let parts = sort.parts().iter().map(|part| Ok((operand(part.path.as_str())?, part.ascending)));
        let (order, collation) = (parts.collect::<Result<_>>()?, context.collation.clone());
        Ok(Top { order, output, limit, bottom: operator.starts_with("$bottom"), collation })
    }

    pub fn limit(&self, key: Value<'_>) -> Result<usize> {
        self.limit.as_ref().map_or(Ok(1), |limit| evaluate_limit(limit, key))
    }

    /// Returns the document's sort key, as bytes that compare as the documents sort, and its
    /// output.
    pub fn key_and_output(&self, document: Item<'_>) -> Result<(Vec<u8>, ValueBuf)> {
        let mut key = Vec::new();
        for (operand, ascending) in &self.order {
            let evaluated = operand.evaluate(document)?;
            let value = match evaluated.value_or_null() {
                Value::Array(array) if array.is_empty() => Value::Undefined,
                value => value,
            };
            let start = key.len();
            self.collation.encode_key(value, &mut key);
            if !ascending {
                key[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        Ok((key, self.output.evaluate(document)?.value_or_null().to_owned()))
    }

    pub fn name(&self) -> &'static str {
        match (self.returns_array(), self.bottom) {
            (false, false) => "$top",
            (false, true) => "$bottom",
            (true, false) => "$topN",
            (true, true) => "$bottomN",
        }
    }

    /// Returns the expression for the number of values, if there is one.
    pub fn limit_expression(&self) -> Option<&Expression> {
        self.limit.as_ref()
    }

    /// Returns whether the last documents in the order are selected.
    pub fn is_bottom(&self) -> bool {
        self.bottom
    }

    /// Returns whether the result is an array.
    pub fn returns_array(&self) -> bool {
        self.limit.is_some()
    }

    /// Adds a document, number `arrival` of its group; returns the bytes by which the state grew.
    pub fn add(&self, limit: usize, arrival: u64, ranked: &mut RankedValues, document: Item<'_>) -> Result<isize> {
        // The output is computed whether it is retained or not: it may fail.
        let (key, value) = self.key_and_output(document)?;
        Ok(self.insert(limit, ranked, (key, arrival), value))
    }

    /// Inserts a value if it is among the first; returns the bytes by which memory grew.
    pub fn insert(&self, limit: usize, ranked: &mut RankedValues, key: (Vec<u8>, u64), value: ValueBuf) -> isize {
        // Of equal keys the first to arrive sorts first.
        collect::insert_ranked(limit, ranked, self.bottom, key, value)
    }

    pub fn write(&self, ranked: &RankedValues, name: &str, writer: &mut DocWriter<'_>) {
        if self.limit.is_none() {
            return writer.append(name, ranked.values().next().map_or(Value::Null, ValueBuf::as_value));
        }
        let mut array = writer.array(name);
        ranked.values().counted().for_each(|value| array.push(value));
    }
}
