//! Updates by `_id` as one statement: nothing is read first, and writers of one document queue for its row instead of starting over.
//!
//! The statement finds no row where it would not be exact (see [`super::push`] and [`super::set`]; or the document is so large that it
//! may outgrow a document's size), nor where there is no document. It fails where MariaDB's functions give NULL, which they do for
//! whatever they cannot read, and a document must not be. All of that is decided by the other way, which reads first.

use super::push::Push;
use super::set::Set;
use crate::catalog::table::Table;
use crate::index::Index;
use crate::plan::MariaDbPlan;
use crate::write::change::statement::{Change, Running};
use crate::write::change::update_statement::{Statement, Unseen};
use crate::write::recorded_write::{Wrote, write};
use document::Kind;
use mariadb_client::Result;
use store::{Plan, StatementOutcome};

/// Deeper values are spelled by where they stand.
const LEVELS_MAX: usize = 8;

impl<C: Change> Running<'_, C> {
    /// Updates without reading first. `None`: it was not for this way.
    pub(super) async fn update_unseen(
        &self,
        plan: &MariaDbPlan,
        table: &Table,
        ledger: &mut super::Ledger,
    ) -> Result<Option<Wrote>> {
        let Some(id) = plan.single_id() else { return Ok(None) };
        let Some(unseen) = self.statement.unseen().filter(|unseen| self.may_go_unseen(unseen, plan, table)) else {
            return Ok(None);
        };
        let (push, set);
        let statement = match unseen {
            Unseen::Push(pushed) => {
                push = Push::new(&pushed);
                push.as_ref().map(|push| push.statement(table, id))
            }
            Unseen::Set(fields) => {
                set = Set::new(&fields);
                set.as_ref().map(|set| set.statement(table, id))
            }
        };
        let Some(Statement { sql, params }) = statement else { return Ok(None) };
        let outcome = StatementOutcome { matched: 1, modified: 1, ..StatementOutcome::default() };
        let mut lease = self.store.pool.lease_for(self.namespace).await?;
        let writing = write(&mut lease, table, ledger, vec![Ok(outcome)], true, false, async |connection| {
            connection.queue_execute(&sql.into(), &params);
            Ok(1)
        });
        match self.announced_anything(writing).await {
            Ok(wrote) => Ok(Some(wrote)),
            Err(failure) if failure.is_lost() || failure.is_contention() || failure.is_missing_table() => Err(failure),
            Err(_) => Ok(None),
        }
    }

    /// Whether nobody needs to see the document before or after, and this is a table where NULL is no document.
    fn may_go_unseen(&self, unseen: &Unseen<'_>, plan: &MariaDbPlan, table: &Table) -> bool {
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
            && match unseen {
                Unseen::Push(pushed) => suits(pushed.path, pushed.levels, true),
                Unseen::Set(fields) => fields.iter().all(|set| {
                    let kind = set.value.kind();
                    suits(set.field, set.levels, matches!(kind, Kind::Array | Kind::Document))
                }),
            }
    }
}

/// Whether a field's name is written in a path as it is.
fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | ' ')
}

/// Whether an index is of other fields, so that no array comes into it.
fn is_unconcerned(index: &Index, field: &str) -> bool {
    index.fields().all(|path| path.split('.').next() != Some(field))
}
