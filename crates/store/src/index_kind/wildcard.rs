//! `$**`: all fields of a document or below a path, with some included or excluded.

use super::refuse;
use crate::IndexSpec;
use document::{Doc, Kind, Value};
use error::{Code, Error, Result};
use query::{Context, Projection};
use values::number::as_f64_lossy;

/// A key pattern has the path `$**` instead of this name.
pub(crate) const NAME: &str = "wildcard";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WildcardOptions {
    /// The path in front of `$**`; empty for all fields of a document.
    pub root: String,
    /// Whether the index has only fields below [`WildcardOptions::paths`], or all others.
    pub includes: bool,
    /// Sorted; a path includes everything below it.
    pub paths: Vec<String>,
    /// Whether `_id` is in the index.
    pub id: bool,
}

impl WildcardOptions {
    pub(super) fn read(index: &IndexSpec) -> Result<WildcardOptions> {
        let pattern = index.key.as_doc();
        let root = pattern.iter().find_map(|(path, _)| path.strip_suffix("$**")).unwrap_or_default();
        let root = root.strip_suffix('.').unwrap_or(root).to_owned();
        let id = root == "_id" || root.starts_with("_id.");
        let mut options = WildcardOptions { root, includes: false, paths: Vec::new(), id };
        if let Some(Value::Document(projection)) = index.spec.as_doc().get("wildcardProjection") {
            options.read_projection(projection);
        }
        Ok(options)
    }

    fn read_projection(&mut self, projection: Doc<'_>) {
        let mut chosen = Vec::new();
        collect("", projection, &mut chosen);
        let own = chosen.iter().find(|(path, _)| path == "_id").map(|(_, included)| *included);
        chosen.retain(|(path, _)| path != "_id");
        self.includes = chosen.first().map_or(own == Some(true), |(_, included)| *included);
        self.id = own.unwrap_or(self.includes && chosen.iter().any(|(path, _)| path.starts_with("_id.")));
        self.paths = chosen.into_iter().map(|(path, _)| path).collect();
        self.paths.sort_unstable();
    }

    /// Returns whether the value at a path is in the index.
    pub fn covers(&self, path: &str) -> bool {
        if !is_within(path, &self.root) {
            return false;
        }
        let named = self.paths.iter().any(|chosen| is_within(path, chosen));
        match is_within(path, "_id") {
            true if !self.root.is_empty() => true,
            true => self.id && (!self.paths.iter().any(|chosen| is_within(chosen, "_id")) || named == self.includes),
            false => named == self.includes,
        }
    }

    /// Returns whether a value below a path may be in the index.
    pub fn reaches(&self, path: &str) -> bool {
        let leads_to_root = is_within(&self.root, path);
        let leads_to_chosen = self.includes && self.paths.iter().any(|chosen| is_within(chosen, path));
        leads_to_root || leads_to_chosen || self.covers(path)
    }
}

/// Returns whether a path equals another one or continues it; every path continues the empty one.
fn is_within(path: &str, outer: &str) -> bool {
    outer.is_empty() || path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Collects the paths of a projection, with whether they are included.
fn collect(prefix: &str, projection: Doc<'_>, chosen: &mut Vec<(String, bool)>) {
    for (name, value) in projection.iter() {
        let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        match value {
            Value::Document(inner) => collect(&path, inner, chosen),
            value => chosen.push((path, value.is_truthy())),
        }
    }
}

/// Refuses options that an index of this kind does not support.
pub(super) fn check(index: &IndexSpec) -> Result<()> {
    let spec = index.spec.as_doc();
    if let Some(version) = spec.get("v").and_then(as_f64_lossy)
        && version < 2.0
    {
        let mut key = String::new();
        crate::duplicate::write_document(index.key.as_doc(), &mut key);
        return refuse(format!(
            "bad index key pattern {key}: 'wildcard' index plugin is not allowed with index version v:{version}"
        ));
    }
    for option in ["sparse", "unique"] {
        if spec.get(option).is_some_and(Value::is_truthy) {
            return refuse(format!("Index type 'wildcard' does not support the {option} option"));
        }
    }
    if spec.get("expireAfterSeconds").is_some() {
        return refuse("Index type 'wildcard' cannot be a TTL index");
    }
    Ok(())
}

/// Checks a `wildcardProjection`: the fields to include, or to exclude. `key` is the index's key
/// pattern.
pub fn check_projection(key: Doc<'_>, projection: Value<'_>) -> Result<()> {
    if super::plugin(key) != Some(NAME) {
        return Err(Error::bad_value("The field 'wildcardProjection' is only allowed in an 'wildcard' index"));
    }
    let Value::Document(projection) = projection else {
        let found = projection.kind().alias();
        return Err(Error::type_mismatch(format!(
            "The field 'wildcardProjection' must be a non-empty object, but got {found}"
        )));
    };
    if key.first().is_none_or(|first| first.key() != "$**") {
        return Err(Error::failed_to_parse(
            "The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": ±1}",
        ));
    }
    if projection.is_empty() {
        return Err(Error::failed_to_parse("The 'wildcardProjection' field can't be an empty object"));
    }
    check_switches(projection)
        .and_then(|()| Projection::parse_stage(projection, &Context::at(0)).map(drop))
        .map_err(|error| error.context("Failed to parse: wildcardProjection :: caused by :: "))
}

/// Refuses computed fields.
fn check_switches(projection: Doc<'_>) -> Result<()> {
    for value in projection.values() {
        match value {
            Value::Document(inner) if inner.first().is_some_and(|first| first.key() == "$elemMatch") => {}
            Value::Document(inner) if inner.first().is_none_or(|first| !first.key().starts_with('$')) => {
                check_switches(inner)?;
            }
            value if value.kind().is_number() || value.kind() == Kind::Boolean => {}
            _ => {
                return Err(Error::new(
                    Code(51271),
                    "Bad projection specification, cannot use computed fields when parsing a spec in \
                     kBanComputedFields mode",
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{DocBuf, doc};

    #[track_caller]
    fn check(key: &str, projection: DocBuf, covered: &[&str], others: &[&str]) {
        let mut pattern = DocBuf::new();
        pattern.append(key, 1);
        let mut spec = doc! { "v": 2, "key": &pattern, "name": "i" };
        if !projection.as_doc().is_empty() {
            spec.append("wildcardProjection", &projection);
        }
        let index = IndexSpec { name: "i".into(), key: pattern, unique: false, sparse: false, spec };
        let options = WildcardOptions::read(&index).unwrap();
        for (paths, expected) in [(covered, true), (others, false)] {
            for path in paths {
                assert_eq!(options.covers(path), expected, "{key} {projection:?} {path}");
                assert!(!expected || options.reaches(path), "{path}");
            }
        }
    }

    #[test]
    fn a_wildcard_covers_paths() {
        check("$**", doc! {}, &["a", "a.b", "_idea"], &["_id", "_id.a"]);
        check("a.$**", doc! {}, &["a", "a.b"], &["b", "ab", "_id"]);
        check("_id.$**", doc! {}, &["_id", "_id.a"], &["a"]);
        check("$**", doc! { "a.b": 1, "c": true }, &["a.b", "a.b.c", "c.d"], &["a", "a.c", "_id"]);
        check("$**", doc! { "a": &doc! { "b": 0 } }, &["a", "a.c", "d"], &["a.b", "a.b.c", "_id"]);
        check("$**", doc! { "_id": 1 }, &["_id", "_id.x"], &["a"]);
        check("$**", doc! { "_id": 1, "a": 0 }, &["_id", "b"], &["a"]);
        check("$**", doc! { "_id": 0, "a": 1 }, &["a"], &["_id", "b"]);
    }
}
