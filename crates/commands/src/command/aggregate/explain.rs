//! `explain`: the plan of a command, and on request the statistics of its execution. Nothing is
//! changed.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/explain-results/>

mod front;
mod run;
mod stages;

use crate::arguments;
use crate::arguments::options;
use crate::arguments::{namespace_to_write, unknown_field};
use crate::call::{Call, Disposition};
use crate::command::admin::build_info;
use crate::command::crud::{delete, find_and_modify, update};
use crate::envelope;
use crate::pipeline::open::aggregated_namespace;
use crate::pipeline::over_views;
use crate::pipeline::{geo_near, source_stage};
use crate::read::index_bounds;
use crate::read::index_filters;
use crate::read::{BLOCKING_BYTES_MAX, ReadSpec, Reader};
use crate::views;
use crate::write::statements;
use ::aggregate::Pipeline;
use document::{Collation, DOCUMENT_BYTES_MAX, DOCUMENT_BYTES_MAX_INTERNAL, Doc, DocBuf, DocWriter, Value};
use error::{Code, Error, Result};
use query::{Context, Predicate, Sort};
use run::{ExplainedRead, ReadKind};
use stages::Stage;
use store::Namespace;
use store::explain::append_count;

/// The detail of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    Planner,
    ExecutionStats,
    AllPlans,
}

fn unknown_command(name: &str) -> Error {
    Error::new(Code::COMMAND_NOT_FOUND, format!("Explain failed due to unknown command: {name}"))
}

/// Parses the fields of an `explain`.
pub fn parse(call: &Call<'_>) -> Result<()> {
    verbosity(call)?;
    let command = arguments::document("explain", call.first())?;
    check_database(call, command)?;
    match command.first() {
        Some(name) if call.table.named(name.key_bytes()).is_some() => Ok(()),
        name => Err(unknown_command(name.map_or("", |name| name.key()))),
    }
}

fn verbosity(call: &Call<'_>) -> Result<Verbosity> {
    let mut verbosity = Verbosity::AllPlans;
    for field in call.fields() {
        match (field.key(), field.value()) {
            ("verbosity", Value::String("queryPlanner")) => verbosity = Verbosity::Planner,
            ("verbosity", Value::String("executionStats")) => verbosity = Verbosity::ExecutionStats,
            ("verbosity", Value::String("allPlansExecution")) => verbosity = Verbosity::AllPlans,
            ("verbosity", Value::String(other)) => {
                return Err(Error::bad_value(format!(
                    "Enumeration value '{other}' for field 'explain.verbosity' is not a valid value."
                )));
            }
            ("verbosity", Value::Null | Value::Undefined) => {}
            ("verbosity", _) => return Err(arguments::wrong_type("explain", field, "string")),
            (other, _) => return Err(unknown_field("explain", other)),
        }
    }
    Ok(verbosity)
}

pub async fn explain(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let verbosity = verbosity(call)?;
    let command = arguments::document("explain", call.first())?;
    let name = command.first().ok_or_else(|| unknown_command(""))?;
    let fields = envelope::own_fields(command);
    refuse_database(call, command, name.key())?;
    let database = call.database();
    let (namespace, request, kind, above) = match name.key() {
        "find" => {
            let namespace = options::strict_name(database, name)?;
            let arguments = arguments::find::Arguments::read(fields)?;
            let collation = options::effective_collation(call, &namespace, arguments.collation).await?;
            let request = arguments.prepare(call, collation.clone())?;
            if let Some(view) = view(call, &namespace).await? {
                let (pipeline, natural) = over_views::find_pipeline(&arguments)?;
                let hint = natural.as_ref().map(|natural| Value::Document(natural.as_doc())).or(arguments.hint);
                return explain_view(call, view, pipeline, hint, verbosity, reply).await;
            }
            let request =
                index_bounds::apply(call, &namespace, (arguments.min, arguments.max), &collation, request).await?;
            (namespace, request, ReadKind::Read, stages::of_find(command))
        }
        "count" => {
            let arguments = arguments::count::Arguments::read(fields)?;
            let namespace = options::strict_name(database, name)?;
            if let Some(view) = view(call, &namespace).await? {
                let pipeline = over_views::count_pipeline(&arguments);
                return explain_view(call, view, pipeline, arguments.hint, verbosity, reply).await;
            }
            let (query, hint, limit) = (arguments.query, arguments.hint, arguments.counted_max());
            let collation = options::effective_collation(call, &namespace, arguments.collation).await?;
            let request = filtered(call, query, None, hint, collation)?;
            let above = vec![Stage::Count { skip: arguments.skip, limit: arguments.limit }];
            (namespace, request, ReadKind::Count { limit }, above)
        }
        "distinct" => {
            let arguments = arguments::distinct::Arguments::read(fields)?;
            let namespace = options::strict_name(database, name)?;
            if let Some(view) = view(call, &namespace).await? {
                let pipeline = over_views::distinct_pipeline(&arguments);
                return explain_view(call, view, pipeline, arguments.hint, verbosity, reply).await;
            }
            let collation = options::effective_collation(call, &namespace, arguments.collation).await?;
            let request = filtered(call, arguments.query, None, arguments.hint, collation.clone())?;
            (namespace, request, ReadKind::Distinct { path: arguments.key, collation }, Vec::new())
        }
        "update" => {
            let arguments = statements::first_statement::<update::Updates>(command)?;
            let namespace = namespace_to_write(database, name)?;
            let collation = options::effective_collation(call, &namespace, arguments.collation).await?;
            let request = ReadSpec {
                limit: (!arguments.multi).then_some(1),
                ..filtered(call, Some(arguments.query), None, arguments.hint, collation)?
            };
            let stage = Stage::Update { upserts: arguments.upsert, returns: false };
            (namespace, request, ReadKind::Read, vec![stage])
        }
        "delete" => {
            let arguments = statements::first_statement::<delete::Deletes>(command)?;
            let namespace = namespace_to_write(database, name)?;
            let collation = options::effective_collation(call, &namespace, arguments.collation).await?;
            let request = ReadSpec {
                limit: arguments.one.then_some(1),
                ..filtered(call, Some(arguments.query), None, arguments.hint, collation)?
            };
            (namespace, request, ReadKind::Read, vec![Stage::Delete { returns: false }])
        }
        "findAndModify" | "findandmodify" => {
            let arguments = find_and_modify::Arguments::read(fields)?;
            let namespace = namespace_to_write(database, name)?;
            let collation = options::effective_collation(call, &namespace, arguments.collation).await?;
            let request = ReadSpec {
                limit: Some(1),
                ..filtered(call, arguments.query, arguments.sort, arguments.hint, collation)?
            };
            let stage = match arguments.remove {
                true => Stage::Delete { returns: true },
                false => Stage::Update { upserts: arguments.upsert, returns: true },
            };
            let limit = arguments.sort.map(|_| Stage::Limit(1));
            (namespace, request, ReadKind::Read, std::iter::once(stage).chain(limit).collect())
        }
        "aggregate" => {
            if command.element("writeConcern").is_some() {
                return Err(arguments::aggregate::explained_with_write_concern());
            }
            let arguments = arguments::aggregate::Arguments::read(fields)?;
            if command.element("explain").is_some() {
                let message = "The 'explain' option is illegal when a explain verbosity is also provided";
                return Err(Error::failed_to_parse(message));
            }
            arguments::aggregate::check_cursor(&arguments)?;
            let pipeline = arguments.pipeline;
            let namespace = aggregated_namespace(database, name, pipeline)?;
            if let Some(view) = view(call, &namespace).await? {
                let stages = arguments.pipeline.to_owned();
                return explain_view(call, view, stages, arguments.hint, verbosity, reply).await;
            }
            return explain_aggregate(call, &namespace, &arguments, command, verbosity, reply).await;
        }
        other if call.table.named(other.as_bytes()).is_some() => {
            return Err(Error::new(Code::ILLEGAL_OPERATION, format!("Cannot explain cmd: {other}")));
        }
        other => {
            return Err(unknown_command(other));
        }
    };
    let filter = command_filter(command);
    let index_filter = match kind {
        // No index is used to count all documents.
        ReadKind::Count { .. } if filter.is_empty() => None,
        _ => index_filters::of_read(call, &namespace, &request, command_collation(command)).await?,
    };
    let request = ReadSpec { hint: index_filters::hint(&index_filter, request.hint), ..request };
    reply.append("explainVersion", "1");
    run::explain(
        call,
        &namespace,
        ExplainedRead { filter, index_filter_set: index_filter.is_some(), request, kind, above },
        verbosity,
        reply,
    )
    .await?;
    write_end(command, call, reply)?;
    Ok(Disposition::Reply)
}

/// Fails if the explained command names another database than the `explain` itself.
fn check_database(call: &Call<'_>, command: Doc<'_>) -> Result<()> {
    let Some(field) = command.element("$db") else { return Ok(()) };
    let Some(database) = field.value().as_str() else {
        let message = format!("wrong type for field ($db) {} != string", field.kind.alias());
        return Err(Error::new(Code(13111), message));
    };
    if database != call.database() {
        let expected = call.database();
        let message = format!("Mismatched $db in explain command. Expected {expected} but got {database}");
        return Err(Error::new(Code::INVALID_NAMESPACE, message));
    }
    Ok(())
}

/// Fails if the explained command names a database; only the `explain` itself may.
fn refuse_database(call: &Call<'_>, command: Doc<'_>, name: &str) -> Result<()> {
    check_database(call, command)?;
    if call.table.named(name.as_bytes()).is_none() {
        return Err(unknown_command(name));
    }
    if command.get("$db").is_none() {
        return Ok(());
    }
    let within = if name == "find" { "FindCommandRequest" } else { name };
    Err(arguments::repeated_field(within, "$db"))
}

/// Returns the view of that name, if it is one.
pub async fn view(call: &Call<'_>, namespace: &Namespace) -> Result<Option<views::View>> {
    Ok(match views::definition(call, namespace).await? {
        Some(_) => Some(views::resolve(call, namespace).await?),
        None => None,
    })
}

/// Explains a command on a view as an aggregation.
pub async fn explain_view(
    call: &Call<'_>,
    view: views::View,
    stages: DocBuf,
    hint: Option<Value<'_>>,
    verbosity: Verbosity,
    reply: &mut DocWriter<'_>,
) -> Result<Disposition> {
    let pipeline = view.followed_by(stages.as_doc());
    let command = DocBuf::build(|writer| {
        writer.append("aggregate", &*view.base.collection);
        writer.append("pipeline", Value::Array(pipeline.as_doc()));
        drop(writer.document("cursor"));
        match view.collation.specification() {
            Some(collation) => writer.append("collation", collation),
            None => writer.document("collation").append("locale", "simple"),
        }
    });
    let arguments = arguments::aggregate::Arguments { pipeline: pipeline.as_doc(), hint, ..Default::default() };
    explain_aggregate(call, &view.base, &arguments, command.as_doc(), verbosity, reply).await
}

pub async fn explain_aggregate(
    call: &Call<'_>,
    namespace: &Namespace,
    arguments: &arguments::aggregate::Arguments<'_>,
    command: Doc<'_>,
    verbosity: Verbosity,
    reply: &mut DocWriter<'_>,
) -> Result<Disposition> {
    let collation = options::effective_collation(call, namespace, arguments.collation).await?;
    let context = options::context(call, arguments.variables, collation)?;
    if explain_source(namespace, arguments.pipeline, &context, reply)? {
        write_end(command, call, reply)?;
        return Ok(Disposition::Reply);
    }
    let mut pipeline = Pipeline::parse(arguments.pipeline, &context)?.with_second_engine();
    geo_near::resolve_key(&*call.worker.store, namespace, &mut pipeline).await?;
    let has_cross_collection_stages = pipeline.has_cross_collection_stages();
    let index_filter =
        index_filters::of_pipeline(call, namespace, arguments.pipeline, &pipeline, arguments.collation).await?;
    let (source, pipeline) = pipeline.into_source();
    // Stages that read other collections, or write to them, are not executed.
    let runs_whole = !pipeline.is_identity() && !has_cross_collection_stages;
    let budget = options::budget(call, arguments.allow_disk_use);
    let joins = joins(call, namespace, arguments.pipeline).await?;
    let front = front::split(arguments.pipeline, source.sort.is_some(), source.limit, &joins);
    let is_whole = front.rest.is_empty();
    let of_second_engine = front.is_of_second_engine();
    // The statistics of the plan cover the stages up to its last group.
    let up_to_group = match &front.up_to_group {
        Some(stages) => Some(Pipeline::parse(stages.as_doc(), &context)?.into_source().1),
        None => None,
    };
    let whole = up_to_group.is_some() && runs_whole && verbosity > Verbosity::Planner;
    let whole = whole.then(|| ReadSpec {
        predicate: Some(source.predicate.clone()),
        sort: source.sort.clone(),
        limit: source.limit,
        needs: source.needs,
        pipeline: Some(pipeline.start(budget.clone())),
        budget: Some(budget.clone()),
        ..ReadSpec::default()
    });
    let execution = match &up_to_group {
        Some(up_to_group) => Some(up_to_group.start(budget.clone())),
        None => runs_whole.then(|| pipeline.start(budget.clone())),
    };
    let request = ReadSpec {
        needs: source.needs,
        fields: source.fields,
        pipeline: execution,
        budget: Some(budget),
        predicate: Some(source.predicate),
        sort: source.sort,
        limit: source.limit,
        hint: index_filters::hint(&index_filter, arguments.hint),
        ..ReadSpec::default()
    };
    reply.append("explainVersion", if of_second_engine { "2" } else { "1" });
    let index_filter_set = index_filter.is_some();
    let read =
        ExplainedRead { filter: front.filter, index_filter_set, request, kind: ReadKind::Read, above: front.above };
    if is_whole {
        run::explain(call, namespace, read, verbosity, reply).await?;
    } else {
        let mut stats;
        let mut array = reply.array("stages");
        {
            let mut stage = array.document();
            {
                let mut cursor = stage.document("$cursor");
                stats = run::explain(call, namespace, read, verbosity, &mut cursor).await?;
            }
            if verbosity > Verbosity::Planner {
                append_count("nReturned", stats.returned_by_plan, &mut stage);
                stage.append("executionTimeMillisEstimate", stats.milliseconds);
            }
        }
        if let Some(whole) = whole {
            let mut reader = Reader::open(&*call.worker.store, namespace, whole).await?;
            reader.for_each(call, |_| Ok(())).await?;
            stats.returned = reader.returned;
        }
        let last = front.rest.len() - 1;
        for (at, stage) in front.rest.iter().enumerate() {
            let mut writer = array.document();
            stage.as_doc().elements().for_each(|element| writer.append_element(element));
            if runs_whole && verbosity > Verbosity::Planner && at == last {
                append_count("nReturned", stats.returned, &mut writer);
                writer.append("executionTimeMillisEstimate", stats.milliseconds);
            }
        }
    }
    write_end(command, call, reply)?;
    Ok(Disposition::Reply)
}

/// Returns the equality lookups that the plan can contain, by their positions in the pipeline.
async fn joins(call: &Call<'_>, namespace: &Namespace, pipeline: Doc<'_>) -> Result<Vec<(usize, DocBuf)>> {
    let stages: Vec<Doc<'_>> = pipeline.values().filter_map(Value::as_document).collect();
    let mut joins = Vec::new();
    for (place, stage) in stages.iter().enumerate() {
        let Some(spec) = stage.get("$lookup").and_then(Value::as_document) else { continue };
        let [from, local, foreign, field] =
            ["from", "localField", "foreignField", "as"].map(|name| spec.get(name).and_then(Value::as_str));
        let (Some(from), Some(local), Some(foreign), Some(field)) = (from, local, foreign, field) else { continue };
        let unwinds = stages.get(place + 1).is_some_and(|next| next.get("$unwind").is_some());
        let other = Namespace::new(&namespace.database, from);
        if spec.get("pipeline").is_some() || unwinds || view(call, &other).await?.is_some() {
            continue;
        }
        let indexes = call.worker.store.indexes(&other).await?;
        let leads = |key: Doc<'_>| key.first().is_some_and(|first| first.key() == foreign && first.kind.is_number());
        let index = indexes.iter().flatten().find(|index| leads(index.key.as_doc()));
        joins.push((
            place,
            DocBuf::build(|writer| {
                writer.append("foreignCollection", &other.to_string());
                writer.append("localField", local);
                writer.append("foreignField", foreign);
                writer.append("asField", field);
                writer.append(
                    "strategy",
                    match (&indexes, index) {
                        (None, _) => "NonExistentForeignCollection",
                        (_, Some(_)) => "IndexedLoopJoin",
                        _ => "HashJoin",
                    },
                );
                if let Some(index) = index {
                    writer.append("indexName", &index.name);
                    writer.append("indexKeyPattern", &index.key);
                }
            }),
        ));
    }
    Ok(joins)
}

/// Explains a pipeline whose first stage produces documents; returns whether it is one.
fn explain_source(
    namespace: &Namespace,
    pipeline: Doc<'_>,
    context: &Context,
    reply: &mut DocWriter<'_>,
) -> Result<bool> {
    let stages = || pipeline.values().filter_map(Value::as_document);
    let Some(first) = stages().next().and_then(Doc::first).filter(|first| source_stage::is_first_stage(first.key()))
    else {
        return Ok(false);
    };
    if first.key() == "$changeStream" {
        return Ok(false);
    }
    source_stage::check(first)?;
    source_stage::check_database(first.key(), namespace)?;
    Pipeline::parse(source_stage::behind_first(pipeline).as_doc(), context)?;
    reply.append("explainVersion", "1");
    let mut array = reply.array("stages");
    stages().for_each(|stage| array.push(stage));
    Ok(true)
}

fn command_filter<'a>(command: Doc<'a>) -> Doc<'a> {
    let of_statement = || first_statement(command)?.get("q")?.as_document();
    let own = ["filter", "query"].into_iter().find_map(|key| command.get(key)?.as_document());
    own.or_else(of_statement).unwrap_or(Doc::EMPTY)
}

/// Returns the collation of the command or of its statement.
fn command_collation<'a>(command: Doc<'a>) -> Option<Doc<'a>> {
    first_statement(command).unwrap_or(command).get("collation")?.as_document()
}

fn first_statement<'a>(command: Doc<'a>) -> Option<Doc<'a>> {
    let statements = ["updates", "deletes"].into_iter().find_map(|key| command.get(key)?.as_array())?;
    statements.values().next()?.as_document()
}

fn filtered<'a>(
    call: &Call<'_>,
    query: Option<Doc<'a>>,
    sort: Option<Doc<'a>>,
    hint: Option<Value<'a>>,
    collation: Collation,
) -> Result<ReadSpec<'a>> {
    let context = options::context(call, None, collation)?;
    let sort = match sort {
        Some(sort) => Some(Sort::parse(sort, &context)?),
        None => None,
    };
    let predicate = Some(Predicate::parse_query(query.unwrap_or(Doc::EMPTY), &context)?);
    Ok(ReadSpec { predicate, sort, hint, ..ReadSpec::default() })
}

/// Writes the end of the reply. Fails with 10334 if it is too large.
fn write_end(command: Doc<'_>, call: &Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    if reply.size() + command.size() > DOCUMENT_BYTES_MAX {
        reply.append("warning", "'command' has been omitted due to BSON size limit");
    } else {
        let mut echo = reply.document("command");
        command.elements().for_each(|element| echo.append_element(element));
        if command.get("$db").is_none() {
            echo.append("$db", call.database());
        }
    }
    build_info::write_server_info(&mut reply.document("serverInfo"));
    let mut parameters = reply.document("serverParameters");
    parameters.append("internalQueryMaxBlockingSortMemoryUsageBytes", BLOCKING_BYTES_MAX as i32);
    parameters.append("internalDocumentSourceGroupMaxMemoryBytes", BLOCKING_BYTES_MAX as i32);
    drop(parameters);
    let size = reply.size();
    if size <= DOCUMENT_BYTES_MAX_INTERNAL {
        return Ok(());
    }
    let message = format!(
        "BSONObj size: {size} (0x{size:X}) is invalid. Size must be between 0 and {DOCUMENT_BYTES_MAX_INTERNAL}(16MB)"
    );
    Err(Error::new(Code::BSON_OBJECT_TOO_LARGE, message))
}
