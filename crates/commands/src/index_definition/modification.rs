//! The changes of an index by `collMod`: expiry, visibility, uniqueness.

use crate::arguments;
use crate::arguments::options;
use crate::arguments::options::display;
use crate::arguments::{is_absent, unknown_field};
use crate::call::Call;
use crate::read::{Visit, for_each};
use crate::time_series::Series;
use crate::time_series::indexes::key_of_buckets;
use document::{Doc, DocBuf, DocWriter, Path, Value, ValueBuf};
use error::{Code, Error, Result};
use query::Predicate;
use std::collections::BTreeMap;
use store::{IndexSelection, IndexSpec, Namespace, Query, index_rules};

const WITHIN: &str = "collMod.index";

/// The `index` of a `collMod`.
#[derive(Clone, Copy, Default)]
pub struct Modification<'a> {
    name: Option<&'a str>,
    key: Option<Doc<'a>>,
    expire_after_seconds: Option<i64>,
    hidden: Option<bool>,
    unique: Option<bool>,
    prepare_unique: Option<bool>,
}

impl<'a> Modification<'a> {
    pub fn read(spec: Doc<'a>) -> Result<Self> {
        let mut modification = Modification::default();
        for field in spec.elements() {
            match field.key() {
                "name" | "keyPattern" | "expireAfterSeconds" | "hidden" | "unique" | "prepareUnique"
                    if is_absent(field) => {}
                "name" => modification.name = Some(arguments::string(WITHIN, field)?),
                "keyPattern" => modification.key = Some(arguments::document(WITHIN, field)?),
                "expireAfterSeconds" => {
                    modification.expire_after_seconds = Some(arguments::integer(WITHIN, field)?);
                }
                "hidden" => modification.hidden = Some(arguments::boolean_or_number(WITHIN, field)?),
                "unique" => modification.unique = Some(arguments::boolean_or_number(WITHIN, field)?),
                "prepareUnique" => {
                    modification.prepare_unique = Some(arguments::boolean_or_number(WITHIN, field)?);
                }
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        Ok(modification)
    }

    pub fn makes_unique(&self) -> bool {
        self.unique == Some(true)
    }

    /// Fails with 6011800 or 27 if the index is the clustered one.
    pub fn check_for_cluster(&self, cluster: &str, namespace: &Namespace) -> Result<()> {
        let is_cluster = self.name == Some(cluster) || self.key.is_some_and(index_rules::is_id_key);
        if is_cluster && self.hidden.is_some() {
            return Err(Error::new(Code(6011800), "The 'hidden' option is not supported for a clusteredIndex"));
        }
        if is_cluster || self.name == Some("_id_") {
            let asked = self.name.map(str::to_owned).or_else(|| self.key.map(display)).unwrap_or_default();
            let message = format!("cannot find index {asked} for ns {namespace}");
            return Err(Error::new(Code::INDEX_NOT_FOUND, message));
        }
        Ok(())
    }

    /// Changes an index of a time-series collection, as [`Modification::apply`] does. Fails
    /// with 72 for options that its indexes do not have.
    pub async fn apply_to_series(
        &self,
        call: &Call<'_>,
        series: &Series,
        dry_run: bool,
        reply: &mut DocWriter<'_>,
    ) -> Result<()> {
        if self.expire_after_seconds.is_some() {
            let message = "TTL indexes are not supported for time-series collections. Please refer to the documentation \
                           and use the top-level 'expireAfterSeconds' option instead";
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
        let key = self.key.map(|key| key_of_buckets(key, series));
        let translated = Modification { key: key.as_ref().map(DocBuf::as_doc), ..*self };
        translated.apply(call, &series.buckets, dry_run, reply).await
    }

    pub async fn apply(
        &self,
        call: &Call<'_>,
        namespace: &Namespace,
        dry_run: bool,
        reply: &mut DocWriter<'_>,
    ) -> Result<()> {
        self.check()?;
        let index = self.find(call, namespace).await?;
        self.check_for(&index)?;
        if self.makes_unique() {
            return self.make_unique(call, namespace, &index, dry_run, reply).await;
        }
        let old = index.spec.as_doc();
        let mut spec = old.to_owned();
        if let Some(seconds) = self.expire_after_seconds {
            if let Some(seconds) = old.get("expireAfterSeconds").and_then(arguments::number_to_i64) {
                reply.append("expireAfterSeconds_old", seconds);
            }
            let seconds = seconds.min(i32::MAX.into());
            reply.append("expireAfterSeconds_new", seconds);
            spec = with(spec.as_doc(), "expireAfterSeconds", Some((seconds as i32).into()));
        }
        for (key, new) in [("hidden", self.hidden), ("prepareUnique", self.prepare_unique)] {
            let before = options::is_set(old, key);
            let Some(new) = new.filter(|new| *new != before) else { continue };
            reply.append(&format!("{key}_old"), before);
            reply.append(&format!("{key}_new"), new);
            spec = with(spec.as_doc(), key, new.then_some(Value::Boolean(true)));
        }
        if spec != index.spec {
            call.worker.store.modify_index(namespace, IndexSpec { spec, ..index }).await?;
        }
        Ok(())
    }

    /// Checks the modification, whatever the index.
    fn check(&self) -> Result<()> {
        let invalid = |message: &str| Err(Error::new(Code::INVALID_OPTIONS, message));
        match (self.name, self.key) {
            (None, None) => return invalid("Must specify either index name or key pattern."),
            (Some(_), Some(_)) => return invalid("Cannot specify both key pattern and name."),
            _ => {}
        }
        let nothing = self.expire_after_seconds.is_none()
            && self.hidden.is_none()
            && self.unique.is_none()
            && self.prepare_unique.is_none();
        if nothing {
            return invalid("no expireAfterSeconds, hidden, unique, or prepareUnique field");
        }
        let others = self.expire_after_seconds.is_some() || self.hidden.is_some() || self.unique.is_some();
        if self.prepare_unique == Some(true) && others {
            return invalid("prepareUnique cannot be combined with any other modification.");
        }
        if self.unique == Some(false) {
            return Err(Error::bad_value("Cannot make index non-unique"));
        }
        if self.expire_after_seconds.is_some_and(|seconds| seconds < 0) {
            return invalid("TTL index 'expireAfterSeconds' option cannot be less than 0");
        }
        Ok(())
    }

    async fn find(&self, call: &Call<'_>, namespace: &Namespace) -> Result<IndexSpec> {
        let indexes = call.worker.store.indexes(namespace).await?.unwrap_or_default();
        let named = |index: &IndexSpec| match (self.name, self.key) {
            (Some(name), _) => index.name == name,
            (None, Some(key)) => index_rules::same_key(index.key.as_doc(), key),
            (None, None) => false,
        };
        let (found, others): (Vec<_>, Vec<_>) = indexes.into_iter().partition(named);
        drop(others);
        match <[IndexSpec; 1]>::try_from(found) {
            Ok([index]) => Ok(index),
            Err(found) if found.is_empty() => {
                let asked = self.name.map(str::to_owned).or_else(|| self.key.map(display)).unwrap_or_default();
                let message = format!("cannot find index {asked} for ns {namespace}");
                Err(Error::new(Code::INDEX_NOT_FOUND, message))
            }
            Err(found) => Err(Error::new(
                Code::AMBIGUOUS_INDEX_KEY_PATTERN,
                format!(
                    "index keyPattern {} matches {} indexes, must use index name. Conflicting indexes:{}, {}",
                    self.key.map(display).unwrap_or_default(),
                    found.len(),
                    found.first().map(|index| display(index.spec.as_doc())).unwrap_or_default(),
                    found.get(1).map(|index| display(index.spec.as_doc())).unwrap_or_default(),
                ),
            )),
        }
    }

    /// Checks the modification against the index.
    fn check_for(&self, index: &IndexSpec) -> Result<()> {
        let invalid = |message: &str| Err(Error::new(Code::INVALID_OPTIONS, message));
        if self.expire_after_seconds.is_some() {
            if index.name == "_id_" {
                return invalid("the _id field does not support TTL indexes");
            }
            if index.key.as_doc().elements().count() > 1 {
                return invalid("TTL indexes are single-field indexes, compound indexes do not support TTL");
            }
        }
        if self.hidden.is_some() && index.name == "_id_" {
            return Err(Error::bad_value("can't hide _id index"));
        }
        if self.makes_unique() && !index.unique && !options::is_set(index.spec.as_doc(), "prepareUnique") {
            return invalid("Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.");
        }
        Ok(())
    }

    /// Rebuilds the index as a unique one. Fails with 359, which names the conflicting documents.
    async fn make_unique(
        &self,
        call: &Call<'_>,
        namespace: &Namespace,
        index: &IndexSpec,
        dry_run: bool,
        reply: &mut DocWriter<'_>,
    ) -> Result<()> {
        if index.unique {
            return Ok(());
        }
        let violations = violations(call, namespace, index).await?;
        if !violations.is_empty() {
            return Err(not_unique(&violations));
        }
        if dry_run {
            return Ok(());
        }
        let spec = with(with(index.spec.as_doc(), "prepareUnique", None).as_doc(), "unique", Some(true.into()));
        let unique = IndexSpec { unique: true, spec, ..index.clone() };
        let store = &call.worker.store;
        store.drop_indexes(namespace, IndexSelection::Names(vec![index.name.clone()])).await?;
        if let Err(error) = store.create_indexes(namespace, vec![unique]).await {
            // A concurrent write has added a duplicate key: restore the index.
            store.create_indexes(namespace, vec![index.clone()]).await?;
            return Err(error);
        }
        reply.append("unique_new", true);
        Ok(())
    }
}

/// Returns the specification with another value of an option, or without it.
fn with(spec: Doc<'_>, key: &str, value: Option<Value<'_>>) -> DocBuf {
    DocBuf::build(|writer| {
        let mut pending = value;
        for element in spec.elements() {
            match element.key() == key {
                true => {
                    if let Some(value) = pending.take() {
                        writer.append(key, value);
                    }
                }
                false => writer.append_element(element),
            }
        }
        if let Some(value) = pending {
            writer.append(key, value);
        }
    })
}

/// Returns the ids of documents that share a key, grouped by key.
async fn violations(call: &Call<'_>, namespace: &Namespace, index: &IndexSpec) -> Result<Vec<Vec<ValueBuf>>> {
    let store = &*call.worker.store;
    let partial = index.spec.as_doc().get("partialFilterExpression").and_then(Value::as_document);
    let predicate = Predicate::parse(partial.unwrap_or(Doc::EMPTY), &call.context())?;
    let query = Query::of(&predicate);
    let plan = store.plan(namespace, query).await?;
    let paths: Vec<Path> = index.key.as_doc().iter().map(|(path, _)| Path::new(path)).collect();
    let mut holders: BTreeMap<Vec<u8>, Vec<ValueBuf>> = BTreeMap::new();
    for_each(store, &plan, &predicate, true, call.operation, |document| {
        let values: Vec<Option<Value<'_>>> = paths.iter().map(|path| path.get(document)).collect();
        if index.sparse && values.iter().all(Option::is_none) {
            return Ok(Visit::Continue);
        }
        let mut key = Vec::new();
        values.iter().for_each(|value| document::key::encode(value.unwrap_or(Value::Null), &mut key));
        holders.entry(key).or_default().extend(document.get("_id").map(Value::to_owned));
        Ok(Visit::Continue)
    })
    .await?;
    Ok(holders.into_values().filter(|ids| ids.len() > 1).collect())
}

fn not_unique(violations: &[Vec<ValueBuf>]) -> Error {
    let details = DocBuf::build(|writer| {
        let mut array = writer.array("violations");
        for ids in violations {
            let mut violation = array.document();
            let mut array = violation.array("ids");
            ids.iter().for_each(|id| array.push(id));
        }
    });
    let message =
        "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.";
    Error::new(Code::CANNOT_CONVERT_INDEX_TO_UNIQUE, message).with_details(details.into_vec())
}
