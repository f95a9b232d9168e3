//! How many collections and views there are, for `serverStatus`.

use crate::command::{clustered, options, time_series, views};
use crate::dispatch::Call;
use document::{DocWriter, Value};
use error::Result;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Monitoring asks every second, and a store with many databases takes its time to list them.
const COUNTED_EVERY: Duration = Duration::from_secs(60);

/// The figures, and when they were counted.
#[derive(Debug, Default)]
pub struct Catalog(Mutex<Option<(Instant, Figures)>>);

#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    collections: i32,
    capped: i32,
    clustered: i32,
    timeseries: i32,
    views: i32,
    internal_collections: i32,
    internal_views: i32,
}

impl Catalog {
    /// Counts again if it has been a while.
    pub async fn refresh(&self, call: &Call<'_>) {
        let is_fresh = |counted: &(Instant, Figures)| counted.0.elapsed() < COUNTED_EVERY;
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(is_fresh) {
            return;
        }
        // A store that is out of reach is no reason to tell nothing of the process.
        if let Ok(figures) = count(call).await {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), figures));
        }
    }

    pub fn write(&self, writer: &mut DocWriter<'_>) {
        let counted = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, figures)) = counted else { return };
        writer.append("collections", figures.collections);
        writer.append("capped", figures.capped);
        writer.append("clustered", figures.clustered);
        writer.append("timeseries", figures.timeseries);
        writer.append("views", figures.views);
        writer.append("internalCollections", figures.internal_collections);
        writer.append("internalViews", figures.internal_views);
    }
}

async fn count(call: &Call<'_>) -> Result<Figures> {
    let mut figures = Figures::default();
    for database in call.worker.store.databases().await? {
        let is_own = matches!(&*database.name, "admin" | "config" | "local");
        for collection in call.worker.store.collections(&database.name).await? {
            if is_own || collection.name.starts_with("system.") {
                figures.internal_collections += 1;
                continue;
            }
            let options = collection.options.as_doc();
            figures.collections += 1;
            figures.capped += i32::from(options::is_set(options, "capped"));
            figures.clustered += i32::from(clustered::of(options).is_some());
        }
        for view in views::all(call, &database.name).await? {
            let base = view.as_doc().get("viewOn").and_then(Value::as_str).unwrap_or_default();
            match (is_own, base.starts_with(time_series::BUCKETS)) {
                (true, _) => figures.internal_views += 1,
                (false, true) => figures.timeseries += 1,
                (false, false) => figures.views += 1,
            }
        }
    }
    Ok(figures)
}
