//! `$push` as one statement: the server assembles the array.
//!
//! Kept elements are copied in their encoding, so they keep their types. The statement finds no row
//! if the field is not an array.
//!
//! Each range of old elements is extracted from the array alone: in a document that has the field
//! twice, a path with a range finds elements of both.

use crate::catalog::table::Table;
use crate::encoding;
use crate::index::json_path::json_path;
use crate::write::change::update_statement::{Statement, VALUES_BYTES_MAX, text};
use mariadb_wire::Param;
use update::UnsortedPush;

/// No array has as many elements within these bytes, pushed ones included.
const ELEMENTS_MAX: u64 = 1 << 20;

/// A push that can be formatted as a statement.
pub(super) struct Push {
    array: Array,
    paths: Paths,
}

impl Push {
    /// Returns `None` if the values are too long.
    pub fn new(pushed: &UnsortedPush<'_>) -> Option<Push> {
        let array = Array::after(pushed)?;
        let paths = Paths::new(pushed.path, array.single);
        Some(Push { array, paths })
    }

    pub fn statement<'p>(&'p self, table: &Table, id: &'p [u8]) -> Statement<'p> {
        let mut statement = Statement::update(table);
        self.array.add_document(&self.paths, &mut statement);
        statement.add_condition(id);
        // An array, or nothing.
        let path = text(&self.paths.array);
        let array = " AND IFNULL(LEFT(JSON_QUERY(doc, ?), 1), IF(JSON_EXISTS(doc, ?), '', '[')) = '['";
        statement.add(array, [path, path]);
        statement
    }
}

/// The new array, in terms of the old one.
#[derive(Debug, PartialEq)]
struct Array {
    head: Option<Old>,
    /// The values pushed, as JSON.
    values: Vec<u8>,
    tail: Option<Old>,
    /// The part kept of head, values and tail, as a path.
    kept: Option<String>,
    single: Option<Single>,
}

/// One value pushed to an end of the array, of which at most one is removed at the other: less work
/// for the server, if the array is not longer than that.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Single {
    end: End,
    elements_max: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Front,
    Back,
}

/// A range of old elements.
#[derive(Debug, PartialEq)]
struct Old {
    /// The range is empty in an array that has no more elements than this.
    beyond: u64,
    range: String,
}

impl Old {
    fn add<'p>(&'p self, paths: &'p Paths, statement: &mut Statement<'p>) {
        let array = text(&paths.array);
        let sql = "IF(JSON_LENGTH(doc, ?) > ?, JSON_EXTRACT(JSON_EXTRACT(doc, ?), ?), '[]')";
        statement.add(sql, [array, Param::Unsigned(self.beyond), array, text(&self.range)]);
    }

    fn all() -> Old {
        Old { beyond: 0, range: "$[0 to last]".into() }
    }

    /// Of `count`, which is not zero.
    fn first(count: u64) -> Old {
        Old { beyond: 0, range: first(count) }
    }

    fn last(count: u64) -> Old {
        Old { beyond: 0, range: last(count) }
    }

    fn all_but_first(count: u64) -> Old {
        Old { beyond: count, range: format!("$[{count} to last]") }
    }

    fn all_but_last(count: u64) -> Old {
        Old { beyond: count, range: format!("$[0 to last-{count}]") }
    }
}

fn first(count: u64) -> String {
    format!("$[0 to {}]", count - 1)
}

fn last(count: u64) -> String {
    format!("$[last-{} to last]", count - 1)
}

impl Array {
    /// `None` where the values are too long.
    fn after(pushed: &UnsortedPush<'_>) -> Option<Array> {
        let count = pushed.values().len() as u64;
        let slice = pushed.slice.filter(|slice| slice.unsigned_abs() <= ELEMENTS_MAX);
        let position = pushed.position.filter(|position| *position < ELEMENTS_MAX as i64);
        let (mut head, mut tail) = match position {
            None => (Some(Old::all()), None),
            Some(0) => (None, Some(Old::all())),
            Some(position @ 1..) => {
                let position = position.unsigned_abs();
                (Some(Old::first(position)), Some(Old::all_but_first(position)))
            }
            Some(position) => {
                let behind = position.unsigned_abs().min(ELEMENTS_MAX);
                (Some(Old::all_but_last(behind)), Some(Old::last(behind)))
            }
        };
        // If the kept values and old elements are known, only these are assembled.
        let (mut from, mut to, mut kept) = (0, count, None);
        match (slice, position) {
            (None, _) => {}
            (Some(0), _) => (head, tail, to) = (None, None, 0),
            (Some(slice @ ..0), None) => {
                let slice = slice.unsigned_abs();
                from = count.saturating_sub(slice);
                head = (slice > count).then(|| Old::last(slice - count));
            }
            (Some(slice @ 1..), Some(0)) => {
                let slice = slice.unsigned_abs();
                to = count.min(slice);
                tail = (slice > count).then(|| Old::first(slice - count));
            }
            (Some(slice @ ..0), Some(_)) => kept = Some(last(slice.unsigned_abs())),
            (Some(slice), _) => kept = Some(first(slice.unsigned_abs())),
        }
        let mut values = vec![b'['];
        for (index, value) in pushed.values().enumerate().take(to as usize).skip(from as usize) {
            if index > from as usize {
                values.push(b',');
            }
            values.extend(encoding::encode_value(value));
        }
        values.push(b']');
        let single = Single::of(count, position, slice);
        (values.len() <= VALUES_BYTES_MAX).then_some(Array { head, values, tail, kept, single })
    }

    /// Adds the new document.
    fn add_document<'p>(&'p self, paths: &'p Paths, statement: &mut Statement<'p>) {
        let Some(single) = &self.single else { return self.add_any_document(paths, statement) };
        let most = Param::Signed(single.elements_max as i64);
        let add = |statement: &mut Statement<'p>| {
            let function = if single.end == End::Front { "JSON_ARRAY_INSERT" } else { "JSON_ARRAY_APPEND" };
            let value = Param::Text(&self.values[1..self.values.len() - 1]);
            statement.add(&format!("{function}(doc, ?, JSON_COMPACT(?))"), [text(&paths.end), value]);
        };
        statement.add("CASE SIGN(CAST(JSON_LENGTH(doc, ?) AS SIGNED) - ?) WHEN -1 THEN ", [text(&paths.array), most]);
        add(statement);
        statement.add(" WHEN 0 THEN JSON_REMOVE(", []);
        add(statement);
        statement.add(", ?) ELSE ", [text(&paths.excess)]);
        self.add_any_document(paths, statement);
        statement.add(" END", []);
    }

    /// Adds the new document, whatever the old one has for an array.
    fn add_any_document<'p>(&'p self, paths: &'p Paths, statement: &mut Statement<'p>) {
        let values = Param::Text(&self.values);
        statement.add("JSON_SET(doc, ?, ", [text(&paths.array)]);
        statement.add(if self.kept.is_some() { "JSON_EXTRACT(" } else { "" }, []);
        match (&self.head, &self.tail) {
            (None, None) => statement.add("JSON_COMPACT(?)", [values]),
            (head, tail) => {
                statement.add("JSON_MERGE_PRESERVE(", []);
                if let Some(head) = head {
                    head.add(paths, statement);
                    statement.add(", ", []);
                }
                statement.add("?", [values]);
                if let Some(tail) = tail {
                    statement.add(", ", []);
                    tail.add(paths, statement);
                }
                statement.add(")", []);
            }
        }
        if let Some(kept) = &self.kept {
            statement.add(", ?)", [text(kept)]);
        }
        statement.add(")", []);
    }
}

/// JSON paths of the array and its ends.
struct Paths {
    array: String,
    /// The end that receives a single value, and the element that is then in excess.
    end: String,
    excess: String,
}

impl Paths {
    fn new(field: &str, single: Option<Single>) -> Paths {
        let array = json_path(std::iter::once(field));
        let (end, excess) = match single {
            Some(Single { end: End::Front, elements_max }) => {
                (format!("{array}[0]"), format!("{array}[{elements_max}]"))
            }
            _ => (array.clone(), format!("{array}[0]")),
        };
        Paths { array, end, excess }
    }
}

impl Single {
    fn of(count: u64, position: Option<i64>, slice: Option<i64>) -> Option<Single> {
        let (end, elements_max) = match (position, slice) {
            (None, None) => (End::Back, ELEMENTS_MAX),
            (None, Some(slice @ ..-1)) => (End::Back, slice.unsigned_abs()),
            (Some(0), None) => (End::Front, ELEMENTS_MAX),
            (Some(0), Some(slice @ 2..)) => (End::Front, slice.unsigned_abs()),
            _ => return None,
        };
        (count == 1).then_some(Single { end, elements_max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{DocBuf, array, doc};
    use query::Context;
    use update::Update;

    /// Formats the array after `{$push: {a: {$each: [1, 2], …}}}`: ranges with the least length
    /// that reaches beyond them, the values between them, and the final slice.
    fn after(clauses: DocBuf) -> String {
        let mut push = doc! { "$each": &array![1, 2] };
        clauses.as_doc().iter().for_each(|(name, value)| push.append(name, value));
        let update = doc! { "$push": &doc! { "a": &push } };
        let update = Update::parse((&update).into(), None, &Context::at(0)).unwrap();
        let Array { head, values, tail, kept, single: _ } = Array::after(&update.as_unsorted_push().unwrap()).unwrap();
        let old = |old: Option<Old>| old.map_or(String::new(), |old| format!("{}>{} ", old.range, old.beyond));
        let values = String::from_utf8(values).unwrap();
        format!("{}{values} {}{}", old(head), old(tail), kept.unwrap_or_default()).trim_end().to_owned()
    }

    #[test]
    fn no_more_is_taken_of_the_array_than_stays() {
        for (clauses, expected) in [
            (doc! {}, "$[0 to last]>0 [1,2]"),
            (doc! { "$slice": -10 }, "$[last-7 to last]>0 [1,2]"),
            (doc! { "$slice": -2 }, "[1,2]"),
            (doc! { "$slice": -1 }, "[2]"),
            (doc! { "$slice": 0 }, "[]"),
            (doc! { "$slice": 10 }, "$[0 to last]>0 [1,2] $[0 to 9]"),
            (doc! { "$position": 0, "$slice": 10 }, "[1,2] $[0 to 7]>0"),
            (doc! { "$position": 0, "$slice": 1 }, "[1]"),
            (doc! { "$position": 0, "$slice": -3 }, "[1,2] $[0 to last]>0 $[last-2 to last]"),
            (doc! { "$position": 3 }, "$[0 to 2]>0 [1,2] $[3 to last]>3"),
            (doc! { "$position": -3, "$slice": 5 }, "$[0 to last-3]>3 [1,2] $[last-2 to last]>0 $[0 to 4]"),
            (doc! { "$position": i64::MAX, "$slice": i64::MAX }, "$[0 to last]>0 [1,2]"),
            (doc! { "$slice": i64::MIN }, "$[0 to last]>0 [1,2]"),
        ] {
            assert_eq!(after(clauses.clone()), expected, "{clauses:?}");
        }
    }

    #[test]
    fn other_updates_are_not_for_this_way() {
        for update in [
            doc! { "$push": &doc! { "a": &doc! { "$each": &array![1], "$sort": 1 } } },
            doc! { "$push": &doc! { "a": &doc! { "$each": &array![], "$slice": -1 } } },
            doc! { "$push": &doc! { "a": 1, "b": 2 } },
            doc! { "$push": &doc! { "a": 1 }, "$inc": &doc! { "b": 2 } },
            doc! { "$push": &doc! { "a.b": 1 } },
            doc! { "$push": &doc! { "_id": 1 } },
            doc! { "$set": &doc! { "a": 1 } },
            doc! { "a": 1 },
        ] {
            let parsed = Update::parse((&update).into(), None, &Context::at(0)).unwrap();
            assert!(parsed.as_unsorted_push().is_none(), "{update:?}");
        }
    }
}
