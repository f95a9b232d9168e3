//! The sinks of a scan: a batch, a sorter, a pipeline, or a closure.

use super::describe::{Describer, describe, in_turn};
use super::{Batch, Feed, as_document};
use aggregate::Demand;
use document::Doc;
use document::json::JsonError;
use error::{Error, Result};
use query::ReadFields;
use query::sort::Sorter;
use query::{MatchDetails, Predicate, Projection};
use server::operation::OperationContext;
use std::sync::Arc;
use store::{DocumentStore, Flow, Plan, PrefixFiltering, PrefixVerdict, Sink, StoredDoc};

/// The smallest document that is trimmed to the needed fields before it is sorted; smaller ones
/// sort faster whole.
const TRIMMED_BYTES_MIN: usize = 1024;

/// Appends JSON text as BSON.
pub fn transcode(json: &[u8], out: &mut Vec<u8>) -> Result<()> {
    document::json::json_to_bson(json, out).map_err(unreadable)
}

fn unreadable(problem: JsonError) -> Error {
    Error::internal(format!("a stored document cannot be read: {problem}"))
}

/// Returns the stored document as BSON; JSON is converted into `scratch`.
fn bson<'d>(document: StoredDoc<'d>, scratch: &'d mut Vec<u8>) -> Result<Doc<'d>> {
    read_fields(document, None, scratch)
}

/// Converts as [`bson`] does, but of JSON only the needed fields.
#[inline]
fn read_fields<'d>(document: StoredDoc<'d>, fields: Option<&ReadFields>, scratch: &'d mut Vec<u8>) -> Result<Doc<'d>> {
    match (document, fields) {
        (StoredDoc::Bson(document), _) => return Ok(document),
        (StoredDoc::Json(json), None) => {
            scratch.clear();
            transcode(json, scratch)?;
        }
        (StoredDoc::Json(json), Some(fields)) => {
            scratch.clear();
            document::json::json_fields_to_bson(json, scratch, &|name| fields.contains(name)).map_err(unreadable)?;
        }
    }
    Ok(as_document(scratch))
}

/// The fields that decide whether a document is needed at all: a large text is not parsed further
/// if it is not.
#[derive(Clone, Debug)]
pub(super) struct DecidingFields(pub ReadFields);

impl DecidingFields {
    /// Returns whether a prefix of the document contains all these fields.
    fn are_in(&self, beginning: Doc<'_>) -> bool {
        self.0.are_in(beginning)
    }
}

/// Returns the fields of a document that decide whether it is needed, if parsing them first pays
/// off.
fn parse_deciding_fields<'d>(
    deciding_fields: Option<&DecidingFields>,
    document: StoredDoc<'_>,
    scratch: &'d mut Vec<u8>,
) -> Result<Option<Doc<'d>>> {
    let (Some(DecidingFields(fields)), StoredDoc::Json(json)) = (deciding_fields, document) else { return Ok(None) };
    if json.len() < TRIMMED_BYTES_MIN {
        return Ok(None);
    }
    scratch.clear();
    document::json::json_first_fields_to_bson(json, scratch, fields.count(), &|name| fields.index_of(name))
        .map_err(unreadable)?;
    Ok(Some(as_document(scratch)))
}

fn note(describer: Option<&mut Describer>, record: i64) {
    if let Some(describer) = describer {
        describer.record = Some(record);
    }
}

/// Returns whether the document matches, and records the details if they are needed.
#[inline]
fn matches(
    residual: Option<&Predicate>,
    needs_details: bool,
    document: Doc<'_>,
    details: &mut MatchDetails,
) -> Result<bool> {
    match residual {
        None => Ok(true),
        Some(predicate) if needs_details => predicate.matches_with(document, details),
        Some(predicate) => predicate.matches(document),
    }
}

/// Adds documents to a batch in the order of the scan.
pub(super) struct StreamSink<'s, 'b> {
    pub residual: Option<&'s Predicate>,
    pub projection: Option<&'s Projection>,
    pub describer: Option<&'s mut Describer>,
    pub deciding_fields: Option<&'s DecidingFields>,
    /// The only fields that are needed.
    pub fields: Option<&'s ReadFields>,
    pub skip: &'s mut u64,
    pub limit: &'s mut Option<u64>,
    pub batch: &'s mut Batch<'b>,
    pub operation: &'s OperationContext,
    pub scratch: Vec<u8>,
    pub examined: &'s mut u64,
    pub matched: &'s mut u64,
}

impl StreamSink<'_, '_> {
    fn taken(&mut self, taken: bool) -> Flow {
        if !taken {
            *self.matched -= 1;
            return Flow::StopBefore;
        }
        if let Some(limit) = self.limit {
            *limit -= 1;
            if *limit == 0 {
                return Flow::StopAfter;
            }
        }
        if self.batch.is_full() { Flow::StopAfter } else { Flow::Continue }
    }
}

impl Sink for StreamSink<'_, '_> {
    fn filters_by_prefix(&self) -> PrefixFiltering {
        if self.deciding_fields.is_some() && self.residual.is_some() {
            PrefixFiltering::Now
        } else {
            PrefixFiltering::Never
        }
    }

    fn check_prefix(&mut self, prefix: Doc<'_>) -> Result<PrefixVerdict> {
        match (self.deciding_fields, self.residual) {
            (Some(deciding_fields), Some(predicate)) if deciding_fields.are_in(prefix) => {
                if predicate.matches(prefix)? {
                    return Ok(PrefixVerdict::Wanted);
                }
                *self.examined += 1;
                self.operation.tick().map(|()| PrefixVerdict::Rejected)
            }
            _ => Ok(PrefixVerdict::Undecided),
        }
    }

    fn wants_records(&self) -> bool {
        self.describer.is_some()
    }

    fn record(&mut self, number: i64) {
        note(self.describer.as_deref_mut(), number);
    }

    fn accept(&mut self, document: StoredDoc<'_>) -> Result<Flow> {
        self.operation.tick()?;
        *self.examined += 1;
        let mut residual = self.residual;
        if let Some(predicate) = residual
            && let Some(fields) = parse_deciding_fields(self.deciding_fields, document, &mut self.scratch)?
        {
            if !predicate.matches(fields)? {
                return Ok(Flow::Continue);
            }
            residual = None;
        }
        if residual.is_none() {
            *self.matched += 1;
            if *self.skip > 0 {
                *self.skip -= 1;
                return Ok(Flow::Continue);
            }
            let describes = self.describer.is_some() && self.batch.keeps_metadata();
            match (document, self.projection) {
                _ if describes => {}
                (StoredDoc::Bson(document), None) => {
                    let taken = self.batch.push(document);
                    return Ok(self.taken(taken));
                }
                (StoredDoc::Json(json), None) => {
                    let taken = self.batch.push_with(|out| transcode(json, out))?;
                    return Ok(self.taken(taken));
                }
                _ => {}
            }
        }
        let document = read_fields(document, self.fields, &mut self.scratch)?;
        let mut details = MatchDetails::default();
        if let Some(predicate) = residual {
            if !matches(Some(predicate), self.describer.is_some(), document, &mut details)? {
                return Ok(Flow::Continue);
            }
            *self.matched += 1;
            if *self.skip > 0 {
                *self.skip -= 1;
                return Ok(Flow::Continue);
            }
        }
        let taken = match self.projection {
            None if self.batch.keeps_metadata() => {
                self.batch.push(describe(self.describer.as_deref_mut(), document, &details)?)
            }
            None => self.batch.push(document),
            Some(projection) => {
                let item = describe(self.describer.as_deref_mut(), document, &details)?;
                self.batch.push_with(|out| projection.apply(item, out))?
            }
        };
        Ok(self.taken(taken))
    }
}

/// Adds documents to a sorter.
pub(super) struct SortSink<'s> {
    pub residual: Option<&'s Predicate>,
    pub describer: Option<&'s mut Describer>,
    pub sorter: &'s mut Sorter,
    pub deciding_fields: Option<&'s DecidingFields>,
    /// The only fields to retain.
    pub fields: Option<&'s ReadFields>,
    pub operation: &'s OperationContext,
    pub scratch: Vec<u8>,
    pub trimmed: Vec<u8>,
    pub examined: &'s mut u64,
    pub matched: &'s mut u64,
}

impl Sink for SortSink<'_> {
    fn filters_by_prefix(&self) -> PrefixFiltering {
        match self.deciding_fields {
            None => PrefixFiltering::Never,
            Some(_) if self.sorter.retains_all() => PrefixFiltering::Later,
            Some(_) => PrefixFiltering::Now,
        }
    }

    fn check_prefix(&mut self, prefix: Doc<'_>) -> Result<PrefixVerdict> {
        if !self.deciding_fields.is_some_and(|deciding_fields| deciding_fields.are_in(prefix)) {
            return Ok(PrefixVerdict::Undecided);
        }
        if is_of_use(self.residual, self.sorter, self.matched, prefix)? {
            return Ok(PrefixVerdict::Wanted);
        }
        *self.examined += 1;
        self.operation.tick().map(|()| PrefixVerdict::Rejected)
    }

    fn wants_records(&self) -> bool {
        self.describer.is_some()
    }

    fn record(&mut self, number: i64) {
        note(self.describer.as_deref_mut(), number);
    }

    fn accept(&mut self, document: StoredDoc<'_>) -> Result<Flow> {
        self.operation.tick()?;
        *self.examined += 1;
        let mut residual = self.residual;
        if let Some(fields) = parse_deciding_fields(self.deciding_fields, document, &mut self.scratch)?
            && !is_of_use(residual.take(), self.sorter, self.matched, fields)?
        {
            return Ok(Flow::Continue);
        }
        let is_trimmed = matches!(document, StoredDoc::Json(_));
        let mut document = read_fields(document, self.fields, &mut self.scratch)?;
        let mut details = MatchDetails::default();
        if matches(residual, self.describer.is_some(), document, &mut details)? {
            *self.matched += 1;
            if let (Some(fields), false) = (self.fields, is_trimmed || document.size() < TRIMMED_BYTES_MIN) {
                self.trimmed.clear();
                fields.trim(document, &mut self.trimmed);
                document = as_document(&self.trimmed);
            }
            self.sorter.push(describe(self.describer.as_deref_mut(), document, &details)?)?;
        }
        Ok(Flow::Continue)
    }
}

/// Returns whether a document with these deciding fields matches and would be retained. A match
/// that would not be retained is counted.
fn is_of_use(residual: Option<&Predicate>, sorter: &mut Sorter, matched: &mut u64, fields: Doc<'_>) -> Result<bool> {
    if !matches(residual, false, fields, &mut MatchDetails::default())? {
        return Ok(false);
    }
    let retained = sorter.would_retain(fields)?;
    *matched += u64::from(!retained);
    Ok(retained)
}

/// Feeds documents to a pipeline, until it has enough results for a batch.
pub(super) struct PipelineSink<'s, 'f> {
    pub feed: &'s mut Feed<'f>,
    /// Whether the pipeline needs no more input.
    pub has_enough: bool,
    pub scratch: Vec<u8>,
}

impl Sink for PipelineSink<'_, '_> {
    fn wants_records(&self) -> bool {
        self.feed.describer.is_some()
    }

    fn record(&mut self, number: i64) {
        note(self.feed.describer.as_deref_mut(), number);
    }

    fn accept(&mut self, document: StoredDoc<'_>) -> Result<Flow> {
        let feed = &mut *self.feed;
        feed.operation.tick()?;
        *feed.examined += 1;
        let document = read_fields(document, feed.fields, &mut self.scratch)?;
        let mut details = MatchDetails::default();
        if !matches(feed.residual, feed.describer.is_some(), document, &mut details)? {
            return Ok(Flow::Continue);
        }
        *feed.matched += 1;
        if feed.describe_and_push(document, &details)? == Demand::Enough {
            self.has_enough = true;
            return Ok(Flow::StopAfter);
        }
        Ok(if feed.execution.ready_count() >= feed.results_max { Flow::StopAfter } else { Flow::Continue })
    }
}

/// Whether a visitor of [`for_each`] wants more documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    Continue,
    Stop,
}

/// Passes every matching document to `visit`. Without `needs_document`, the visitor gets `{}` if
/// the plan is exact, which saves the conversion to BSON.
pub async fn for_each(
    store: &dyn DocumentStore,
    plan: &Arc<dyn Plan>,
    predicate: &Predicate,
    needs_document: bool,
    operation: &OperationContext,
    visit: impl FnMut(Doc<'_>) -> Result<Visit>,
) -> Result<()> {
    operation.check_interrupt()?;
    let exact = plan.facts().exact;
    let residual = (!exact).then_some(predicate);
    let arranged = residual.and_then(|predicate| in_turn(&**plan, predicate));
    let mut sink = VisitSink {
        residual: arranged.as_ref().or(residual),
        needs_document: needs_document || !exact,
        operation,
        scratch: Vec::new(),
        visit,
    };
    let scanned = operation.run_interruptible(store.scan(&**plan, None, usize::MAX, &mut sink)).await;
    operation.stats.record_scan(plan, plan.examined());
    scanned.map(drop)
}

struct VisitSink<'s, V> {
    residual: Option<&'s Predicate>,
    needs_document: bool,
    operation: &'s OperationContext,
    scratch: Vec<u8>,
    visit: V,
}

impl<V: FnMut(Doc<'_>) -> Result<Visit>> Sink for VisitSink<'_, V> {
    fn accept(&mut self, document: StoredDoc<'_>) -> Result<Flow> {
        self.operation.tick()?;
        let document = if self.needs_document { bson(document, &mut self.scratch)? } else { Doc::EMPTY };
        if !self.residual.map_or(Ok(true), |predicate| predicate.matches(document))? {
            return Ok(Flow::Continue);
        }
        Ok(match (self.visit)(document)? {
            Visit::Continue => Flow::Continue,
            Visit::Stop => Flow::StopAfter,
        })
    }
}
