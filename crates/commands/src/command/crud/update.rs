//! `update`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/update/>

use crate::arguments;
use crate::arguments::options;
use crate::arguments::{plain_boolean, unknown_field};
use crate::call::{Call, Disposition};
use crate::replica_set;
use crate::time_series;
use crate::time_series::Series;
use crate::write;
use crate::write::statements;
use crate::write::statements::{WriteCommand, inline_statements};
use document::{Collation, Doc, DocBuf, DocWriter, Element, Kind, Value};
use error::{Code, Error, Result};
use query::{Context, Predicate};
use store::{ReturnImage, UpdateStatement};
use update::Update;

/// `update`, as a command with statements.
pub struct Updates;

impl WriteCommand for Updates {
    const NAME: &'static str = "update";
    const STATEMENTS: &'static str = "updates";
    const WITHIN_STATEMENT: &'static str = WITHIN_STATEMENT;
    const MANY_REFUSED: &'static str = "Cannot use retryable writes with multi=true";

    type Arguments<'a> = UpdateArguments<'a>;
    type Statement = UpdateStatement;

    fn read(statement: Doc<'_>) -> Result<Self::Arguments<'_>> {
        UpdateArguments::read(statement)
    }

    fn collation<'a>(arguments: &Self::Arguments<'a>) -> Option<Doc<'a>> {
        arguments.collation
    }

    fn affects_many(arguments: &Self::Arguments<'_>) -> bool {
        arguments.multi
    }

    fn parse(arguments: Self::Arguments<'_>, call: &Call<'_>, context: &Context) -> Result<UpdateStatement> {
        arguments.parse(call, context)
    }

    fn on_buckets(series: &Series, statement: Doc<'_>) -> Result<DocBuf> {
        time_series::writing::update(series, statement)
    }

    fn write_reply(call: &Call<'_>, outcomes: &write::Outcomes, reply: &mut DocWriter<'_>) {
        write_reply(call, outcomes, reply);
    }
}

const WITHIN_STATEMENT: &str = "update.updates";

/// Parses the fields of an `update`.
pub fn parse(call: &Call<'_>) -> Result<()> {
    statements::parse::<Updates>(call)
}

pub async fn update(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    statements::execute::<Updates>(call, reply).await
}

fn write_reply(call: &Call<'_>, outcomes: &write::Outcomes, reply: &mut DocWriter<'_>) {
    let done = || outcomes.statements.iter().filter_map(|(index, outcome)| Some((*index, outcome.as_ref().ok()?)));
    let upserted = done().filter(|(_, outcome)| outcome.upserted.is_some()).count() as u64;
    let matched: u64 = done().map(|(_, outcome)| outcome.matched).sum();
    let modified: u64 = done().map(|(_, outcome)| outcome.modified).sum();
    call.worker.statistics().operations_update.add(outcomes.statements.len() as u64);
    call.worker.statistics().documents_updated.add(modified);
    call.worker.statistics().documents_inserted.add(upserted);
    if write::write_unacknowledged(call, reply) {
        return;
    }
    reply.append("n", (matched + upserted) as i32);
    replica_set::write_outcome_time(call, reply);
    write::write_errors(outcomes, reply);
    if upserted > 0 {
        let mut array = reply.array("upserted");
        for (index, outcome) in done() {
            if let Some(id) = &outcome.upserted {
                let mut entry = array.document();
                entry.append("index", index as i32);
                entry.append("_id", id);
            }
        }
    }
    reply.append("nModified", modified as i32);
    write::write_retried(outcomes, reply);
}

/// The fields of one statement.
pub struct UpdateArguments<'a> {
    pub query: Doc<'a>,
    pub update: Element<'a>,
    pub multi: bool,
    pub upsert: bool,
    pub array_filters: Option<Doc<'a>>,
    pub constants: Option<Doc<'a>>,
    pub hint: Option<Value<'a>>,
    pub collation: Option<Doc<'a>>,
    upsert_supplied: bool,
}

impl<'a> UpdateArguments<'a> {
    pub fn read(statement: Doc<'a>) -> Result<Self> {
        let (mut query, mut update) = (None, None);
        let (mut multi, mut upsert, mut upsert_supplied) = (false, false, false);
        let (mut array_filters, mut constants, mut hint, mut collation) = (None, None, None, None);
        for field in statement.elements() {
            match field.key() {
                "q" => query = Some(arguments::document(WITHIN_STATEMENT, field)?),
                "u" => update = Some(check_update(field)?),
                _ if arguments::is_left_out(field, &["multi", "upsert", "c", "collation"]) => {}
                "multi" => multi = arguments::boolean(WITHIN_STATEMENT, field)?,
                "upsert" => upsert = arguments::boolean(WITHIN_STATEMENT, field)?,
                "upsertSupplied" => upsert_supplied = plain_boolean(field)?,
                "arrayFilters" => {
                    let filters = arguments::array(WITHIN_STATEMENT, field)?;
                    inline_statements("update.updates.arrayFilters", filters)?;
                    array_filters = Some(filters);
                }
                "c" => constants = Some(arguments::document(WITHIN_STATEMENT, field)?),
                "hint" => hint = options::hint(field)?,
                "collation" => collation = Some(arguments::document(WITHIN_STATEMENT, field)?),
                other => return Err(unknown_field(WITHIN_STATEMENT, other)),
            }
        }
        let missing = |field| arguments::missing_field(WITHIN_STATEMENT, field);
        Ok(UpdateArguments {
            query: query.ok_or_else(|| missing("q"))?,
            update: update.ok_or_else(|| missing("u"))?,
            multi,
            upsert,
            array_filters,
            constants,
            hint,
            collation,
            upsert_supplied,
        })
    }

    /// Returns the statement's own collation, if it has one. An invalid one fails only the
    /// statement.
    pub fn collation(&self) -> Result<Option<Collation>> {
        options::given_collation(self.collation)
    }

    /// Checks `upsertSupplied`, which servers send to one another: a constant contains the document
    /// to insert.
    fn check_supplied(&self) -> Result<()> {
        let message = match (self.upsert_supplied, self.upsert) {
            (true, false) => "cannot specify 'upsertSupplied: true' for a non-upsert operation",
            (true, true) if self.constants.and_then(|constants| constants.get("new")).is_none() => {
                "the parameter 'upsertSupplied' is set to 'true', but no document was supplied"
            }
            _ => return Ok(()),
        };
        Err(Error::failed_to_parse(message))
    }

    pub fn parse(self, call: &Call<'_>, context: &Context) -> Result<UpdateStatement> {
        self.check_supplied()?;
        let context = &*options::with_collation(context, self.collation()?);
        let with_constants;
        let context = match self.constants {
            None => context,
            Some(_) if self.update.kind != Kind::Array => {
                return Err(Error::new(Code(51198), "Constant values may only be specified for pipeline updates"));
            }
            Some(constants) => {
                with_constants = merge_constants(context, constants)?;
                &with_constants
            }
        };
        let update = Update::parse(self.update.value(), self.array_filters, context)?;
        if self.multi && update.is_replacement() {
            return Err(Error::failed_to_parse("multi update is not supported for replacement-style update"));
        }
        let predicate = Predicate::parse_query(self.query, context)?;
        check_upsert(self.upsert, &predicate)?;
        Ok(UpdateStatement {
            sort: predicate.own_order().filter(|_| !self.multi),
            predicate,
            update,
            multi: self.multi,
            upsert: self.upsert,
            new_id: call.worker.new_object_id(call.now_ms),
            hint: self.hint.map(Value::to_owned),
            image: ReturnImage::None,
        })
    }
}

/// Fails with 224 for an upsert with an expression in its filter, which cannot produce a document.
pub fn check_upsert(upsert: bool, predicate: &Predicate) -> Result<()> {
    if upsert && predicate.has_expression() {
        return Err(Error::new(
            Code::QUERY_FEATURE_NOT_ALLOWED,
            "$expr is not allowed in the query predicate for an upsert",
        ));
    }
    Ok(())
}

/// Checks that an update is a document or a pipeline.
pub fn check_update(field: Element<'_>) -> Result<Element<'_>> {
    match field.kind {
        Kind::Document => Ok(field),
        Kind::Array => {
            aggregate::precheck(field.value().as_array().unwrap_or(Doc::EMPTY))?;
            Ok(field)
        }
        _ => Err(Error::failed_to_parse("Update argument must be either an object or an array")),
    }
}

/// Returns the variables of a statement: the command's, overridden by its own constants (`c`).
fn merge_constants(context: &Context, constants: Doc<'_>) -> Result<Context> {
    let given = values::Variables::from(constants.to_owned());
    let mut variables = options::without(context.variables.as_doc(), |name| given.get(name).is_some());
    let constants = options::constants(constants, context)?;
    constants.as_doc().iter().for_each(|(name, value)| variables.append(name, value));
    Ok(Context { variables: variables.into(), ..context.clone() })
}
