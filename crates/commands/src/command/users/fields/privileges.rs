//! `privileges` in commands: MongoDB's checks of each, in its order.

use auth::{Action, ActionSet, Privilege, ResourcePattern};
use document::{ArrayWriter, Doc, Element, Value, ValueBuf};
use error::{Code, Error, Result};

/// Parses an array of documents; each resource once, with all actions on it. Fails with 2 or 9.
pub fn parse(array: Doc<'_>) -> Result<Vec<Privilege>> {
    let mut privileges = Vec::new();
    for document in array.values().filter_map(|value| value.as_document()) {
        auth::privilege::add(&mut privileges, parse_one(document)?);
    }
    Ok(privileges)
}

/// Returns the array to store.
pub fn to_array(privileges: &[Privilege]) -> ValueBuf {
    let mut bytes = Vec::new();
    auth::privilege::write_all(privileges, &mut ArrayWriter::begin(&mut bytes));
    ValueBuf::from(Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY)))
}

fn parse_one(privilege: Doc<'_>) -> Result<Privilege> {
    let malformed = |error: String| {
        let shown = values::text::document(privilege);
        Error::bad_value(format!("Unable to parse privilege document: {shown}, error: {error}"))
    };
    let actions = privilege.element("actions").map(actions).transpose().map_err(malformed)?.unwrap_or_default();
    let resource = privilege.element("resource").map(ResourceFields::parse).transpose().map_err(malformed)?;
    if actions.is_empty() {
        return Err(Error::failed_to_parse("missing actions field"));
    }
    let resource = resource.ok_or_else(|| Error::failed_to_parse("missing resource field"))?;
    let pattern = resource.pattern()?;
    let unknown: Vec<&str> = actions.iter().copied().filter(|name| Action::parse(name).is_none()).collect();
    match unknown.as_slice() {
        [] => {}
        [unknown] => return Err(Error::bad_value(format!("Unrecognized action: {unknown}"))),
        unknown => return Err(Error::bad_value(format!("Unrecognized actions: {}", unknown.join(", ")))),
    }
    let actions = actions.into_iter().filter_map(Action::parse).collect::<ActionSet>();
    Ok(Privilege::new(pattern, actions))
}

/// Fails with 49 if a role of the database may not have one of the privileges: only roles of
/// `admin` may have privileges on other databases or the server.
pub fn check_scope(database: &str, privileges: &[Privilege]) -> Result<()> {
    let is_own = |privilege: &Privilege| match &privilege.pattern {
        ResourcePattern::Collection { db, .. } => **db == *database,
        _ => false,
    };
    if database == "admin" || privileges.iter().all(is_own) {
        return Ok(());
    }
    let message = format!(
        "Roles on the '{database}' database cannot be granted privileges that target other databases or the cluster"
    );
    Err(Error::new(Code::INVALID_ROLE_MODIFICATION, message))
}

fn actions(field: Element<'_>) -> Result<Vec<&str>, String> {
    let array = field.value().as_array().ok_or_else(|| wrong_type(field, "vector array"))?;
    let text = |(at, element): (usize, Element<'_>)| {
        let caused = |cause| format!("error parsing element {at} of field actions :: caused by :: {cause}");
        match element.value() {
            Value::String(_) => Ok(()),
            _ => Err(caused(wrong_type(element, "string"))),
        }
    };
    array.elements().enumerate().try_for_each(text)?;
    Ok(array.values().filter_map(|value| value.as_str()).collect())
}

/// The fields of a resource.
#[derive(Default)]
struct ResourceFields<'a> {
    any_resource: Option<bool>,
    cluster: Option<bool>,
    db: Option<&'a str>,
    collection: Option<&'a str>,
    buckets: Option<&'a str>,
}

impl<'a> ResourceFields<'a> {
    fn parse(field: Element<'a>) -> Result<ResourceFields<'a>, String> {
        let (Value::Document(resource) | Value::Array(resource)) = field.value() else {
            return Err(wrong_type(field, "Object/Array"));
        };
        let flag = |name: &str| match resource.element(name) {
            None => Ok(None),
            Some(element) => match element.value() {
                Value::Boolean(flag) => Ok(Some(flag)),
                _ => Err(wrong_type(element, "boolean")),
            },
        };
        let text = |name: &str| match resource.element(name) {
            None => Ok(None),
            Some(element) => match element.value() {
                Value::String(text) => Ok(Some(text)),
                _ => Err(wrong_type(element, "string")),
            },
        };
        Ok(ResourceFields {
            any_resource: flag("anyResource")?,
            cluster: flag("cluster")?,
            db: text("db")?,
            collection: text("collection")?,
            buckets: text("system_buckets")?,
        })
    }

    fn pattern(&self) -> Result<ResourcePattern> {
        let refuse = |message: &str| Err(Error::failed_to_parse(message));
        if self.buckets.is_some() && self.collection.is_some() {
            return refuse("system_buckets and collection cannot both be set");
        }
        let names_collections = self.db.is_some() || self.collection.is_some() || self.buckets.is_some();
        match (self.any_resource, self.cluster, names_collections) {
            (Some(true), None, false) => Ok(ResourcePattern::AnyResource),
            (Some(false), None, false) => refuse("anyResource must be true when specified"),
            (None, Some(true), false) => Ok(ResourcePattern::Cluster),
            (None, Some(false), false) => refuse("cluster must be true when specified"),
            (None, None, true) => match (self.db, self.collection, self.buckets) {
                (Some(db), Some(collection), _) => Ok(ResourcePattern::collection(db, collection)),
                (db, None, Some(buckets)) => Ok(ResourcePattern::buckets(db.unwrap_or_default(), buckets)),
                _ => refuse("resource must set both db and collection or neither, but not exactly one."),
            },
            _ => refuse(
                "resource must have exactly db and collection set, or have only cluster set  or have only \
                 anyResource set",
            ),
        }
    }
}

fn wrong_type(field: Element<'_>, expected: &str) -> String {
    let name = field.key();
    let found = values::text::element(name, field.value());
    format!("wrong type for '{name}' field, expected {expected}, found {found}")
}
