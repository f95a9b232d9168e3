//! The parts that `update` and `delete` share: statements with a filter each.

use crate::arguments;
use crate::arguments::options;
use crate::arguments::unknown_field;
use crate::call::{Call, Disposition};
use crate::command::sessions::transactions;
use crate::envelope::check_statement_id;
use crate::envelope::collection_uuid;
use crate::read::index_filters;
use crate::read::index_filters::Filtered;
use crate::time_series;
use crate::time_series::Series;
use crate::write;
use document::{Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use query::Context;

/// One of the two commands.
pub trait WriteCommand {
    const NAME: &'static str;
    /// The field with the statements, and its name in messages.
    const STATEMENTS: &'static str;
    const WITHIN_STATEMENT: &'static str;
    /// The error for statements on many documents in a retryable command.
    const MANY_REFUSED: &'static str;

    /// The fields of one statement.
    type Arguments<'a>;
    type Statement: write::Statement + Filtered;

    fn read(statement: Doc<'_>) -> Result<Self::Arguments<'_>>;
    fn collation<'a>(arguments: &Self::Arguments<'a>) -> Option<Doc<'a>>;
    fn affects_many(arguments: &Self::Arguments<'_>) -> bool;
    /// Parses a statement further. Fails for errors that concern this statement only.
    fn parse(arguments: Self::Arguments<'_>, call: &Call<'_>, context: &Context) -> Result<Self::Statement>;
    /// Translates the statement to the buckets of a time-series collection.
    fn on_buckets(series: &Series, statement: Doc<'_>) -> Result<DocBuf>;
    fn write_reply(call: &Call<'_>, outcomes: &write::Outcomes, reply: &mut DocWriter<'_>);
}

/// The fields of a command.
struct Arguments<'a, C: WriteCommand> {
    options: write::Options,
    variables: Option<Doc<'a>>,
    statements: Vec<Doc<'a>>,
    /// The parsed form of each statement. An error of form fails the command; an error of meaning
    /// fails the statement.
    read: Vec<C::Arguments<'a>>,
}

impl<'a, C: WriteCommand> Arguments<'a, C> {
    fn read(call: &Call<'a>, fields: impl Iterator<Item = Element<'a>>) -> Result<Self> {
        let mut options = write::Options::default();
        let mut variables = None;
        let mut statements: Option<Vec<Doc<'a>>> = None;
        let mut read = Vec::new();
        let each = |statements: &[Doc<'a>]| -> Result<Vec<_>> {
            statements.iter().map(|statement| C::read(*statement)).collect()
        };
        for field in fields {
            match field.key() {
                name if name == C::STATEMENTS => {
                    let inline = inline_statements(C::WITHIN_STATEMENT, arguments::array(C::NAME, field)?)?;
                    read = each(&inline)?;
                    statements = Some(inline);
                }
                _ if arguments::is_left_out(field, &["ordered", "bypassDocumentValidation", "let"]) => {}
                "ordered" => options.ordered = arguments::boolean(C::NAME, field)?,
                "bypassDocumentValidation" => {
                    options.bypass_validation = arguments::boolean_or_number(C::NAME, field)?;
                }
                "let" => variables = Some(arguments::document(C::NAME, field)?),
                "stmtId" => check_statement_id(C::NAME, field)?,
                "collectionUUID" => drop(collection_uuid::read(C::NAME, field)?),
                other => return Err(unknown_field(C::NAME, other)),
            }
        }
        if let Some(sequence) = call.request.sequence(C::STATEMENTS) {
            let sent: Vec<_> = sequence.collect();
            read = each(&sent)?;
            statements = Some(sent);
        }
        let statements = statements.ok_or_else(|| arguments::missing_field(C::NAME, C::STATEMENTS))?;
        Ok(Arguments { options, variables, statements, read })
    }
}

/// Parses the fields of a command.
pub fn parse<C: WriteCommand>(call: &Call<'_>) -> Result<()> {
    let arguments = Arguments::<C>::read(call, call.all_fields())?;
    call.check_namespace()?;
    write::check_length(arguments.statements.len())
}

pub async fn execute<C: WriteCommand>(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let Arguments { options, variables, statements, read } = Arguments::<C>::read(call, call.fields())?;
    let namespace = arguments::namespace(call.database(), call.first())?;
    write::check_length(statements.len())?;
    arguments::check_to_write(&namespace)?;
    let collation = options::effective_collation(call, &namespace, None).await?;
    let context = match options::context(call, variables, collation) {
        Ok(context) => context,
        // An error in the variables fails each statement.
        Err(error) => {
            let refused = statements.iter().map(|_| Err(error.clone())).collect();
            let outcomes = write::execute::<C::Statement>(call, &namespace, options, refused).await?;
            C::write_reply(call, &outcomes, reply);
            return Ok(Disposition::Reply);
        }
    };
    if call.envelope.retryable_write().is_some() && read.iter().any(C::affects_many) {
        return Err(Error::new(Code::INVALID_OPTIONS, C::MANY_REFUSED));
    }
    let filtered = call.worker.server.index_filters.are_any();
    let collations: Vec<_> = read.iter().filter(|_| filtered).map(C::collation).collect();
    let parsed = read.into_iter().map(|statement| C::parse(statement, call, &context));
    let mut parsed: Vec<Result<C::Statement>> = parsed.collect();
    index_filters::apply(call, &namespace, &mut parsed, &collations).await?;
    let first_is_wrong = parsed.first().is_some_and(Result::is_err);
    let mut outcomes = write::execute(call, &namespace, options, parsed).await;
    if (write::met_view(&outcomes) || first_is_wrong)
        && let Some(series) = time_series::find(call, &namespace).await?
    {
        transactions::refuse_time_series(call, &namespace)?;
        let translated = statements.iter().map(|statement| {
            let statement = C::on_buckets(&series, *statement)?;
            C::parse(C::read(statement.as_doc())?, call, &context)
        });
        let translated: Vec<Result<C::Statement>> = translated.collect();
        outcomes = write::execute(call, &series.buckets, options.on_buckets(), translated).await;
    }
    C::write_reply(call, &outcomes?, reply);
    Ok(Disposition::Reply)
}

/// Returns the first statement of a command that is explained.
pub fn first_statement<C: WriteCommand>(command: Doc<'_>) -> Result<C::Arguments<'_>> {
    let statements = command.get(C::STATEMENTS).and_then(Value::as_array).and_then(|array| array.values().next());
    let statement = statements.and_then(Value::as_document);
    C::read(statement.ok_or_else(|| arguments::missing_field(C::NAME, C::STATEMENTS))?)
}

/// Returns the statements in a command's body. Nulls among them count as absent.
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
