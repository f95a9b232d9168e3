//! The numbers of collections and views, for `serverStatus`.

use document::DocWriter;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long counts are reused. Monitoring asks every second, and a store with many databases takes
/// its time to list them.
const COUNTED_EVERY: Duration = Duration::from_secs(60);

/// The latest counts, and when they were taken.
#[derive(Debug, Default)]
pub struct CatalogCounts(Mutex<Option<(Instant, Counts)>>);

/// The numbers of collections and views by kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub collections: i32,
    pub capped: i32,
    pub clustered: i32,
    pub timeseries: i32,
    pub views: i32,
    pub internal_collections: i32,
    pub internal_views: i32,
}

impl CatalogCounts {
    /// Returns whether the counts are recent enough to be reported.
    pub fn are_fresh(&self) -> bool {
        let is_fresh = |counted: &(Instant, Counts)| counted.0.elapsed() < COUNTED_EVERY;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(is_fresh)
    }

    pub fn set(&self, counts: Counts) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), counts));
    }

    pub fn write(&self, writer: &mut DocWriter<'_>) {
        let counted = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, counts)) = counted else { return };
        writer.append("collections", counts.collections);
        writer.append("capped", counts.capped);
        writer.append("clustered", counts.clustered);
        writer.append("timeseries", counts.timeseries);
        writer.append("views", counts.views);
        writer.append("internalCollections", counts.internal_collections);
        writer.append("internalViews", counts.internal_views);
    }
}
