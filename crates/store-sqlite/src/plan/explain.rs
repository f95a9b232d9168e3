//! A plan in MongoDB's terms: the stages of `explain`, with statistics once the plan has been
//! executed.

mod bounds;

use crate::catalog::{Collection, Index, id_index};
use crate::plan::{Access, IndexScan, SqlitePlan, Union};
use access::{bounds as value_bounds, ranges};
use document::{Doc, DocBuf, DocWriter, Value};
use fulltext::TextSearch;
use index_keys::IndexField;
use query::Predicate;
use query::predicate::{Node, Test};
use store::explain::append_multikey_paths;
use store::{Examined, ExplainContext, IndexSpec, Plan};

pub fn stages(plan: &SqlitePlan, about: &ExplainContext<'_>) -> DocBuf {
    let writer = Stages { plan, about };
    DocBuf::build(|out| match about.predicate {
        Some((predicate, _)) if predicate.is_disjunction() && !about.counted && plan.collection.is_some() => {
            out.append("stage", "SUBPLAN");
            about.write_execution_stats(|ran| ran.found, out);
            writer.write(&mut out.document("inputStage"));
        }
        _ => writer.write(out),
    })
}

struct Stages<'s> {
    plan: &'s SqlitePlan,
    about: &'s ExplainContext<'s>,
}

impl Stages<'_> {
    fn write(&self, writer: &mut DocWriter<'_>) {
        let about = self.about;
        if self.plan.collection.is_none() {
            writer.append("stage", "EOF");
            about.write_execution_stats(|_| 0, writer);
            return;
        }
        if about.counted && self.write_counted(writer) {
            return;
        }
        match &self.plan.access {
            Access::Natural { forward, .. } => {
                writer.append("stage", "COLLSCAN");
                self.write_filter(writer);
                about.write_execution_stats(|ran| ran.found, writer);
                writer.append("direction", direction(*forward));
                about.write_count("docsExamined", self.plan.examined().documents, writer);
            }
            Access::Points(_) => self.write_points(writer),
            Access::Index(scan) => match (&scan.index, &scan.search) {
                (Some(index), Some(search)) => self.write_text_match(index, search, scan, writer),
                _ => self.write_fetch(scan, scan.counter.get().documents, true, writer),
            },
            Access::Union(union) => self.write_union(union, writer),
            Access::Near(scan) => {
                writer.append("stage", store::near::stage(&scan.index.kind));
                about.write_execution_stats(|ran| ran.found, writer);
                writer.append("keyPattern", scan.index.spec.key.as_doc());
                writer.append("indexName", scan.index.spec.name.as_str());
                writer.append("indexVersion", 2);
                let counts = self.plan.examined();
                let mut inputs = writer.array("inputStages");
                let mut fetch = inputs.document();
                self.begin_fetch(counts.documents, false, &mut fetch);
                let mut input = fetch.document("inputStage");
                input.append("stage", "IXSCAN");
                about.write_execution_stats(|_| counts.entries, &mut input);
                input.append("keyPattern", scan.index.spec.key.as_doc());
                let (arrays, partial) = (Arrays::of(&scan.index), scan.index.partial.is_some());
                write_index(&scan.index.spec, arrays, partial, true, &mut input);
                bounds::write_rings(scan, &mut input.document("indexBounds"));
                self.write_keys(counts, &mut input);
            }
        }
    }

    /// Writes the stage of a count without documents. Returns false if documents were read.
    fn write_counted(&self, writer: &mut DocWriter<'_>) -> bool {
        if self.plan.whole_collection().is_some() {
            writer.append("stage", "RECORD_STORE_FAST_COUNT");
            return true;
        }
        let Some((_, scan)) = self.plan.one_key_per_document() else { return false };
        match bounds::one_range(scan) {
            true => {
                let counts = scan.counter.get();
                writer.append("stage", "COUNT_SCAN");
                self.about.write_execution_stats(|_| counts.entries, writer);
                self.about.write_count("keysExamined", counts.keys, writer);
                with_index(scan, |spec, arrays, partial| {
                    writer.append("keyPattern", spec.key.as_doc());
                    write_facts(spec, arrays, partial, writer);
                });
                bounds::write_start_and_end(scan, &mut writer.document("indexBounds"));
            }
            false => self.write_index_scan(scan, writer),
        }
        true
    }

    /// Writes the stage of a lookup by `_id`; a lookup of one `_id` and nothing else has a stage of
    /// its own.
    fn write_points(&self, writer: &mut DocWriter<'_>) {
        let (about, counts) = (self.about, self.plan.examined());
        let ids = about.predicate.and_then(|(predicate, _)| id_condition(predicate));
        let Some(ids) = ids else {
            writer.append("stage", "IDHACK");
            about.write_execution_stats(|ran| ran.found, writer);
            about.write_count("keysExamined", counts.keys, writer);
            about.write_count("docsExamined", counts.documents, writer);
            return;
        };
        writer.append("stage", "FETCH");
        about.write_filter(|path, test| path == "_id" && std::ptr::eq(test, ids), writer);
        self.write_fetched(counts.documents, true, writer);
        let mut input = writer.document("inputStage");
        input.append("stage", "IXSCAN");
        about.write_execution_stats(|_| counts.entries, &mut input);
        let id = id_index();
        input.append("keyPattern", id.key.as_doc());
        write_index(&id, Arrays { any: false, parts: Some((&[], 0)) }, false, true, &mut input);
        bounds::write_points(ids, &mut input.document("indexBounds"));
        self.write_keys(counts, &mut input);
    }

    fn write_filter(&self, writer: &mut DocWriter<'_>) {
        if self.plan.facts.exact {
            return;
        }
        self.about.write_filter(|path, test| self.is_met(path, test), writer);
    }

    /// Returns whether the scanned keys decide a condition.
    fn is_met(&self, path: &str, test: &Test) -> bool {
        match (&self.plan.access, &self.plan.collection) {
            (Access::Index(scan), Some(collection)) => meets(scan, collection, path, test),
            (Access::Union(union), Some(collection)) if union.exploded => {
                union.branches.iter().all(|scan| meets(scan, collection, path, test))
            }
            _ => false,
        }
    }

    /// Writes the stage that fetches documents, up to its input. `last`: its results are those of
    /// the query.
    fn begin_fetch(&self, documents: u64, last: bool, writer: &mut DocWriter<'_>) {
        writer.append("stage", "FETCH");
        if last {
            self.write_filter(writer);
        }
        self.write_fetched(documents, last, writer);
    }

    fn write_fetched(&self, documents: u64, last: bool, writer: &mut DocWriter<'_>) {
        self.about.write_execution_stats(|ran| if last { ran.found } else { documents }, writer);
        self.about.write_count("docsExamined", documents, writer);
        self.about.write_count("alreadyHasObj", 0, writer);
    }

    fn write_fetch(&self, scan: &IndexScan, documents: u64, last: bool, writer: &mut DocWriter<'_>) {
        if last && scan.is_covered() {
            return self.write_index_scan(scan, writer);
        }
        self.begin_fetch(documents, last, writer);
        self.write_index_scan(scan, &mut writer.document("inputStage"));
    }

    /// Writes a union. Sorted branches fetch alone or together, as in MongoDB; unsorted ones
    /// together.
    fn write_union(&self, union: &Union, writer: &mut DocWriter<'_>) {
        let fetched_before = union.merged.is_some() && !union.exploded;
        match fetched_before {
            true => self.write_branches(union, true, writer),
            false => {
                self.begin_fetch(self.plan.examined().documents, true, writer);
                self.write_branches(union, false, &mut writer.document("inputStage"));
            }
        }
    }

    fn write_branches(&self, union: &Union, fetched: bool, writer: &mut DocWriter<'_>) {
        writer.append("stage", if union.merged.is_some() { "SORT_MERGE" } else { "OR" });
        let entries = union.branches.iter().map(|scan| scan.counter.get().entries).sum();
        self.about.write_execution_stats(|ran| if fetched { ran.found } else { entries }, writer);
        let mut stages = writer.array("inputStages");
        for scan in &union.branches {
            match fetched {
                true => self.write_fetch(scan, scan.counter.get().entries, false, &mut stages.document()),
                false => self.write_index_scan(scan, &mut stages.document()),
            }
        }
    }

    fn write_text_match(&self, index: &Index, search: &TextSearch, scan: &IndexScan, writer: &mut DocWriter<'_>) {
        let about = self.about;
        let term = |counts: Examined, writer: &mut DocWriter<'_>| {
            writer.append("stage", "IXSCAN");
            about.write_execution_stats(|_| counts.entries, writer);
            writer.append("keyPattern", index.spec.key.as_doc());
            write_index(&index.spec, Arrays { any: true, parts: None }, index.partial.is_some(), scan.forward, writer);
            writer.append("indexBounds", Doc::EMPTY);
            self.write_keys(counts, writer);
        };
        about.write_text_match(Some(&index.spec), search, scan.counter.get(), term, writer);
    }

    fn write_index_scan(&self, scan: &IndexScan, writer: &mut DocWriter<'_>) {
        let counts = scan.counter.get();
        writer.append("stage", if scan.distinct_field.is_some() { "DISTINCT_SCAN" } else { "IXSCAN" });
        let covered = scan.is_covered();
        if covered {
            self.write_filter(writer);
        }
        self.about.write_execution_stats(|ran| if covered { ran.found } else { counts.entries }, writer);
        with_index(scan, |spec, arrays, partial| {
            match scan.bounds.as_slice() {
                // A wildcard index is shown as an index on the path.
                [(path, _), (field, _)] if path == "$_path" => {
                    let mut pattern = writer.document("keyPattern");
                    pattern.append(path, 1);
                    pattern.append(field, 1);
                }
                _ => writer.append("keyPattern", spec.key.as_doc()),
            }
            write_index(spec, arrays, partial, scan.forward, writer);
            bounds::write(scan, spec, &mut writer.document("indexBounds"));
        });
        self.write_keys(counts, writer);
    }

    fn write_keys(&self, counts: Examined, writer: &mut DocWriter<'_>) {
        self.about.write_count("keysExamined", counts.keys, writer);
        self.about.write_count("seeks", counts.seeks, writer);
    }
}

/// Returns the condition on `_id`, unless it is one value and the whole filter.
fn id_condition(predicate: &Predicate) -> Option<&Test> {
    match predicate.root() {
        Node::And(all) => all.iter().find_map(points_of_id),
        Node::Path { test, .. } if matches!(bare(test), Test::Equal(_)) => None,
        root => points_of_id(root),
    }
}

fn points_of_id(node: &Node) -> Option<&Test> {
    match node {
        Node::Path { path, test } if path.as_str() == "_id" => {
            matches!(bare(test), Test::Equal(_) | Test::In(_)).then_some(test)
        }
        _ => None,
    }
}

fn bare(test: &Test) -> &Test {
    if let Test::Collated(inner, _) = test { inner } else { test }
}

/// Whether documents of an index have, or had, arrays, and at which components of its paths, if
/// known.
struct Arrays<'i> {
    any: bool,
    parts: Option<(&'i [IndexField], u64)>,
}

impl Arrays<'_> {
    fn of(index: &Index) -> Arrays<'_> {
        let known = Some(index.multikey.parts()).filter(|parts| index.kind.is_ordered() && *parts != u64::MAX);
        Arrays { any: index.is_multikey(), parts: known.map(|parts| (index.fields.as_slice(), parts)) }
    }

    fn write(&self, spec: &IndexSpec, writer: &mut DocWriter<'_>) {
        writer.append("isMultiKey", self.any);
        let Some((fields, parts)) = self.parts else { return };
        let is_array = |field: usize, component: usize| {
            let component = component as u32;
            fields.get(field).is_some_and(|field| parts & field.parts_between(component, component + 1) != 0)
        };
        append_multikey_paths(spec.key.as_doc(), is_array, writer);
    }
}

fn with_index(scan: &IndexScan, tell: impl FnOnce(&IndexSpec, Arrays<'_>, bool)) {
    match &scan.index {
        Some(index) => tell(&index.spec, Arrays::of(index), index.partial.is_some()),
        None => tell(&id_index(), Arrays { any: false, parts: Some((&[], 0)) }, false),
    }
}

fn write_index(spec: &IndexSpec, arrays: Arrays<'_>, partial: bool, forward: bool, writer: &mut DocWriter<'_>) {
    write_facts(spec, arrays, partial, writer);
    writer.append("direction", direction(forward));
}

fn write_facts(spec: &IndexSpec, arrays: Arrays<'_>, partial: bool, writer: &mut DocWriter<'_>) {
    writer.append("indexName", spec.name.as_str());
    arrays.write(spec, writer);
    writer.append("isUnique", spec.unique);
    writer.append("isSparse", spec.sparse);
    writer.append("isPartial", partial);
    writer.append("indexVersion", spec.spec.as_doc().get("v").unwrap_or(Value::Int32(2)));
}

fn direction(forward: bool) -> &'static str {
    if forward { "forward" } else { "backward" }
}

/// Returns whether every document of a scan meets a condition, by its keys.
fn meets(scan: &IndexScan, collection: &Collection, path: &str, test: &Test) -> bool {
    let wildcard = scan.index.as_ref().is_some_and(|index| matches!(index.kind, store::IndexKind::Wildcard(_)));
    if scan.index.as_ref().is_some_and(|index| !index.kind.is_ordered()) && !wildcard {
        return false;
    }
    let fields = scan.fields(collection);
    scan.bounds.iter().enumerate().filter(|(_, (bound, _))| bound == path).any(|(at, (_, ranges))| {
        let Some(field) = fields.get(at).or(fields.first()) else { return false };
        let arrays = scan.index.as_ref().map_or(0, |index| index.multikey.parts());
        let single = !wildcard && arrays & field.all_parts() == 0;
        let found = value_bounds::of(test, value_bounds::FieldContext { collation: &field.collation, single });
        found.is_some_and(|found| {
            found.exact && (single || !found.universal) && ranges::is_subset(ranges, &found.ranges)
        })
    })
}
