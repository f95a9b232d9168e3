//! The views that stages of a pipeline read: looked up before parsing, so that their stages become
//! part of it.

use crate::call::Call;
use crate::read::text_indexes;
use crate::views;
use document::{Collation, Doc, Value};
use error::{Code, Error, Result};
use query::Context;
use std::collections::BTreeSet;
use store::Namespace;

/// Returns the context with the views that the stages reference, directly or through other views.
///
/// Fails with 167 for a view with another collation than the pipeline's.
pub async fn resolve(call: &Call<'_>, pipeline: Doc<'_>, context: &Context) -> Result<Option<Context>> {
    let mut waiting = BTreeSet::new();
    mentioned(pipeline, &mut waiting);
    let (mut known, mut context) = (BTreeSet::new(), context.clone());
    let mut any = false;
    while let Some(name) = waiting.pop_first() {
        if !known.insert(name.clone()) {
            continue;
        }
        let view = views::resolve(call, &Namespace::new(call.database(), &name)).await?;
        if *view.base.collection == *name {
            continue;
        }
        check_collation(&view.collation, &context.collation, call, &name)?;
        mentioned(view.stages.as_doc(), &mut waiting);
        text_indexes::add(call, &view.base, &mut context.text_indexes).await?;
        context.views.insert(&name, &view.base.collection, view.stages);
        any = true;
    }
    Ok(any.then_some(context))
}

fn check_collation(view: &Collation, requested: &Collation, call: &Call<'_>, name: &str) -> Result<()> {
    if view == requested {
        return Ok(());
    }
    let message = format!("Cannot override a view's default collation{}.{name}", call.database());
    Err(Error::new(Code(167), message))
}

/// Returns the other collections that the stages read.
pub fn namespaces(call: &Call<'_>, pipeline: Doc<'_>) -> Vec<Namespace> {
    let mut names = BTreeSet::new();
    mentioned(pipeline, &mut names);
    names.into_iter().map(|name| Namespace::new(call.database(), &name)).collect()
}

/// Collects the names of other collections that the stages read.
fn mentioned(stages: Doc<'_>, names: &mut BTreeSet<String>) {
    for (stage, spec) in
        stages.values().filter_map(Value::as_document).filter_map(Doc::first).map(|it| (it.key(), it.value()))
    {
        match (stage, spec) {
            ("$unionWith", Value::String(name)) => drop(names.insert(name.to_owned())),
            ("$lookup" | "$graphLookup" | "$unionWith", Value::Document(spec)) => {
                let name = spec.get(if stage == "$unionWith" { "coll" } else { "from" }).and_then(Value::as_str);
                names.extend(name.map(str::to_owned));
                mentioned(spec.get("pipeline").and_then(Value::as_array).unwrap_or(Doc::EMPTY), names);
            }
            ("$facet", Value::Document(facets)) => {
                facets.values().filter_map(Value::as_array).for_each(|stages| mentioned(stages, names));
            }
            _ => {}
        }
    }
}
