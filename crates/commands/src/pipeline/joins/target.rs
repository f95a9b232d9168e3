//! The targets of `$out` and `$merge`, and the names that they refuse.

use crate::arguments::{check_database, check_writable};
use crate::call::Call;
use aggregate::joins::CrossCollectionStage;
use aggregate::joins::Merge;
use aggregate::joins::Out;
use document::Doc;
use error::{Code, Error, Result};
use store::{IndexSpec, Namespace};

/// The server's own databases.
const INTERNAL_DATABASES: [&str; 3] = ["admin", "local", "config"];

pub(super) fn of_out(call: &Call<'_>, out: &Out) -> Namespace {
    Namespace::new(out.database.as_deref().unwrap_or(call.database()), &out.collection)
}

pub(super) fn of_merge(call: &Call<'_>, merge: &Merge) -> Namespace {
    // This stage alone treats an empty name as absent.
    let database = merge.database.as_deref().filter(|name| !name.is_empty());
    Namespace::new(database.unwrap_or(call.database()), &merge.collection)
}

/// Checks the target of a stage that writes, before anything is read.
pub(super) async fn check(call: &Call<'_>, foreign: &CrossCollectionStage) -> Result<()> {
    match foreign {
        CrossCollectionStage::Out(out) => check_out(&of_out(call, out)),
        CrossCollectionStage::Merge(merge) => {
            let target = of_merge(call, merge);
            check_merge(&target)?;
            check_unique(call, merge, &target).await?;
            merge.deferred_error.clone().map_or(Ok(()), Err)
        }
        _ => Ok(()),
    }
}

/// Fails unless a unique index covers the fields of `on`.
async fn check_unique(call: &Call<'_>, merge: &Merge, namespace: &Namespace) -> Result<()> {
    if !merge.has_explicit_on {
        return Ok(());
    }
    let Some(indexes) = call.worker.store.indexes(namespace).await? else {
        return if merge.on == ["_id"] { Ok(()) } else { Err(not_unique()) };
    };
    let covers = |key: Doc<'_>| {
        key.elements().count() == merge.on.len() && merge.on.iter().all(|field| key.get(field).is_some())
    };
    let whole = |index: &IndexSpec| {
        (index.unique || index.name == "_id_") && index.spec.as_doc().get("partialFilterExpression").is_none()
    };
    for index in indexes.iter().filter(|index| whole(index) && covers(index.key.as_doc())) {
        if store::catalog::default_collation(index.spec.as_doc())? == merge.collation {
            return Ok(());
        }
    }
    Err(not_unique())
}

fn not_unique() -> Error {
    Error::new(Code(51183), "Cannot find index to verify that join fields will be unique")
}

fn check_out(target: &Namespace) -> Result<()> {
    check_name(target, format!("Invalid $out target namespace, {target}"))?;
    if target.collection.starts_with("system.") {
        return Err(Error::new(Code(17385), format!("Can't $out to special collection: {}", target.collection)));
    }
    if INTERNAL_DATABASES.contains(&&*target.database) {
        return Err(Error::new(Code(31321), format!("Can't $out to internal database: {}", target.database)));
    }
    // MongoDB finds this error only when it creates the collection, hence the other code.
    check_writable(target).map_err(|error| {
        Error::new(Code::ILLEGAL_OPERATION, error.message())
            .context("PlanExecutor error during aggregation :: caused by :: error with target namespace: ")
    })
}

fn check_merge(target: &Namespace) -> Result<()> {
    check_name(target, format!("Invalid $merge target namespace: '{target}'"))?;
    if target.collection.starts_with("system.") {
        return Err(Error::new(Code(31319), format!("Cannot $merge to special collection: {}", target.collection)));
    }
    if INTERNAL_DATABASES.contains(&&*target.database) {
        return Err(Error::new(Code(31320), format!("Cannot $merge to internal database: {}", target.database)));
    }
    check_writable(target).map_err(|error| error.context("PlanExecutor error during aggregation :: caused by :: "))
}

fn check_name(target: &Namespace, refusal: String) -> Result<()> {
    let invalid = |message: String| Err(Error::new(Code::INVALID_NAMESPACE, message));
    if target.database.contains('\0') || target.collection.contains('\0') {
        return invalid("namespaces cannot have embedded null characters".to_owned());
    }
    if target.collection.starts_with('.') {
        return invalid(format!("Collection names cannot start with '.': {}", target.collection));
    }
    if target.database.contains('.') {
        return check_database(&target.database);
    }
    if target.collection.is_empty() || check_database(&target.database).is_err() {
        return invalid(refusal);
    }
    Ok(())
}
