//! A cache of definitions, by which the effects of statements are determined.

use ahash::AHashMap;
use sql_classify::write_effects::WriteEffectsBuilder;
use sql_classify::{Access, Definition, SchemaObject, WriteEffects};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{ChangeObserver, Changes, InFlightWrite, Namespace};

/// Looks definitions up with the gateway's own privileges.
pub trait DefinitionSource: Send + Sync {
    /// Resolves to `None` where the definition cannot be read, for want of privileges or of a
    /// connection.
    fn look_up(&self, object: SchemaObject) -> Pin<Box<dyn Future<Output = Option<Definition>> + Send>>;
}

/// More definitions than these are not cached.
const CACHED_MAX: usize = 10_000;

/// Cached definitions of tables and routines.
pub struct DefinitionCache {
    source: Box<dyn DefinitionSource>,
    /// Increases whenever any definition may have changed.
    version: AtomicU64,
    /// Increases whenever the definition of any or of one table may have changed.
    generation: AtomicU64,
    cached: Mutex<AHashMap<SchemaObject, Arc<Definition>>>,
}

impl DefinitionCache {
    pub fn new(source: Box<dyn DefinitionSource>) -> Arc<DefinitionCache> {
        let (version, generation) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(DefinitionCache { source, version, generation, cached: Mutex::default() })
    }

    pub fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// Invalidates all definitions.
    pub fn invalidate(&self) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.lock().clear();
    }

    /// Invalidates the definition of one table. A change of its triggers must invalidate all
    /// definitions instead.
    fn invalidate_table(&self, table: &Namespace) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.lock().remove(&SchemaObject::table(table));
    }

    /// Returns what an access changes. `ignores_case`: names of tables are lower case.
    pub async fn effects(&self, access: Access, ignores_case: bool) -> WriteEffects {
        let mut builder = WriteEffectsBuilder::new(access, ignores_case);
        while let Some(next) = builder.next_access() {
            let Some(definition) = self.definition(next.object()).await else { return WriteEffects::unknown() };
            if !builder.add(next, &definition) {
                return WriteEffects::unknown();
            }
        }
        builder.finish()
    }

    async fn definition(&self, object: &SchemaObject) -> Option<Arc<Definition>> {
        if let Some(cached) = self.lock().get(object) {
            return Some(cached.clone());
        }
        let generation = self.generation.load(Ordering::SeqCst);
        let definition = Arc::new(self.source.look_up(object.clone()).await?);
        let mut cached = self.lock();
        if self.generation.load(Ordering::SeqCst) == generation {
            if cached.len() >= CACHED_MAX {
                cached.clear();
            }
            // An absent table is cached too: a MongoDB client may create it as a collection, which
            // has no effects beyond itself either.
            cached.insert(object.clone(), definition.clone());
        }
        Some(definition)
    }

    fn lock(&self) -> MutexGuard<'_, AHashMap<SchemaObject, Arc<Definition>>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Invalidates definitions when the store reports that they changed.
pub struct DefinitionObserver(pub Arc<DefinitionCache>);

struct NoWrite;

impl InFlightWrite for NoWrite {
    fn outcome_unknown(self: Box<Self>) {}
}

impl ChangeObserver for DefinitionObserver {
    fn wants_images(&self, _: &Namespace) -> bool {
        false
    }

    fn begin_write(&self, _: Changes) -> Box<dyn InFlightWrite> {
        Box::new(NoWrite)
    }

    fn definition_changed(&self, namespace: &Namespace) {
        match namespace.database.is_empty() || namespace.collection.is_empty() {
            true => self.0.invalidate(),
            false => self.0.invalidate_table(namespace),
        }
    }
}
