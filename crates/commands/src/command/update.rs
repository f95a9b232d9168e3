//! `update`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/update/>

use crate::arguments::{self, plain_boolean, unknown_field};
use crate::collection_uuid;
use crate::command::options;
use crate::command::time_series;
use crate::dispatch::{Call, Disposition};
use crate::envelope::check_statement_id;
use crate::index_filters;
use crate::write;
use document::{Collation, Doc, DocWriter, Element, Kind, Value};
use error::{Code, Error, Result};
use query::{Context, Predicate, Update};
use store::{ReturnImage, UpdateStatement};

const WITHIN: &str = "update";
const WITHIN_STATEMENT: &str = "update.updates";

/// The fields of an `update`.
struct Arguments<'a> {
    options: write::Options,
    variables: Option<Doc<'a>>,
    statements: Vec<Doc<'a>>,
    /// What the statements say, one by one. What is wrong with a statement's form fails the command; what is wrong with its
    /// meaning fails the statement.
    read: Vec<UpdateArguments<'a>>,
}

impl<'a> Arguments<'a> {
    fn read(call: &Call<'a>, fields: impl Iterator<Item = Element<'a>>) -> Result<Self> {
        let mut options = write::Options::default();
        let mut variables = None;
        let mut statements: Option<Vec<Doc<'a>>> = None;
        let mut read = Vec::new();
        let each = |statements: &[Doc<'a>]| -> Result<Vec<_>> {
            statements.iter().copied().map(UpdateArguments::read).collect()
        };
        for field in fields {
            match field.key() {
                "updates" => {
                    let inline = inline_statements("update.updates", arguments::array(WITHIN, field)?)?;
                    read = each(&inline)?;
                    statements = Some(inline);
                }
                _ if arguments::is_left_out(field, &["ordered", "bypassDocumentValidation", "let"]) => {}
                "ordered" => options.ordered = arguments::boolean(WITHIN, field)?,
                "bypassDocumentValidation" => {
                    options.bypass_validation = arguments::boolean_or_number(WITHIN, field)?;
                }
                "let" => variables = Some(arguments::document(WITHIN, field)?),
                "stmtId" => check_statement_id(WITHIN, field)?,
                "collectionUUID" => drop(collection_uuid::read(WITHIN, field)?),
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        if let Some(sequence) = call.request.sequence("updates") {
            let sent: Vec<_> = sequence.collect();
            read = each(&sent)?;
            statements = Some(sent);
        }
        let statements = statements.ok_or_else(|| arguments::missing_field(WITHIN, "updates"))?;
        Ok(Arguments { options, variables, statements, read })
    }
}

/// What is wrong with an `update` of its own.
pub fn read_first(call: &Call<'_>) -> Result<()> {
    let arguments = Arguments::read(call, call.all_fields())?;
    call.check_namespace()?;
    write::check_length(arguments.statements.len())
}

pub async fn update(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let Arguments { options, variables, statements, read } = Arguments::read(call, call.fields())?;
    let namespace = arguments::namespace(call.database(), call.first())?;
    write::check_length(statements.len())?;
    arguments::check_to_write(&namespace)?;
    let collation = options::settle_collation(call, &namespace, None).await?;
    let context = match options::context(call, variables, collation) {
        Ok(context) => context,
        // What is wrong with the variables is wrong with each statement.
        Err(error) => {
            let refused = statements.iter().map(|_| Err(error.clone())).collect();
            let outcomes = write::carry_out::<UpdateStatement>(call, &namespace, options, refused).await?;
            write_reply(call, &outcomes, reply);
            return Ok(Disposition::Reply);
        }
    };
    if call.envelope.txn_number.is_some() && read.iter().any(|statement| statement.multi) {
        return Err(Error::new(Code::INVALID_OPTIONS, "Cannot use retryable writes with multi=true"));
    }
    let filtered = call.worker.server.index_filters.are_any();
    let collations: Vec<_> = read.iter().filter(|_| filtered).map(|statement| statement.collation).collect();
    let parsed = read.into_iter().map(|statement| statement.parse(call, &context));
    let mut parsed: Vec<Result<UpdateStatement>> = parsed.collect();
    index_filters::settle(call, &namespace, &mut parsed, &collations).await?;
    let first_is_wrong = parsed.first().is_some_and(Result::is_err);
    let mut outcomes = write::carry_out::<UpdateStatement>(call, &namespace, options, parsed).await;
    if (write::met_view(&outcomes) || first_is_wrong)
        && let Some(series) = time_series::find(call, &namespace).await?
    {
        let translated = statements.iter().map(|statement| {
            let statement = time_series::writing::update(&series, *statement)?;
            UpdateArguments::read(statement.as_doc())?.parse(call, &context)
        });
        outcomes = write::carry_out(call, &series.buckets, options.on_buckets(), translated.collect()).await;
    }
    let outcomes = outcomes?;
    write_reply(call, &outcomes, reply);
    Ok(Disposition::Reply)
}

fn write_reply(call: &Call<'_>, outcomes: &write::Outcomes, reply: &mut DocWriter<'_>) {
    let done = || outcomes.statements.iter().filter_map(|(index, outcome)| Some((*index, outcome.as_ref().ok()?)));
    let upserted = done().filter(|(_, outcome)| outcome.upserted.is_some()).count() as u64;
    let matched: u64 = done().map(|(_, outcome)| outcome.matched).sum();
    let modified: u64 = done().map(|(_, outcome)| outcome.modified).sum();
    call.worker.statistics().operations_update.add(outcomes.statements.len() as u64);
    call.worker.statistics().documents_updated.add(modified);
    call.worker.statistics().documents_inserted.add(upserted);
    reply.append("n", (matched + upserted) as i32);
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

/// The statements of a command that has them in its body. Nulls among them count as left out.
pub fn inline_statements<'a>(within: &str, array: Doc<'a>) -> Result<Vec<Doc<'a>>> {
    array
        .elements()
        .filter(|element| !matches!(element.value(), Value::Null | Value::Undefined))
        .map(|element| match element.value() {
            Value::Document(document) => Ok(document),
            _ => Err(arguments::wrong_type(within, element, "object")),
        })
        .collect()
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

    /// The statement's own collation, if it has one. What is wrong with it fails the statement alone.
    pub fn collation(&self) -> Result<Option<Collation>> {
        options::given_collation(self.collation)
    }

    /// `upsertSupplied` is for servers among themselves: what to insert comes along in a constant.
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
        let predicate = Predicate::parse_query(self.query, context)?;
        check_upsert(self.upsert, &predicate)?;
        if self.multi && update.is_replacement() {
            return Err(Error::failed_to_parse("multi update is not supported for replacement-style update"));
        }
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

/// Errors: 224 for an upsert whose filter has an expression, from which no document can be made.
pub fn check_upsert(upsert: bool, predicate: &Predicate) -> Result<()> {
    if upsert && predicate.has_expression() {
        return Err(Error::new(
            Code::QUERY_FEATURE_NOT_ALLOWED,
            "$expr is not allowed in the query predicate for an upsert",
        ));
    }
    Ok(())
}

/// An update is a document or a pipeline.
pub fn check_update(field: Element<'_>) -> Result<Element<'_>> {
    match field.kind {
        Kind::Document => Ok(field),
        Kind::Array => {
            query::aggregate::glance(field.value().as_array().unwrap_or(Doc::EMPTY))?;
            Ok(field)
        }
        _ => Err(Error::failed_to_parse("Update argument must be either an object or an array")),
    }
}

/// The variables of a statement: the command's, and its own constants (`c`) over them.
fn merge_constants(context: &Context, constants: Doc<'_>) -> Result<Context> {
    let mut variables = options::without(context.variables.as_doc(), |name| constants.get(name).is_some());
    let constants = options::constants(constants, context)?;
    constants.as_doc().iter().for_each(|(name, value)| variables.append(name, value));
    Ok(Context { variables, ..context.clone() })
}
