//! The generated columns of an index: their names and expressions.
//!
//! The columns of a field are shared by all indexes over it: its JSON text, that as a decimal, its
//! key, and, for indexes over several fields, whether the key is unordered. An index that is
//! sparse, partial or unique has key columns of its own.

use crate::index::column_key;
use crate::index::json_path::json_path_literal;
use crate::index::partial::{Filter, FilterColumns};
use mariadb_client::quote;
use sha2::{Digest, Sha256};
use store::IndexSpec;

/// The longest key of an index in MariaDB (3,072), less a reserve.
const KEY_BYTES_MAX: usize = 3_000;

/// The length of a field's key, without the type byte.
const FIELD_BYTES: usize = 480;

/// An index over more fields cannot share keys of that length.
const FIELDS_SHARED_MAX: usize = KEY_BYTES_MAX / (FIELD_BYTES + 1);

/// The columns of an index.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    pub fields: Box<[FieldColumns]>,
    /// The columns that each condition of the filter reads.
    filtered: Box<[FilterColumns]>,
    /// The column that shows whether a field has an unordered key, if there are several fields. An
    /// index over it has the same name.
    pub odd: Option<String>,
    /// The length of each key, without the type byte.
    pub bytes: usize,
    /// The key columns are shared with other indexes.
    shares_keys: bool,
}

/// The columns of one field.
#[derive(Clone, Debug)]
pub(crate) struct FieldColumns {
    /// Its JSON text. The name occurs dozens of times in an expression, so it is short.
    pub text: String,
    /// Its value as a decimal, if it is one.
    decimal: String,
    pub key: String,
    /// Whether its key is unordered; only if keys are shared.
    odd: String,
}

/// A column as ALTER TABLE adds it.
pub(crate) struct Definition<'c> {
    pub name: &'c str,
    pub sql: String,
    /// Another index may have created it.
    pub shared: bool,
}

impl Columns {
    pub fn new(spec: &IndexSpec, sql_name: &str, filter: Option<&Filter>) -> Columns {
        let count = spec.key.as_doc().iter().count();
        let shares_keys = !spec.unique && !spec.sparse && filter.is_none() && count <= FIELDS_SHARED_MAX;
        let field = |(position, (path, _)): (usize, (&str, _))| {
            let text = text_name(path);
            let named = format!("{}{text}", name_start(path));
            FieldColumns {
                decimal: format!("{text}d"),
                key: if shares_keys { format!("{named}.key") } else { format!("{sql_name}.{position}") },
                odd: format!("{named}.odd"),
                text,
            }
        };
        let filtered =
            filter_columns(filter, |position, path| (text_name(path), format!("{sql_name}.filter{position}")));
        Columns {
            fields: spec.key.as_doc().iter().enumerate().map(field).collect(),
            filtered,
            odd: (count > 1).then(|| format!("{sql_name}.odd")),
            bytes: FIELD_BYTES.min(KEY_BYTES_MAX / count.max(1) - 1),
            shares_keys,
        }
    }

    /// Returns the names of all columns, some of them more than once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let fields = self.fields.iter().flat_map(|field| {
            let odd = Some(field.odd.as_str()).filter(|_| self.shares_keys && self.odd.is_some());
            [&*field.key, &*field.decimal, &*field.text].into_iter().chain(odd)
        });
        let filtered =
            self.filtered.iter().flat_map(|columns| columns.key.as_deref().into_iter().chain([&*columns.text]));
        self.odd.as_deref().into_iter().chain(fields).chain(filtered)
    }

    /// Returns the definitions of all columns, each after those it is computed from. A filter may
    /// read an indexed field, so some occur twice.
    pub fn definitions(&self, spec: &IndexSpec, filter: Option<&Filter>) -> Vec<Definition<'_>> {
        let mut all = Vec::new();
        let mut add = |name, sql, shared| all.push(Definition { name, sql, shared });
        for (field, (path, _)) in self.fields.iter().zip(spec.key.as_doc().iter()) {
            let decimal = column_key::decimal_expression(&quote(&field.text));
            add(&*field.text, text_definition(path), true);
            add(&field.decimal, format!("DECIMAL(65,30) AS ({decimal}) STORED INVISIBLE"), true);
        }
        for (FilterColumns { text, key }, path) in self.filtered.iter().zip(filter.iter().flat_map(|it| it.paths())) {
            add(text, text_definition(path), true);
            if let Some(key) = key {
                add(key, Filter::key_definition(text), false);
            }
        }
        for (position, field) in self.fields.iter().enumerate() {
            let key = self.key_expression(position, spec, filter);
            add(&field.key, format!("VARBINARY({}) AS ({key}) STORED INVISIBLE", self.bytes + 1), self.shares_keys);
        }
        let Some(odd) = &self.odd else { return all };
        let flag = |expression: String| format!("BOOLEAN AS ({expression}) STORED INVISIBLE");
        if self.shares_keys {
            for field in &*self.fields {
                add(&field.odd, flag(self.odd_expression(std::slice::from_ref(field), spec)), true);
            }
            let flags: Vec<String> = self.fields.iter().map(|field| quote(&field.odd)).collect();
            add(odd, flag(format!("coalesce({})", flags.join(","))), false);
        } else {
            let any = self.odd_expression(&self.fields, spec);
            // Documents outside the index do not affect its order.
            let outside = filter.map(|_| format!("if({} is null,null,{any})", quote(&self.fields[0].key)));
            add(odd, flag(outside.unwrap_or(any)), false);
        }
        all
    }

    fn key_expression(&self, position: usize, spec: &IndexSpec, filter: Option<&Filter>) -> String {
        let FieldColumns { text, decimal, .. } = &self.fields[position];
        let (text, decimal) = (quote(text), quote(decimal));
        let source =
            column_key::Source { text: &text, decimal: Some(&decimal), bytes: self.bytes, unique: spec.unique };
        // A sparse index has documents with at least one of its fields.
        let all: Vec<String> = self.fields.iter().map(|field| quote(&field.text)).collect();
        let missing = match (spec.sparse, all.as_slice()) {
            (false, _) => "'2'".into(),
            (true, [_]) => "null".into(),
            (true, all) => format!("if(coalesce({}) is null,null,'2')", all.join(",")),
        };
        let key = format!("if({text} is null,{missing},{})", source.expression());
        match filter {
            Some(filter) => format!("if({},{key},null)", filter.expression(&self.filtered)),
            None => key,
        }
    }

    /// Returns the expression whether any field has an unordered key: true or NULL.
    fn odd_expression(&self, fields: &[FieldColumns], spec: &IndexSpec) -> String {
        let texts: Vec<String> = fields.iter().map(|field| quote(&field.text)).collect();
        let source = |text| column_key::Source { text, decimal: None, bytes: self.bytes, unique: spec.unique };
        column_key::Source::any_unordered(&texts.iter().map(|text| source(text)).collect::<Vec<_>>())
    }
}

/// Returns the columns of a filter's conditions. `names`: the names of the text and key columns.
fn filter_columns(filter: Option<&Filter>, names: impl Fn(usize, &str) -> (String, String)) -> Box<[FilterColumns]> {
    let conditions = filter.iter().flat_map(|filter| filter.conditions()).enumerate();
    let columns = conditions.map(|(position, condition)| {
        let (text, key) = names(position, &condition.path);
        FilterColumns { text, key: condition.compares().then_some(key) }
    });
    columns.collect()
}

/// Returns the name of the column with the JSON text of a field.
pub(crate) fn text_name(path: &str) -> String {
    short_name(path, 8, 6)
}

/// Returns the readable start of a longer name.
pub(crate) fn name_start(name: &str) -> String {
    name.chars().filter(|it| it.is_ascii_alphanumeric() || *it == '_').take(30).collect()
}

/// Returns a tilde and this many digits and small letters, from this many bytes of a hash.
fn short_name(of: &str, bytes: usize, digits: usize) -> String {
    let hash = Sha256::digest(of);
    let mut number = hash.iter().take(bytes).fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    let mut name = String::from("~");
    for _ in 0..digits {
        name.extend(char::from_digit((number % 36) as u32, 36));
        number /= 36;
    }
    name
}

fn text_definition(path: &str) -> String {
    let text = text_expression(path);
    format!("LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin AS ({text}) STORED INVISIBLE")
}

/// Returns the expression of a path's JSON text: NULL if there is none, a bracket if it meets an
/// array on its way. It has no blanks, which MariaDB adds to extracted JSON, since the expressions
/// of keys match wrappers.
pub(crate) fn text_expression(path: &str) -> String {
    let components: Vec<&str> = path.split('.').collect();
    let whole = format!("json_compact(json_extract(`doc`,{}))", json_path_literal(components.iter().copied()));
    if components.len() == 1 {
        return whole;
    }
    let mut arrays = String::new();
    for depth in 1..components.len() {
        let above = json_path_literal(components[..depth].iter().copied());
        arrays.push_str(&format!(" when left(json_extract(`doc`,{above}),1)='[' then '['"));
    }
    format!("coalesce({whole},case{arrays} end)")
}
