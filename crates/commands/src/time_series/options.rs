//! The options of time-series collections: as they are given, stored and listed.

use crate::arguments;
use crate::arguments::{is_absent, missing_field, string, unknown_field};
use crate::time_series::OPTION;
use crate::views;
use aggregate::UNPACK_BUCKET;
use document::{Doc, DocBuf, DocWriter, Element, Value, doc};
use error::{Code, Error, Result};
use store::rules::CLUSTERED_INDEX;

/// The interval between measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Granularity {
    Seconds,
    Minutes,
    Hours,
}

impl Granularity {
    pub fn read(within: &str, field: Element<'_>) -> Result<Granularity> {
        let word = string(within, field)?;
        Granularity::named(word).ok_or_else(|| {
            let message = format!("Enumeration value '{word}' for field '{within}.granularity' is not a valid value.");
            Error::bad_value(message)
        })
    }

    pub fn named(word: &str) -> Option<Granularity> {
        Some(match word {
            "seconds" => Granularity::Seconds,
            "minutes" => Granularity::Minutes,
            "hours" => Granularity::Hours,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Granularity::Seconds => "seconds",
            Granularity::Minutes => "minutes",
            Granularity::Hours => "hours",
        }
    }

    /// Returns the largest time span of a bucket.
    pub fn span_seconds(self) -> i32 {
        match self {
            Granularity::Seconds => 3600,
            Granularity::Minutes => 24 * 3600,
            Granularity::Hours => 30 * 24 * 3600,
        }
    }

    /// Returns the unit to which the start of a bucket is rounded down.
    pub fn rounding_ms(self) -> i64 {
        match self {
            Granularity::Seconds => 60 * 1000,
            Granularity::Minutes => 3600 * 1000,
            Granularity::Hours => 24 * 3600 * 1000,
        }
    }

    /// Returns the granularity of a collection of buckets.
    pub fn of(options: Doc<'_>) -> Granularity {
        let series = options.get(OPTION).and_then(Value::as_document);
        let word = series.and_then(|series| series.get("granularity")).and_then(Value::as_str);
        word.and_then(Granularity::named).unwrap_or(Granularity::Seconds)
    }
}

/// The other options of `create` that a time-series collection may have.
#[derive(Clone, Copy, Debug)]
pub struct Others<'a> {
    pub expire_after_seconds: Option<i64>,
    pub collation: Option<Doc<'a>>,
    pub storage_engine: Option<Doc<'a>>,
}

/// `timeseries` of `create`.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    time_field: &'a str,
    meta_field: Option<&'a str>,
    granularity: Granularity,
}

impl<'a> Options<'a> {
    pub fn new(time_field: &'a str, meta_field: Option<&'a str>, granularity: Granularity) -> Options<'a> {
        Options { time_field, meta_field, granularity }
    }

    pub fn read(field: Element<'a>) -> Result<Options<'a>> {
        const WITHIN: &str = "create.timeseries";
        let (mut time_field, mut meta_field, mut span) = (None, None, None);
        let mut granularity = Granularity::Seconds;
        for field in arguments::document("create", field)?.elements() {
            match field.key() {
                "timeField" => time_field = Some(string(WITHIN, field)?),
                "metaField" | "granularity" | "bucketMaxSpanSeconds" if is_absent(field) => {}
                "metaField" => meta_field = Some(string(WITHIN, field)?),
                "granularity" => granularity = Granularity::read(WITHIN, field)?,
                "bucketMaxSpanSeconds" => {
                    let seconds = arguments::integer(WITHIN, field)?;
                    if seconds < 1 {
                        let message =
                            format!("BSON field 'bucketMaxSpanSeconds' value must be >= 1, actual value '{seconds}'");
                        return Err(Error::new(Code(51024), message));
                    }
                    span = Some(seconds);
                }
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        let time_field = time_field.ok_or_else(|| missing_field(WITHIN, "timeField"))?;
        let fixed = i64::from(granularity.span_seconds());
        if span.is_some_and(|span| span != fixed) {
            let message = format!(
                "Timeseries 'bucketMaxSpanSeconds' is not configurable to a value other than the default of {fixed} for \
                 the provided granularity"
            );
            return Err(Error::new(Code(5510500), message));
        }
        Ok(Options { time_field, meta_field, granularity })
    }

    /// Checks the names of the fields.
    pub fn check(&self, namespace: &store::Namespace) -> Result<()> {
        let invalid = |message: String| Err(Error::new(Code::INVALID_OPTIONS, message));
        for (option, name) in [("timeField", Some(self.time_field)), ("metaField", self.meta_field)] {
            if name.is_some_and(|name| name.contains('.')) {
                return invalid(format!("{namespace}: '{option}' must be a top-level field and not contain a '.'"));
            }
        }
        match self.meta_field {
            Some("_id") => invalid("'metaField' cannot be \"_id\"".to_owned()),
            Some(name) if name == self.time_field => {
                invalid("'metaField' cannot be the same as 'timeField'".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns the options of the collection of buckets.
    pub fn of_buckets(&self, others: Others<'_>) -> DocBuf {
        let Others { expire_after_seconds, collation, storage_engine } = others;
        DocBuf::build(|writer| {
            if let Some(engine) = storage_engine.filter(|engine| !engine.is_empty()) {
                writer.append("storageEngine", engine);
            }
            writer.document("validator").append("$jsonSchema", &self.schema());
            if let Some(collation) = collation {
                writer.append("collation", collation);
            }
            writer.append(CLUSTERED_INDEX, true);
            if let Some(seconds) = expire_after_seconds {
                writer.append("expireAfterSeconds", seconds);
            }
            self.write(&mut writer.document(OPTION));
        })
    }

    fn write(&self, writer: &mut DocWriter<'_>) {
        writer.append("timeField", self.time_field);
        if let Some(name) = self.meta_field {
            writer.append("metaField", name);
        }
        write_granularity(self.granularity, writer);
    }

    /// Returns the stages of the view that unpacks buckets.
    pub fn stages(&self) -> DocBuf {
        views::stages(|array| {
            let mut stage = array.document();
            let mut spec = stage.document(UNPACK_BUCKET);
            spec.append("timeField", self.time_field);
            if let Some(name) = self.meta_field {
                spec.append("metaField", name);
            }
            spec.append("bucketMaxSpanSeconds", self.granularity.span_seconds());
        })
    }

    /// Returns the schema of a bucket.
    fn schema(&self) -> DocBuf {
        let bound = || {
            let mut required = Vec::new();
            document::ArrayWriter::begin(&mut required).push(self.time_field);
            let required = DocBuf::from_vec(required).unwrap_or_default();
            let date = doc! { "bsonType": "date" };
            let mut times = DocBuf::new();
            times.append(self.time_field, &date);
            let mut bound = doc! { "bsonType": "object" };
            bound.append("required", Value::Array(required.as_doc()));
            bound.append("properties", &times);
            bound
        };
        let names = |names: &[&str]| views::stages(|array| names.iter().for_each(|name| array.push(*name)));
        let typed = |name: &str| doc! { "bsonType": name };
        let mut parts = doc! { "version": &typed("number"), "min": &bound(), "max": &bound() };
        parts.append("closed", &typed("bool"));
        let mut control = typed("object");
        control.append("required", Value::Array(names(&["version", "min", "max"]).as_doc()));
        control.append("properties", &parts);
        let mut properties = doc! { "_id": &typed("objectId"), "control": &control, "data": &typed("object") };
        properties.append("meta", &DocBuf::new());
        let mut schema = typed("object");
        schema.append("required", Value::Array(names(&["_id", "control", "data"]).as_doc()));
        schema.append("properties", &properties);
        schema.append("additionalProperties", false);
        schema
    }
}

fn write_granularity(granularity: Granularity, writer: &mut DocWriter<'_>) {
    writer.append("granularity", granularity.name());
    writer.append("bucketMaxSpanSeconds", granularity.span_seconds());
}

/// Returns the options of a collection of buckets with another granularity.
pub fn with_granularity(options: Doc<'_>, granularity: Granularity) -> DocBuf {
    DocBuf::build(|writer| {
        for option in options.elements() {
            match option.value() {
                Value::Document(series) if option.key() == OPTION => {
                    let mut writer = writer.document(OPTION);
                    let is_unchanged =
                        |field: &Element<'_>| !matches!(field.key(), "granularity" | "bucketMaxSpanSeconds");
                    series.elements().filter(is_unchanged).for_each(|field| writer.append_element(field));
                    write_granularity(granularity, &mut writer);
                }
                _ => writer.append_element(option),
            }
        }
    })
}

/// Returns the options of a time-series collection as `listCollections` shows them, from those of
/// its buckets.
pub fn shown(options: Doc<'_>) -> DocBuf {
    let own =
        |option: &Element<'_>| matches!(option.key(), "storageEngine" | "expireAfterSeconds" | "collation" | OPTION);
    DocBuf::build(|writer| options.elements().filter(own).for_each(|option| writer.append_element(option)))
}
