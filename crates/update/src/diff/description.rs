//! A difference in the form of a change stream's `updateDescription`.

use document::{Doc, DocBuf, DocWriter, Element, Value};

/// Appends `updatedFields`, `removedFields` and `truncatedArrays`, with dotted paths.
pub fn describe(difference: Doc<'_>, writer: &mut DocWriter<'_>) {
    let mut description = Description::default();
    description.add_fields("", difference);
    writer.append("updatedFields", Value::Document(description.updated.as_doc()));
    let mut removed = writer.array("removedFields");
    description.removed.iter().for_each(|path| removed.push(path.as_str()));
    drop(removed);
    let mut truncated = writer.array("truncatedArrays");
    for (path, length) in &description.truncated {
        let mut array = truncated.document();
        array.append("field", path.as_str());
        array.append("newSize", *length);
    }
}

#[derive(Default)]
struct Description {
    updated: DocBuf,
    removed: Vec<String>,
    truncated: Vec<(String, Value<'static>)>,
}

impl Description {
    fn add_fields(&mut self, at: &str, difference: Doc<'_>) {
        for section in difference.elements() {
            let Some(fields) = section.value().as_document() else { continue };
            match section.key() {
                "d" => self.removed.extend(fields.elements().map(|field| path(at, field.key()))),
                "u" | "i" => fields.elements().for_each(|field| self.update(path(at, field.key()), field)),
                name => self.add_nested(&path(at, name.get(1..).unwrap_or_default()), fields),
            }
        }
    }

    fn add_nested(&mut self, at: &str, difference: Doc<'_>) {
        // The difference of a document has no field `a` with a boolean.
        if !matches!(difference.get("a"), Some(Value::Boolean(true))) {
            return self.add_fields(at, difference);
        }
        for change in difference.elements().skip(1) {
            match (change.key(), change.value()) {
                ("l", Value::Int32(length)) => self.truncated.push((at.to_owned(), Value::Int32(length))),
                (name, Value::Document(nested)) if name.starts_with('s') => {
                    self.add_nested(&path(at, &name[1..]), nested);
                }
                (name, _) => self.update(path(at, name.get(1..).unwrap_or_default()), change),
            }
        }
    }

    fn update(&mut self, path: String, element: Element<'_>) {
        steps::step();
        self.updated.append(&path, element.value());
    }
}

fn path(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}
