//! Updates by `_id` as one statement, without reading first: writers of one document queue for its
//! row instead of starting over.
//!
//! The statement finds no row if it would not be exact (see [`super::push`] and [`super::set`]), if
//! the document is so large that it may exceed the limit, or if there is no document. It fails if
//! MariaDB's functions return NULL, as they do for text they cannot parse, since a document must
//! not be NULL. In all these cases the document is read first.

use super::push::Push;
use super::set::Set;
use crate::catalog::table::Table;
use crate::index::Index;
use crate::plan::MariaDbPlan;
use crate::write::change::statement::{Change, RunningStatement};
use crate::write::change::update_statement::{Statement, UnreadUpdate};
use crate::write::recorded_write::{WriteOutcome, write};
use document::Kind;
use mariadb_client::Result;
use store::{Plan, StatementOutcome};

/// The encoding of deeper values depends on their depth.
const LEVELS_MAX: usize = 8;

impl<C: Change> RunningStatement<'_, C> {
    /// Updates without reading first. Returns `None` if that is not possible.
    pub(super) async fn update_unread(
        &self,
        plan: &MariaDbPlan,
        table: &Table,
        record: &mut super::BatchRecord,
    ) -> Result<Option<WriteOutcome>> {
        let Some(id) = plan.single_id() else { return Ok(None) };
        let Some(unread) = self.statement.unread().filter(|unread| self.may_update_unread(unread, plan, table)) else {
            return Ok(None);
        };
        let (push, set);
        let statement = match unread {
            UnreadUpdate::Push(pushed) => {
                push = Push::new(&pushed);
                push.as_ref().map(|push| push.statement(table, id))
            }
            UnreadUpdate::Set(fields) => {
                set = Set::new(&fields);
                set.as_ref().map(|set| set.statement(table, id))
            }
        };
        let Some(Statement { sql, params }) = statement else { return Ok(None) };
        let outcome = StatementOutcome { matched: 1, modified: 1, ..StatementOutcome::default() };
        let mut lease = self.store.lease_documents(self.namespace).await?;
        let writing = write(&mut lease, table, record, vec![Ok(outcome)], true, false, async |connection| {
            connection.queue_execute(&sql.into(), &params);
            Ok(1)
        });
        match self.observed_unspecified(writing).await {
            Ok(wrote) => Ok(Some(wrote)),
            Err(failure) if failure.is_lost() || failure.is_contention() || failure.is_missing_table() => Err(failure),
            Err(_) => Ok(None),
        }
    }

    /// Returns whether no document image is needed, and the table refuses NULL as a document.
    fn may_update_unread(&self, unread: &UnreadUpdate<'_>, plan: &MariaDbPlan, table: &Table) -> bool {
        let is_for_all =
            |index: &Index| index.has_column_keys() && !index.is_partial() && index.pending_element_table().is_none();
        let suits = |field: &str, levels: usize, is_array_or_document: bool| {
            levels <= LEVELS_MAX
                && field.chars().all(is_plain)
                && (!is_array_or_document || table.indexes.iter().all(|index| is_unconcerned(index, field)))
        };
        self.store.has_ranges
            && table.is_native()
            && table.cap().is_none()
            && self.validator(table).is_none()
            && plan.facts().exact
            && table.indexes.iter().all(is_for_all)
            && !self.store.change_observer.get().is_some_and(|observer| observer.wants_images(self.namespace))
            && match unread {
                UnreadUpdate::Push(pushed) => suits(pushed.path, pushed.levels, true),
                UnreadUpdate::Set(fields) => fields.iter().all(|set| {
                    let kind = set.value.kind();
                    suits(set.field, set.levels, matches!(kind, Kind::Array | Kind::Document))
                }),
            }
    }
}

/// Returns whether a character of a field's name needs no escape in a path.
fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | ' ')
}

/// Returns whether an index has only other fields, so that no array is added to it.
fn is_unconcerned(index: &Index, field: &str) -> bool {
    index.fields().all(|path| path.split('.').next() != Some(field))
}
