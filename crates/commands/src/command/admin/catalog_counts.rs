//! Counts the collections and views of the store for `serverStatus`.

use crate::arguments::options;
use crate::call::Call;
use crate::collection_options::clustered;
use crate::{time_series, views};
use document::Value;
use error::Result;
use server::catalog_counts::Counts;

/// Counts again, unless the last counts are recent.
pub async fn refresh(call: &Call<'_>) {
    if call.worker.server.catalog_counts.are_fresh() {
        return;
    }
    // If the store cannot be reached, the statistics of the process are reported all the same.
    if let Ok(counts) = count(call).await {
        call.worker.server.catalog_counts.set(counts);
    }
}

async fn count(call: &Call<'_>) -> Result<Counts> {
    let mut counts = Counts::default();
    for database in call.worker.store.databases().await? {
        let is_internal = matches!(&*database.name, "admin" | "config" | "local");
        for collection in call.worker.store.collections(&database.name).await? {
            if is_internal || collection.name.starts_with("system.") {
                counts.internal_collections += 1;
                continue;
            }
            let options = collection.options.as_doc();
            counts.collections += 1;
            counts.capped += i32::from(options::is_set(options, "capped"));
            counts.clustered += i32::from(clustered::of(options).is_some());
        }
        for view in views::all(call, &database.name).await? {
            let base = view.as_doc().get("viewOn").and_then(Value::as_str).unwrap_or_default();
            match (is_internal, base.starts_with(time_series::BUCKETS)) {
                (true, _) => counts.internal_views += 1,
                (false, true) => counts.timeseries += 1,
                (false, false) => counts.views += 1,
            }
        }
    }
    Ok(counts)
}
