//! `delete`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/delete/>

use crate::arguments;
use crate::arguments::options;
use crate::arguments::unknown_field;
use crate::call::{Call, Disposition};
use crate::replica_set;
use crate::time_series;
use crate::time_series::Series;
use crate::write;
use crate::write::statements;
use crate::write::statements::WriteCommand;
use document::{Collation, Doc, DocBuf, DocWriter, Element, Value};
use error::{Error, Result};
use query::{Context, Predicate};
use store::{DeleteStatement, ReturnImage};

/// `delete`, as a command with statements. Deletes are not validated.
pub struct Deletes;

impl WriteCommand for Deletes {
    const NAME: &'static str = "delete";
    const STATEMENTS: &'static str = "deletes";
    const WITHIN_STATEMENT: &'static str = WITHIN_STATEMENT;
    const MANY_REFUSED: &'static str = "Cannot use retryable writes with limit=0";

    type Arguments<'a> = DeleteArguments<'a>;
    type Statement = DeleteStatement;

    fn read(statement: Doc<'_>) -> Result<Self::Arguments<'_>> {
        DeleteArguments::read(statement)
    }

    fn collation<'a>(arguments: &Self::Arguments<'a>) -> Option<Doc<'a>> {
        arguments.collation
    }

    fn affects_many(arguments: &Self::Arguments<'_>) -> bool {
        !arguments.one
    }

    fn parse(arguments: Self::Arguments<'_>, _: &Call<'_>, context: &Context) -> Result<DeleteStatement> {
        arguments.parse(context)
    }

    fn on_buckets(series: &Series, statement: Doc<'_>) -> Result<DocBuf> {
        time_series::writing::delete(series, statement)
    }

    fn write_reply(call: &Call<'_>, outcomes: &write::Outcomes, reply: &mut DocWriter<'_>) {
        write_reply(call, outcomes, reply);
    }
}

const WITHIN_STATEMENT: &str = "delete.deletes";

/// Parses the fields of a `delete`.
pub fn parse(call: &Call<'_>) -> Result<()> {
    statements::parse::<Deletes>(call)
}

pub async fn delete(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    statements::execute::<Deletes>(call, reply).await
}

fn write_reply(call: &Call<'_>, outcomes: &write::Outcomes, reply: &mut DocWriter<'_>) {
    let deleted: u64 = outcomes.statements.iter().filter_map(|(_, o)| Some(o.as_ref().ok()?.matched)).sum();
    call.worker.statistics().operations_delete.add(outcomes.statements.len() as u64);
    call.worker.statistics().documents_deleted.add(deleted);
    if write::write_unacknowledged(call, reply) {
        return;
    }
    reply.append("n", deleted as i32);
    replica_set::write_outcome_time(call, reply);
    write::write_errors(outcomes, reply);
    write::write_retried(outcomes, reply);
}

/// The fields of one statement.
pub struct DeleteArguments<'a> {
    pub query: Doc<'a>,
    pub one: bool,
    pub hint: Option<Value<'a>>,
    pub collation: Option<Doc<'a>>,
}

impl<'a> DeleteArguments<'a> {
    pub fn read(statement: Doc<'a>) -> Result<Self> {
        let (mut query, mut one, mut hint, mut collation) = (None, None, None, None);
        for field in statement.elements() {
            match field.key() {
                "q" => query = Some(arguments::document(WITHIN_STATEMENT, field)?),
                "limit" => one = Some(limit(field)?),
                _ if arguments::is_left_out(field, &["collation"]) => {}
                "hint" => hint = options::hint(field)?,
                "collation" => collation = Some(arguments::document(WITHIN_STATEMENT, field)?),
                other => return Err(unknown_field(WITHIN_STATEMENT, other)),
            }
        }
        let missing = |field| arguments::missing_field(WITHIN_STATEMENT, field);
        Ok(DeleteArguments {
            query: query.ok_or_else(|| missing("q"))?,
            one: one.ok_or_else(|| missing("limit"))?,
            hint,
            collation,
        })
    }

    /// Returns the statement's own collation, if it has one. An invalid one fails only the
    /// statement.
    pub fn collation(&self) -> Result<Option<Collation>> {
        options::given_collation(self.collation)
    }

    pub fn parse(self, context: &Context) -> Result<DeleteStatement> {
        let context = &options::with_collation(context, self.collation()?);
        let predicate = Predicate::parse_query(self.query, context)?;
        Ok(DeleteStatement {
            sort: predicate.own_order().filter(|_| self.one),
            predicate,
            one: self.one,
            hint: self.hint.map(Value::to_owned),
            image: ReturnImage::None,
        })
    }
}

/// Reads the limit: one document, or zero for all. As with MongoDB, other types count as zero.
fn limit(field: Element<'_>) -> Result<bool> {
    let refuse = |found: &dyn std::fmt::Display| {
        Err(Error::failed_to_parse(format!("The limit field in delete objects must be 0 or 1. Got {found}")))
    };
    let value = field.value();
    match value {
        Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal128(_) => {
            match values::integer::as_i64_exact(value) {
                Some(0) => Ok(false),
                Some(1) => Ok(true),
                _ => refuse(&values::text::value(value)),
            }
        }
        _ => Ok(false),
    }
}
