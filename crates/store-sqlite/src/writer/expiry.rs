//! Indexes with `expireAfterSeconds`: documents are deleted when the date in the indexed field lies that far in the past.
//!
//! Source: <https://www.mongodb.com/docs/manual/core/index-ttl/>

use super::Writer;
use super::rows::Old;
use crate::catalog::Index;
use crate::failure::Attempt;
use crate::planner;
use crate::scan::{self, Cursor};
use document::{DocBuf, Value, doc};
use error::Result;
use query::{Context, Predicate};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use store::{Flow, Namespace, Query};

/// Documents deleted in one transaction.
const SLICE_DOCUMENTS: usize = 500;

/// Indexes still to be looked through in this round.
#[derive(Default)]
pub struct Expiry {
    begun: Option<Instant>,
    pending: Vec<(Namespace, i64)>,
}

impl Writer {
    /// Whether a round is under way or it is time for one.
    pub(super) fn expiry_is_due(&mut self) -> bool {
        let expiry = &mut self.cleaning.expiry;
        if expiry.begun.is_none_or(|begun| begun.elapsed() >= self.shared.options.expiry_interval) {
            expiry.begun = Some(Instant::now());
            expiry.pending = self.catalog.expiring();
        }
        !expiry.pending.is_empty()
    }

    /// Deletes a slice of what one index says has expired.
    pub(super) fn expire_a_little(&mut self) -> Attempt<()> {
        let Some((namespace, id)) = self.cleaning.expiry.pending.last().cloned() else { return Ok(()) };
        let collection = self.catalog.get(&namespace).cloned();
        let index = collection.as_ref().and_then(|it| it.indexes.iter().find(|index| index.id == id)).cloned();
        let mut found: Vec<(i64, DocBuf)> = Vec::new();
        if let (Some(collection), Some(index)) = (collection, index) {
            let Some(predicate) = expired(&index)? else { return Ok(()) };
            let hint = Some(Value::String(&index.spec.name));
            let query = Query { predicate: &predicate, sort: None, limit: None, hint };
            let plan = planner::plan(Some(&collection), &query)?;
            scan::slice(&self.connection, &plan, &mut Cursor::default(), None, &mut |seq, document| {
                if predicate.matches(document)? {
                    found.push((seq, document.to_owned()));
                }
                Ok(if found.len() < SLICE_DOCUMENTS { Flow::Continue } else { Flow::StopAfter })
            })?;
            for (seq, document) in &found {
                let old = Old::of(&collection, document.as_doc())?;
                self.delete_document(&collection, *seq, &old)?;
            }
        }
        if found.len() < SLICE_DOCUMENTS {
            self.cleaning.expiry.pending.pop();
        }
        Ok(())
    }
}

/// The documents whose time is over. (An array of dates expires with the first of them, which is what `$lt` finds.)
fn expired(index: &Arc<Index>) -> Result<Option<Predicate>> {
    let (Some(seconds), [field]) = (index.expire_after_seconds(), index.fields.as_slice()) else { return Ok(None) };
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    let limit = Value::DateTime(now_ms.saturating_sub(seconds.saturating_mul(1000)));
    let mut filter = DocBuf::new();
    filter.append(&field.path, &doc! { "$lt": limit });
    Ok(Some(Predicate::parse(filter.as_doc(), &Context::at(now_ms))?))
}
