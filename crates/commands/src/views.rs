//! Reading views: a view's name becomes a collection and the stages that make the view of it, and the command a pipeline behind them.
//!
//! Source: <https://www.mongodb.com/docs/manual/core/views/>

pub mod definitions;
mod graph;

use crate::call::Call;
use crate::read::{Visit, for_each};
use document::{ArrayWriter, Collation, Doc, DocBuf, Value};
use error::{Code, Error, Result};
use query::Predicate;
use store::{Namespace, Query, views};

/// How many views may stand on top of one another.
pub const DEPTH_MAX: usize = 20;

/// How large their stages may be together.
pub const PIPELINE_BYTES_MAX: usize = 16_000_000;

/// What a view stands for.
pub struct View {
    /// The collection at the bottom.
    pub base: Namespace,
    /// The stages of all views above it, the lowest view's first: an array.
    pub stages: DocBuf,
    /// The view's own, which all that reads it goes by.
    pub collation: Collation,
}

impl View {
    /// The view's stages with others behind them.
    pub fn followed_by(&self, stages: Doc<'_>) -> DocBuf {
        concatenated(self.stages.as_doc(), stages)
    }

    /// Error 167 for a command with another collation than the view's.
    pub fn check_collation(&self, given: Option<&Collation>) -> Result<()> {
        match given {
            Some(given) if *given != self.collation => {
                Err(Error::new(Code(167), "Cannot override a view's default collation"))
            }
            _ => Ok(()),
        }
    }
}

/// Follows a name down to a collection. Error 165 when that takes too long.
pub async fn resolve(call: &Call<'_>, namespace: &Namespace) -> Result<View> {
    let mut view = View { base: namespace.clone(), stages: DocBuf::new(), collation: Collation::SIMPLE };
    for depth in 0..DEPTH_MAX {
        let Some(definition) = definition(call, &view.base).await? else { return Ok(view) };
        let definition = definition.as_doc();
        if depth == 0 {
            view.collation = store::catalog::default_collation(definition)?;
        }
        let base = definition.get("viewOn").and_then(Value::as_str).unwrap_or_default();
        view.base = Namespace::new(call.database(), base);
        let stages = definition.get("pipeline").and_then(Value::as_array).unwrap_or(Doc::EMPTY);
        view.stages = concatenated(stages, view.stages.as_doc());
    }
    let message = format!("View depth too deep or view cycle detected; maximum depth is {DEPTH_MAX}");
    Err(Error::new(Code::VIEW_DEPTH_LIMIT_EXCEEDED, message))
}

/// The document in `system.views` that defines a view; `None` when the name is no view's.
pub async fn definition(call: &Call<'_>, namespace: &Namespace) -> Result<Option<DocBuf>> {
    let mut filter = DocBuf::new();
    filter.append("_id", namespace.to_string().as_str());
    Ok(read_definitions(call, &namespace.database, filter.as_doc()).await?.pop())
}

/// The definitions of all views of a database.
pub async fn all(call: &Call<'_>, database: &str) -> Result<Vec<DocBuf>> {
    read_definitions(call, database, Doc::EMPTY).await
}

async fn read_definitions(call: &Call<'_>, database: &str, filter: Doc<'_>) -> Result<Vec<DocBuf>> {
    let store = &*call.worker.store;
    let predicate = Predicate::parse(filter, &call.context())?;
    let namespace = views::definitions(database);
    let plan = store.plan(&namespace, Query::of(&predicate)).await?;
    let mut found = Vec::new();
    for_each(store, &plan, &predicate, true, call.operation, |document| {
        found.push(document.to_owned());
        Ok(Visit::Continue)
    })
    .await?;
    Ok(found)
}

/// Error 166 when the name is a view's.
pub async fn refuse(call: &Call<'_>, namespace: &Namespace) -> Result<()> {
    match definition(call, namespace).await? {
        Some(_) => Err(views::not_a_collection(namespace)),
        None => Ok(()),
    }
}

/// An array of stages.
pub fn stages(write: impl FnOnce(&mut ArrayWriter<'_>)) -> DocBuf {
    let mut bytes = Vec::new();
    write(&mut ArrayWriter::begin(&mut bytes));
    DocBuf::from_vec(bytes).unwrap_or_default()
}

fn concatenated(first: Doc<'_>, second: Doc<'_>) -> DocBuf {
    stages(|array| first.values().chain(second.values()).for_each(|stage| array.push(stage)))
}

/// What is written to `system.views`.
pub fn write_definition(namespace: &Namespace, view_on: &str, stages: Doc<'_>, collation: Option<Doc<'_>>) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("_id", namespace.to_string().as_str());
        writer.append("viewOn", view_on);
        writer.append("pipeline", Value::Array(stages));
        if let Some(collation) = collation {
            writer.append("collation", collation);
        }
    })
}

/// A definition's parts: name within its database, and what it stands on.
pub fn parts<'d>(database: &str, definition: &'d DocBuf) -> Option<(&'d str, &'d str)> {
    let definition = definition.as_doc();
    let name = definition.get("_id")?.as_str()?.strip_prefix(database)?.strip_prefix('.')?;
    Some((name, definition.get("viewOn")?.as_str()?))
}
