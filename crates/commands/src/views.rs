//! Views: a view's name resolves to a collection and the stages of the view; commands on it become
//! pipelines.
//!
//! Source: <https://www.mongodb.com/docs/manual/core/views/>

pub mod definitions;
mod graph;

use crate::call::Call;
use crate::read::{Visit, for_each};
use document::{ArrayWriter, Collation, Doc, DocBuf, Value};
use error::{Code, Error, Result};
use query::Predicate;
use store::identity::under;
use store::{Identity, Namespace, Query, views};

/// The largest depth of nested views.
pub const DEPTH_MAX: usize = 20;

/// The largest size of their stages together.
pub const PIPELINE_BYTES_MAX: usize = 16_000_000;

/// A resolved view.
pub struct View {
    /// The collection below all views.
    pub base: Namespace,
    /// The stages of all views above it, those of the lowest view first: an array.
    pub stages: DocBuf,
    /// The view's own collation, which all reads of it use.
    pub collation: Collation,
}

impl View {
    /// Returns the view's stages followed by others.
    pub fn followed_by(&self, stages: Doc<'_>) -> DocBuf {
        concatenated(self.stages.as_doc(), stages)
    }

    /// Fails with 167 if a command has another collation than the view.
    pub fn check_collation(&self, given: Option<&Collation>) -> Result<()> {
        match given {
            Some(given) if *given != self.collation => {
                Err(Error::new(Code(167), "Cannot override a view's default collation"))
            }
            _ => Ok(()),
        }
    }
}

/// Resolves a name to a collection. Fails with 165 if views are nested too deeply.
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

/// Returns the document in `system.views` that defines a view; `None` for other names.
pub async fn definition(call: &Call<'_>, namespace: &Namespace) -> Result<Option<DocBuf>> {
    let mut filter = DocBuf::new();
    filter.append("_id", namespace.to_string().as_str());
    Ok(read_definitions(call, &namespace.database, filter.as_doc()).await?.pop())
}

/// Returns the definitions of all views of a database.
pub async fn all(call: &Call<'_>, database: &str) -> Result<Vec<DocBuf>> {
    read_definitions(call, database, Doc::EMPTY).await
}

async fn read_definitions(call: &Call<'_>, database: &str, filter: Doc<'_>) -> Result<Vec<DocBuf>> {
    let store = &*call.worker.store;
    let predicate = Predicate::parse(filter, &call.context())?;
    let namespace = views::definitions(database);
    let mut found = Vec::new();
    let read = async {
        let plan = store.plan(&namespace, Query::of(&predicate)).await?;
        for_each(store, &plan, &predicate, true, call.operation, |document| {
            found.push(document.to_owned());
            Ok(Visit::Continue)
        })
        .await
    };
    // Definitions belong to the catalog: whether a name is a view's concerns each user.
    under(Identity::Gateway, read).await?;
    Ok(found)
}

/// Fails with 166 if the name is a view's.
pub async fn refuse(call: &Call<'_>, namespace: &Namespace) -> Result<()> {
    match definition(call, namespace).await? {
        Some(_) => Err(views::not_a_collection(namespace)),
        None => Ok(()),
    }
}

/// Builds an array of stages.
pub fn stages(write: impl FnOnce(&mut ArrayWriter<'_>)) -> DocBuf {
    let mut bytes = Vec::new();
    write(&mut ArrayWriter::begin(&mut bytes));
    DocBuf::from_vec(bytes).unwrap_or_default()
}

fn concatenated(first: Doc<'_>, second: Doc<'_>) -> DocBuf {
    stages(|array| first.values().chain(second.values()).for_each(|stage| array.push(stage)))
}

/// Returns the document that defines a view in `system.views`.
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

/// Returns the parts of a definition: the name within its database, and the base.
pub fn parts<'d>(database: &str, definition: &'d DocBuf) -> Option<(&'d str, &'d str)> {
    let definition = definition.as_doc();
    let name = definition.get("_id")?.as_str()?.strip_prefix(database)?.strip_prefix('.')?;
    Some((name, definition.get("viewOn")?.as_str()?))
}
