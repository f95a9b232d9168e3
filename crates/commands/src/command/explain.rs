//! `explain`: how a command would be carried out, and on request how carrying it out went. Nothing is changed.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/explain-results/>

use crate::arguments::{self, namespace_to_write, unknown_field};
use crate::command::count::append_count;
use crate::command::{
    aggregate, count, delete, distinct, find, find_and_modify, geo_near, index_bounds, options, probes, update, views,
};
use crate::dispatch::{Call, Disposition};
use crate::envelope;
use crate::read::{Batch, Reader, Request};
use document::{Collation, Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use query::{Predicate, Sort};
use std::time::Instant;
use store::Namespace;

/// How much to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    Planner,
    ExecutionStats,
    AllPlans,
}

pub async fn explain(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
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
            ("verbosity", _) => return Err(arguments::wrong_type("explain", field, "string")),
            (other, _) => return Err(unknown_field("explain", other)),
        }
    }
    let command = arguments::document("explain", call.first())?;
    let name = command
        .first()
        .ok_or_else(|| Error::new(Code::COMMAND_NOT_FOUND, "Explain failed due to unknown command: "))?;
    let fields = envelope::own_fields(command);
    let database = call.database();
    let (namespace, request, top) = match name.key() {
        "find" => {
            let namespace = options::strict_namespace(database, name)?;
            let arguments = find::Arguments::read(fields)?;
            let collation = options::settle_collation(call, &namespace, arguments.collation.clone()).await?;
            let request = arguments.prepare(call, collation.clone())?;
            if let Some(view) = view(call, &namespace).await? {
                let (pipeline, natural) = views::find_pipeline(&arguments)?;
                let hint = natural.as_ref().map(|natural| Value::Document(natural.as_doc())).or(arguments.hint);
                return explain_view(call, view, pipeline, hint, verbosity, reply).await;
            }
            let request = index_bounds::apply(call, &namespace, &arguments, &collation, request).await?;
            let top = find_stages(command);
            (namespace, request, top)
        }
        "count" => {
            let arguments = count::Arguments::read(fields)?;
            let namespace = options::strict_namespace(database, name)?;
            if let Some(view) = view(call, &namespace).await? {
                let pipeline = views::count_pipeline(&arguments);
                return explain_view(call, view, pipeline, arguments.hint, verbosity, reply).await;
            }
            let (query, hint, limit) = (arguments.query, arguments.hint, arguments.enough());
            let collation = options::settle_collation(call, &namespace, arguments.collation.clone()).await?;
            let request = Request { limit, ..filtered(call, query, None, hint, collation)? };
            (namespace, request, vec![stage("COUNT")])
        }
        "distinct" => {
            let arguments = distinct::Arguments::read(fields)?;
            let namespace = options::strict_namespace(database, name)?;
            if let Some(view) = view(call, &namespace).await? {
                let pipeline = views::distinct_pipeline(&arguments);
                return explain_view(call, view, pipeline, arguments.hint, verbosity, reply).await;
            }
            let collation = options::settle_collation(call, &namespace, arguments.collation.clone()).await?;
            let request = filtered(call, arguments.query, None, arguments.hint, collation)?;
            (namespace, request, Vec::new())
        }
        "update" => {
            let statements = command.get("updates").and_then(Value::as_array).and_then(|array| array.values().next());
            let statement = statements.and_then(Value::as_document);
            let statement = statement.ok_or_else(|| arguments::missing_field("update", "updates"))?;
            let arguments = update::UpdateArguments::read(statement)?;
            let namespace = namespace_to_write(database, name)?;
            let collation = options::settle_collation(call, &namespace, arguments.collation()?).await?;
            let request = Request {
                limit: (!arguments.multi).then_some(1),
                ..filtered(call, Some(arguments.query), None, arguments.hint, collation)?
            };
            (namespace, request, vec![stage("UPDATE")])
        }
        "delete" => {
            let statements = command.get("deletes").and_then(Value::as_array).and_then(|array| array.values().next());
            let statement = statements.and_then(Value::as_document);
            let statement = statement.ok_or_else(|| arguments::missing_field("delete", "deletes"))?;
            let arguments = delete::DeleteArguments::read(statement)?;
            let namespace = namespace_to_write(database, name)?;
            let collation = options::settle_collation(call, &namespace, arguments.collation()?).await?;
            let request = Request {
                limit: arguments.one.then_some(1),
                ..filtered(call, Some(arguments.query), None, arguments.hint, collation)?
            };
            (namespace, request, vec![stage("DELETE")])
        }
        "findAndModify" | "findandmodify" => {
            let arguments = find_and_modify::Arguments::read(fields)?;
            let namespace = namespace_to_write(database, name)?;
            let collation = options::settle_collation(call, &namespace, arguments.collation.clone()).await?;
            let request = Request {
                limit: Some(1),
                ..filtered(call, arguments.query, arguments.sort, arguments.hint, collation)?
            };
            let top = if arguments.remove { stage("DELETE") } else { stage("UPDATE") };
            (namespace, request, vec![top])
        }
        "aggregate" => {
            let arguments = aggregate::Arguments::read(fields)?;
            let pipeline = arguments.pipeline;
            let namespace = match name.value().as_str() {
                Some(_) => options::strict_namespace(database, name)?,
                None => aggregate::aggregated_namespace(call, pipeline)?,
            };
            if let Some(view) = view(call, &namespace).await? {
                let stages = arguments.pipeline.to_owned();
                return explain_view(call, view, stages, arguments.hint, verbosity, reply).await;
            }
            return explain_aggregate(call, &namespace, &arguments, command, verbosity, reply).await;
        }
        other if crate::table::find(other.as_bytes()).is_some() => {
            return Err(Error::new(Code::ILLEGAL_OPERATION, format!("Cannot explain cmd: {other}")));
        }
        other => {
            return Err(Error::new(Code::COMMAND_NOT_FOUND, format!("Explain failed due to unknown command: {other}")));
        }
    };
    let filter = command_filter(command);
    reply.append("explainVersion", "1");
    explain_read(call, &namespace, filter, request, &top, verbosity, reply).await?;
    write_end(command, call, reply);
    Ok(Disposition::Reply)
}

/// What a name stands for, if it is a view's.
pub async fn view(call: &Call<'_>, namespace: &Namespace) -> Result<Option<views::View>> {
    Ok(match views::definition(call, namespace).await? {
        Some(_) => Some(views::resolve(call, namespace).await?),
        None => None,
    })
}

/// A command on a view is explained as the aggregation it comes to.
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
    let arguments = aggregate::Arguments { pipeline: pipeline.as_doc(), hint, ..Default::default() };
    explain_aggregate(call, &view.base, &arguments, command.as_doc(), verbosity, reply).await
}

pub async fn explain_aggregate(
    call: &Call<'_>,
    namespace: &Namespace,
    arguments: &aggregate::Arguments<'_>,
    command: Doc<'_>,
    verbosity: Verbosity,
    reply: &mut DocWriter<'_>,
) -> Result<Disposition> {
    let collation = options::settle_collation(call, namespace, arguments.collation.clone()).await?;
    let context = options::context(call, arguments.variables, collation)?;
    let mut pipeline = query::aggregate::Pipeline::parse(arguments.pipeline, &context)?;
    geo_near::settle_key(&*call.worker.store, namespace, &mut pipeline).await?;
    let (source, pipeline) = pipeline.into_source();
    let identity = pipeline.is_identity();
    let sorted = source.sort.is_some();
    let request = Request {
        predicate: Some(source.predicate),
        sort: source.sort,
        limit: source.limit,
        hint: arguments.hint,
        ..Request::default()
    };
    let mut stages = arguments.pipeline.values().filter_map(Value::as_document).peekable();
    let mut filter = Doc::EMPTY;
    while let Some(first) = stages.peek().and_then(|stage| stage.first()) {
        match first.key() {
            "$match" => filter = first.value().as_document().unwrap_or(filter),
            "$sort" if sorted => {}
            _ => break,
        }
        stages.next();
    }
    reply.append("explainVersion", "1");
    if identity {
        explain_read(call, namespace, filter, request, &[], verbosity, reply).await?;
    } else {
        let mut array = reply.array("stages");
        {
            let mut stage = array.document();
            let mut cursor = stage.document("$cursor");
            explain_read(call, namespace, filter, request, &[], verbosity, &mut cursor).await?;
        }
        stages.for_each(|stage| array.push(stage));
    }
    write_end(command, call, reply);
    Ok(Disposition::Reply)
}

/// A stage above the store's plan, without its `inputStage`.
fn stage(name: &str) -> DocBuf {
    DocBuf::build(|writer| writer.append("stage", name))
}

/// The stages that a `find` puts above the store's plan, outermost first; sorting is told by the plan.
fn find_stages(command: Doc<'_>) -> Vec<DocBuf> {
    let mut stages = Vec::new();
    // A sort keeps no more than is asked for, so that it limits as well.
    let sorted = command.get("sort").and_then(Value::as_document).is_some_and(|sort| !sort.is_empty());
    let amount = |key| command.get(key).and_then(arguments::number_to_i64).filter(|number| *number > 0);
    if let Some(limit) = amount("limit").filter(|_| !sorted) {
        stages.push(counting_stage("LIMIT", "limitAmount", limit));
    }
    let projection = command.get("projection").and_then(Value::as_document).filter(|spec| !spec.is_empty());
    stages.extend(projection.map(|spec| {
        let simple = spec.values().all(|value| value.kind().is_number() || matches!(value, Value::Boolean(_)))
            && spec.elements().all(|element| !element.key().contains('.'));
        DocBuf::build(|writer| {
            writer.append("stage", if simple { "PROJECTION_SIMPLE" } else { "PROJECTION_DEFAULT" });
            writer.append("transformBy", spec);
        })
    }));
    stages.extend(amount("skip").map(|skip| counting_stage("SKIP", "skipAmount", skip)));
    stages
}

fn counting_stage(name: &str, key: &str, amount: i64) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("stage", name);
        append_count(key, amount.unsigned_abs(), writer);
    })
}

/// The filter with equality spelled out, as `parsedQuery` shows it.
fn parsed_query(filter: Doc<'_>) -> DocBuf {
    let is_condition = |value: Value<'_>| {
        let first = value.as_document().and_then(Doc::first);
        first.is_some_and(|first| first.key().starts_with('$')) || matches!(value, Value::Regex { .. })
    };
    DocBuf::build(|writer| {
        for element in filter.elements() {
            if element.key().starts_with('$') || is_condition(element.value()) {
                writer.append_element(element);
            } else {
                writer.document(element.key()).append("$eq", element.value());
            }
        }
    })
}

fn command_filter<'a>(command: Doc<'a>) -> Doc<'a> {
    let statement = ["updates", "deletes"]
        .into_iter()
        .find_map(|key| command.get(key)?.as_array()?.values().next()?.as_document()?.get("q")?.as_document());
    let own = ["filter", "query"].into_iter().find_map(|key| command.get(key)?.as_document());
    own.or(statement).unwrap_or(Doc::EMPTY)
}

fn filtered<'a>(
    call: &Call<'_>,
    query: Option<Doc<'a>>,
    sort: Option<Doc<'a>>,
    hint: Option<Value<'a>>,
    collation: Collation,
) -> Result<Request<'a>> {
    let context = options::context(call, None, collation)?;
    let sort = match sort {
        Some(sort) => Some(Sort::parse(sort, &context)?),
        None => None,
    };
    let predicate = Some(Predicate::parse_query(query.unwrap_or(Doc::EMPTY), &context)?);
    Ok(Request { predicate, sort, hint, ..Request::default() })
}

/// Writes `queryPlanner` and, on request, `executionStats` of a read.
async fn explain_read(
    call: &Call<'_>,
    namespace: &Namespace,
    filter: Doc<'_>,
    request: Request<'_>,
    top: &[DocBuf],
    verbosity: Verbosity,
    writer: &mut DocWriter<'_>,
) -> Result<()> {
    let sort = request.sort.clone();
    let mut reader = Reader::open(&*call.worker.store, namespace, request).await?;
    let plan = reader.plan().map(|plan| plan.winning_plan()).unwrap_or_default();
    let sorts_here = reader.sorts_here();
    let winning = wrap(top, sort.as_ref().filter(|_| sorts_here), &plan);
    {
        let mut planner = writer.document("queryPlanner");
        planner.append("namespace", &namespace.to_string());
        planner.append("indexFilterSet", false);
        planner.append("parsedQuery", &parsed_query(filter));
        for key in ["maxIndexedOrSolutionsReached", "maxIndexedAndSolutionsReached", "maxScansToExplodeReached"] {
            planner.append(key, false);
        }
        planner.append("winningPlan", &winning);
        drop(planner.array("rejectedPlans"));
    }
    if verbosity == Verbosity::Planner {
        return Ok(());
    }
    let began = Instant::now();
    run_to_end(call, &mut reader).await?;
    let mut stats = writer.document("executionStats");
    let outermost = top.first().and_then(|stage| stage.as_doc().get("stage")).and_then(Value::as_str);
    let returned = if matches!(outermost, Some("UPDATE" | "DELETE" | "COUNT")) { 0 } else { reader.returned };
    let figures =
        Figures { examined: reader.examined, found: reader.returned, elapsed_ms: began.elapsed().as_millis() as i32 };
    stats.append("executionSuccess", true);
    append_count("nReturned", returned, &mut stats);
    stats.append("executionTimeMillis", figures.elapsed_ms);
    append_count("totalKeysExamined", if uses_index(plan.as_doc()) { figures.examined } else { 0 }, &mut stats);
    append_count("totalDocsExamined", figures.examined, &mut stats);
    figures.write(winning.as_doc(), &mut stats.document("executionStages"));
    if verbosity == Verbosity::AllPlans {
        drop(stats.array("allPlansExecution"));
    }
    Ok(())
}

/// What carrying out a plan came to.
struct Figures {
    /// Documents the store gave.
    examined: u64,
    /// Documents the command found.
    found: u64,
    elapsed_ms: i32,
}

impl Figures {
    /// Writes a stage of the plan with its figures, and the stages below it with theirs.
    fn write(&self, stage: Doc<'_>, writer: &mut DocWriter<'_>) {
        let name = stage.get("stage").and_then(Value::as_str).unwrap_or_default();
        let below = |element: &Element<'_>| element.key() != "inputStage";
        stage.elements().filter(below).for_each(|element| writer.append_element(element));
        let returned = match name {
            "UPDATE" | "DELETE" | "COUNT" => 0,
            "IXSCAN" => self.examined,
            _ => self.found,
        };
        append_count("nReturned", returned, writer);
        writer.append("executionTimeMillisEstimate", self.elapsed_ms);
        match name {
            "UPDATE" => {
                append_count("nMatched", self.found, writer);
                append_count("nWouldModify", self.found, writer);
                append_count("nWouldUpsert", 0, writer);
            }
            "DELETE" => append_count("nWouldDelete", self.found, writer),
            "COUNT" => append_count("nCounted", self.found, writer),
            "COLLSCAN" | "FETCH" => append_count("docsExamined", self.examined, writer),
            "IXSCAN" | "IDHACK" => append_count("keysExamined", self.examined, writer),
            _ => {}
        }
        if let Some(Value::Document(input)) = stage.get("inputStage") {
            self.write(input, &mut writer.document("inputStage"));
        }
    }
}

/// Reads everything and throws it away, a batch at a time.
async fn run_to_end(call: &Call<'_>, reader: &mut Reader) -> Result<()> {
    let mut scratch = Vec::new();
    while !reader.is_done() {
        scratch.clear();
        let mut writer = DocWriter::begin(&mut scratch);
        let mut batch = Batch::begin(&mut writer, "batch", 10_000);
        reader.fill(call, &mut batch).await?;
    }
    Ok(())
}

fn uses_index(plan: Doc<'_>) -> bool {
    match plan.get("stage") {
        Some(Value::String("IXSCAN" | "IDHACK" | "EXPRESS_IXSCAN" | "OR" | "SORT_MERGE")) => true,
        _ => plan.get("inputStage").and_then(Value::as_document).is_some_and(uses_index),
    }
}

/// The store's plan inside the stages above it.
fn wrap(top: &[DocBuf], sort: Option<&Sort>, plan: &DocBuf) -> DocBuf {
    let mut inner = plan.clone();
    if let Some(sort) = sort {
        inner = DocBuf::build(|writer| {
            writer.append("stage", "SORT");
            {
                let mut pattern = writer.document("sortPattern");
                for part in sort.parts() {
                    pattern.append(part.path.as_str(), if part.ascending { 1 } else { -1 });
                }
            }
            writer.append("memLimit", crate::read::BLOCKING_BYTES_MAX as i32);
            writer.append("type", "simple");
            writer.append("inputStage", plan);
        });
    }
    for stage in top.iter().rev() {
        let mut outer = stage.clone();
        outer.append("inputStage", &inner);
        inner = outer;
    }
    inner
}

fn write_end(command: Doc<'_>, call: &Call<'_>, reply: &mut DocWriter<'_>) {
    {
        let mut echo = reply.document("command");
        command.elements().for_each(|element| echo.append_element(element));
        if command.get("$db").is_none() {
            echo.append("$db", call.database());
        }
    }
    probes::write_server_info(&mut reply.document("serverInfo"));
}
