//! Defining views: checks of a definition, and writes to `system.views`.

use crate::call::Call;
use crate::views;
use crate::views::graph::ViewGraph;
use aggregate::Pipeline;
use bytes::Bytes;
use document::{Doc, DocBuf, Value};
use error::{Code, Error, Result};
use fulltext::TextIndexes;
use query::{Context, Folding, Predicate};
use store::identity::under;
use store::{
    DeleteStatement, Identity, Namespace, ReturnImage, Statements, UpdateStatement, WriteBatch, views as definitions,
};
use update::Update;

/// Fails for a name that cannot be a view's base.
pub fn check_base(view_on: &str) -> Result<()> {
    if view_on.is_empty() {
        return Err(Error::bad_value("'viewOn' cannot be empty"));
    }
    if view_on.contains('$') || view_on.starts_with('.') {
        return Err(Error::new(Code::INVALID_NAMESPACE, format!("invalid name for 'viewOn': {view_on}")));
    }
    Ok(())
}

/// Defines a new view. Fails with 48 if a collection or view has the name.
pub async fn create(
    call: &Call<'_>,
    namespace: &Namespace,
    view_on: &str,
    stages: Doc<'_>,
    collation: Option<Doc<'_>>,
) -> Result<()> {
    let store = &call.worker.store;
    check_name(namespace)?;
    if store.collection(namespace).await?.is_some() {
        let message = format!("Cannot create collection {namespace} - collection already exists.");
        return Err(Error::new(Code::NAMESPACE_EXISTS, message));
    }
    let all = views::all(call, &namespace.database).await?;
    if all.iter().any(|view| is_of(view, namespace)) {
        return Err(Error::new(Code::NAMESPACE_EXISTS, "Namespace already exists"));
    }
    // As in MongoDB, also if the definition turns out to be invalid.
    let home = definitions::definitions(&namespace.database);
    match store.create_collection(&home, Doc::EMPTY).await {
        Err(error) if error.code() == Code::NAMESPACE_EXISTS => {}
        created => created?,
    }
    check_stage_names(stages, call)?;
    // The simple collation is the default, and is not stored.
    let collation = collation.filter(|collation| collation.get("locale") != Some(Value::String("simple")));
    let collation = collation.filter(|collation| !collation.is_empty());
    check(call, namespace, view_on, stages, collation, &all)?;
    let definition = views::write_definition(namespace, view_on, stages, collation);
    write(call, &home, Statements::Insert(vec![Bytes::from(definition.into_vec())])).await.map(drop)
}

/// Fails with 73 for a reserved name.
fn check_name(namespace: &Namespace) -> Result<()> {
    let message = match &*namespace.collection {
        name @ "system.views" => format!("Cannot create a view called '{name}': this is a reserved system namespace"),
        name if name.starts_with("system.") => {
            "View name cannot start with 'system.', which is reserved for system namespaces".to_owned()
        }
        _ => return Ok(()),
    };
    Err(Error::new(Code::INVALID_NAMESPACE, message))
}

/// Changes a view's base or pipeline (`collMod`).
pub async fn modify(call: &Call<'_>, namespace: &Namespace, view_on: &str, stages: Doc<'_>) -> Result<()> {
    check_stage_names(stages, call)?;
    let all = views::all(call, &namespace.database).await?;
    let own = all.iter().find(|view| is_of(view, namespace));
    check(call, namespace, view_on, stages, own.and_then(collation_of), &all)?;
    let mut changes = DocBuf::new();
    changes.append("viewOn", view_on);
    changes.append("pipeline", Value::Array(stages));
    let mut update = DocBuf::new();
    update.append("$set", &changes);
    let statement = UpdateStatement {
        predicate: by_id(call, namespace)?,
        sort: None,
        update: Update::parse(Value::Document(update.as_doc()), None, &call.context())?,
        multi: false,
        upsert: false,
        new_id: call.worker.new_object_id(call.now_ms),
        hint: None,
        image: ReturnImage::None,
    };
    let home = definitions::definitions(&namespace.database);
    write(call, &home, Statements::Update(vec![statement])).await.map(drop)
}

/// Drops a view; returns whether it existed.
pub async fn drop_view(call: &Call<'_>, namespace: &Namespace) -> Result<bool> {
    let home = definitions::definitions(&namespace.database);
    let predicate = by_id(call, namespace)?;
    let statement = DeleteStatement { predicate, sort: None, one: true, hint: None, image: ReturnImage::None };
    Ok(write(call, &home, Statements::Delete(vec![statement])).await? > 0)
}

fn by_id(call: &Call<'_>, namespace: &Namespace) -> Result<Predicate> {
    let mut filter = DocBuf::new();
    filter.append("_id", namespace.to_string().as_str());
    Predicate::parse(filter.as_doc(), &call.context())
}

async fn write(call: &Call<'_>, home: &Namespace, statements: Statements) -> Result<u64> {
    let batch = WriteBatch { journal: call.envelope.durability.journal, ..WriteBatch::new(home.clone(), statements) };
    let mut matched = 0;
    // As the other parts of the catalog, definitions are written by the gateway.
    for outcome in under(Identity::Gateway, call.worker.store.write(batch)).await?.statements {
        matched += outcome?.matched;
    }
    Ok(matched)
}

fn is_of(definition: &DocBuf, namespace: &Namespace) -> bool {
    definition.as_doc().get("_id").and_then(Value::as_str) == Some(namespace.to_string().as_str())
}

/// Checks the names of stages, before the view as a whole.
fn check_stage_names(stages: Doc<'_>, call: &Call<'_>) -> Result<()> {
    match parse(stages, call) {
        Err(error) if matches!(error.code().0, 40323 | 40324) => Err(error),
        _ => Ok(()),
    }
}

/// Parses the stages, except for a first stage that the server itself answers.
fn parse(stages: Doc<'_>, call: &Call<'_>) -> Result<Pipeline> {
    let first = stages.values().next().and_then(Value::as_document).and_then(Doc::first);
    let skipped = first.is_some_and(|first| {
        matches!(
            first.key(),
            "$indexStats" | "$listCatalog" | "$collStats" | "$planCacheStats" | "$currentOp" | "$documents"
        )
    });
    let rest = views::stages(|array| stages.values().skip(skipped.into()).for_each(|stage| array.push(stage)));
    // Text indexes are looked up when the view is read, and constants are computed then.
    let context = Context { text_indexes: TextIndexes::placeholder(), folding: Folding::Never, ..call.context() };
    Pipeline::parse(rest.as_doc(), &context)
}

/// Checks a definition, by itself and among the others.
fn check(
    call: &Call<'_>,
    namespace: &Namespace,
    view_on: &str,
    stages: Doc<'_>,
    collation: Option<Doc<'_>>,
    all: &[DocBuf],
) -> Result<()> {
    let invalid = |error: Error| error.context(&format!("Invalid pipeline for view {namespace} :: caused by :: "));
    let names = stages.values().filter_map(Value::as_document).filter_map(Doc::first).map(|stage| stage.key());
    for (position, name) in names.enumerate() {
        check_stage(namespace, position, name).map_err(invalid)?;
    }
    parse(stages, call).map_err(invalid)?;
    let mut graph = ViewGraph::default();
    for definition in all.iter().filter(|other| !is_of(other, namespace)) {
        if let Some((name, base)) = views::parts(&namespace.database, definition) {
            let stages = definition.as_doc().get("pipeline").and_then(Value::as_array).unwrap_or(Doc::EMPTY);
            graph.add(name, base, stages);
        }
    }
    graph.add(&namespace.collection, view_on, stages);
    graph.check(namespace)?;
    let read = graph.reads(&namespace.collection).iter().map(|name| Namespace::new(&namespace.database, name));
    let conflict = |other: &Namespace| {
        all.iter()
            .any(|view| is_of(view, other) && collation_of(view).map(Doc::as_bytes) != collation.map(Doc::as_bytes))
    };
    match read.into_iter().find(conflict) {
        Some(other) => {
            let message = format!("View {namespace} has conflicting collation with view {other}");
            Err(Error::new(Code::OPTION_NOT_SUPPORTED_ON_VIEW, message))
        }
        None => Ok(()),
    }
}

fn collation_of(definition: &DocBuf) -> Option<Doc<'_>> {
    definition.as_doc().get("collation").and_then(Value::as_document)
}

/// Fails for stages that a view cannot have.
fn check_stage(namespace: &Namespace, position: usize, name: &str) -> Result<()> {
    match name {
        "$out" | "$merge" => {
            let message = format!(
                "The aggregation stage {name} in location {position} of the pipeline cannot be used in the view \
                 definition of {namespace} because it writes to disk"
            );
            Err(Error::new(Code::OPTION_NOT_SUPPORTED_ON_VIEW, message))
        }
        "$changeStream" => Err(aggregate::no_change_streams()),
        "$documents" => {
            let message = "'$documents' cannot be used in a view definition";
            Err(Error::new(Code::INVALID_NAMESPACE, message))
        }
        "$currentOp" => Err(crate::pipeline::source_stage::needs_no_collection_error(name)),
        _ => Ok(()),
    }
}
