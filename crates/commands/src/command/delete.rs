//! `delete`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/delete/>

use crate::arguments::{self, unknown_field};
use crate::collection_uuid;
use crate::command::options;
use crate::command::time_series;
use crate::command::update::inline_statements;
use crate::dispatch::{Call, Disposition};
use crate::envelope::check_statement_id;
use crate::index_filters;
use crate::write;
use document::{Collation, Doc, DocWriter, Element, Value};
use error::{Code, Error, Result};
use query::{Context, Predicate};
use store::{DeleteStatement, ReturnImage};

const WITHIN: &str = "delete";
const WITHIN_STATEMENT: &str = "delete.deletes";

/// The fields of a `delete`.
struct Arguments<'a> {
    ordered: bool,
    variables: Option<Doc<'a>>,
    statements: Vec<Doc<'a>>,
    /// What the statements say, one by one.
    read: Vec<DeleteArguments<'a>>,
}

impl<'a> Arguments<'a> {
    fn read(call: &Call<'a>, fields: impl Iterator<Item = Element<'a>>) -> Result<Self> {
        let mut ordered = true;
        let mut variables = None;
        let mut statements: Option<Vec<Doc<'a>>> = None;
        let mut read = Vec::new();
        let each = |statements: &[Doc<'a>]| -> Result<Vec<_>> {
            statements.iter().copied().map(DeleteArguments::read).collect()
        };
        for field in fields {
            match field.key() {
                "deletes" => {
                    let inline = inline_statements("delete.deletes", arguments::array(WITHIN, field)?)?;
                    read = each(&inline)?;
                    statements = Some(inline);
                }
                _ if arguments::is_left_out(field, &["ordered", "let", "bypassDocumentValidation"]) => {}
                "ordered" => ordered = arguments::boolean(WITHIN, field)?,
                // There is nothing to validate.
                "bypassDocumentValidation" => drop(arguments::boolean_or_number(WITHIN, field)?),
                "let" => variables = Some(arguments::document(WITHIN, field)?),
                "stmtId" => check_statement_id(WITHIN, field)?,
                "collectionUUID" => drop(collection_uuid::read(WITHIN, field)?),
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        if let Some(sequence) = call.request.sequence("deletes") {
            let sent: Vec<_> = sequence.collect();
            read = each(&sent)?;
            statements = Some(sent);
        }
        let statements = statements.ok_or_else(|| arguments::missing_field(WITHIN, "deletes"))?;
        Ok(Arguments { ordered, variables, statements, read })
    }
}

/// What is wrong with a `delete` of its own.
pub fn read_first(call: &Call<'_>) -> Result<()> {
    let arguments = Arguments::read(call, call.all_fields())?;
    call.check_namespace()?;
    write::check_length(arguments.statements.len())
}

pub async fn delete(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let Arguments { ordered, variables, statements, read } = Arguments::read(call, call.fields())?;
    let namespace = arguments::namespace(call.database(), call.first())?;
    write::check_length(statements.len())?;
    arguments::check_to_write(&namespace)?;
    let collation = options::settle_collation(call, &namespace, None).await?;
    let options = write::Options { ordered, ..Default::default() };
    let context = match options::context(call, variables, collation) {
        Ok(context) => context,
        // What is wrong with the variables is wrong with each statement.
        Err(error) => {
            let refused = statements.iter().map(|_| Err(error.clone())).collect();
            let outcomes = write::carry_out::<DeleteStatement>(call, &namespace, options, refused).await?;
            write_reply(call, &outcomes, reply);
            return Ok(Disposition::Reply);
        }
    };
    if call.envelope.txn_number.is_some() && read.iter().any(|statement| !statement.one) {
        return Err(Error::new(Code::INVALID_OPTIONS, "Cannot use retryable writes with limit=0"));
    }
    let filtered = call.worker.server.index_filters.are_any();
    let collations: Vec<_> = read.iter().filter(|_| filtered).map(|statement| statement.collation).collect();
    let parsed = read.into_iter().map(|statement| statement.parse(&context));
    let mut parsed: Vec<Result<DeleteStatement>> = parsed.collect();
    index_filters::settle(call, &namespace, &mut parsed, &collations).await?;
    let first_is_wrong = parsed.first().is_some_and(Result::is_err);
    let mut outcomes = write::carry_out::<DeleteStatement>(call, &namespace, options, parsed).await;
    if (write::met_view(&outcomes) || first_is_wrong)
        && let Some(series) = time_series::find(call, &namespace).await?
    {
        let translated = statements.iter().map(|statement| {
            let statement = time_series::writing::delete(&series, *statement)?;
            DeleteArguments::read(statement.as_doc())?.parse(&context)
        });
        outcomes = write::carry_out(call, &series.buckets, options.on_buckets(), translated.collect()).await;
    }
    let outcomes = outcomes?;

    write_reply(call, &outcomes, reply);
    Ok(Disposition::Reply)
}

fn write_reply(call: &Call<'_>, outcomes: &write::Outcomes, reply: &mut DocWriter<'_>) {
    let deleted: u64 = outcomes.statements.iter().filter_map(|(_, o)| Some(o.as_ref().ok()?.matched)).sum();
    call.worker.statistics().operations_delete.add(outcomes.statements.len() as u64);
    call.worker.statistics().documents_deleted.add(deleted);
    reply.append("n", deleted as i32);
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

    /// The statement's own collation, if it has one. What is wrong with it fails the statement alone.
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

/// One, or zero for all. What is no number counts as zero, as with MongoDB.
fn limit(field: Element<'_>) -> Result<bool> {
    let refuse = |found: &dyn std::fmt::Display| {
        Err(Error::failed_to_parse(format!("The limit field in delete objects must be 0 or 1. Got {found}")))
    };
    let value = field.value();
    match value {
        Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal128(_) => {
            match query::exact_integer(value) {
                Some(0) => Ok(false),
                Some(1) => Ok(true),
                _ => refuse(&query::text::value(value)),
            }
        }
        _ => Ok(false),
    }
}
