//! `collMod`: changes options of a collection, a view or an index.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/collMod/>

use crate::arguments;
use crate::arguments::options;
use crate::arguments::unknown_field;
use crate::call::{Call, Disposition};
use crate::collection_options::{clustered, validation};
use crate::command::catalog::create;
use crate::command::catalog::create::{IMAGES, RECORD_PRE_IMAGES, write_cap};
use crate::envelope::collection_uuid;
use crate::index_definition::modification::Modification;
use crate::time_series::options::Granularity;
use crate::views::definitions;
use crate::{time_series, views};
use document::{Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use store::rules::CLUSTERED_INDEX;
use store::{CollectionInfo, Namespace};

const WITHIN: &str = "collMod";

const MAY_BE_NULL: [&str; 12] = [
    "recordPreImages",
    "isTimeseriesNamespace",
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "index",
    "cappedSize",
    "cappedMax",
    "dryRun",
    "timeseries",
    "changeStreamPreAndPostImages",
];

#[derive(Default)]
struct Arguments<'a> {
    validator: Option<Doc<'a>>,
    validation_level: Option<&'a str>,
    validation_action: Option<&'a str>,
    view_on: Option<&'a str>,
    pipeline: Option<Doc<'a>>,
    index: Option<Modification<'a>>,
    capped_bytes: Option<i64>,
    capped_documents: Option<i64>,
    dry_run: bool,
    /// A number, or a string.
    expire_after_seconds: Option<Value<'a>>,
    images: Option<bool>,
    record_pre_images: Option<bool>,
    has_time_series: bool,
    granularity: Option<Granularity>,
    /// The first option that a time-series collection does not have.
    not_for_time_series: Option<&'a str>,
    /// The last option that a view does not have.
    not_for_views: Option<&'a str>,
}

impl<'a> Arguments<'a> {
    fn read_all(call: &Call<'a>) -> Result<Self> {
        let mut arguments = Arguments::default();
        call.all_fields().try_for_each(|field| arguments.read(field))?;
        Ok(arguments)
    }

    fn read(&mut self, field: Element<'a>) -> Result<()> {
        let key = field.key();
        match key {
            _ if arguments::is_left_out(field, &MAY_BE_NULL) => return Ok(()),
            "validator" => self.validator = Some(arguments::document(WITHIN, field)?),
            "validationLevel" => self.validation_level = Some(validation::level(WITHIN, field)?),
            "validationAction" => self.validation_action = Some(validation::action(WITHIN, field)?),
            "viewOn" => self.view_on = Some(arguments::string(WITHIN, field)?),
            "pipeline" => self.pipeline = Some(create::stages(WITHIN, field)?),
            "index" => self.index = Some(Modification::read(arguments::document(WITHIN, field)?)?),
            "cappedSize" => self.capped_bytes = Some(create::capped_bytes(WITHIN, field)?),
            "cappedMax" => self.capped_documents = Some(create::capped_documents(WITHIN, field)?),
            "dryRun" => self.dry_run = arguments::boolean_or_number(WITHIN, field)?,
            "expireAfterSeconds" => self.expire_after_seconds = Some(seconds(field)?),
            "timeseries" => {
                self.has_time_series = true;
                self.granularity = granularity(field)?;
            }
            IMAGES => self.images = Some(create::pre_and_post_images(WITHIN, field)?),
            RECORD_PRE_IMAGES => self.record_pre_images = Some(arguments::boolean_or_number(WITHIN, field)?),
            "collectionUUID" => drop(collection_uuid::read(WITHIN, field)?),
            "isTimeseriesNamespace" => drop(arguments::boolean(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
        if matches!(key, "validator" | "validationLevel" | "validationAction" | IMAGES | RECORD_PRE_IMAGES) {
            self.not_for_time_series.get_or_insert(key);
        }
        if !matches!(key, "viewOn" | "pipeline") {
            self.not_for_views = Some(key);
        }
        Ok(())
    }
}

/// Parses the fields of a `collMod`.
pub fn parse(call: &Call<'_>) -> Result<()> {
    Arguments::read_all(call)?;
    call.check_namespace()
}

pub async fn coll_mod(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let arguments = Arguments::read_all(call)?;
    let namespace = arguments::namespace(call.database(), call.first())?;
    let info = call.worker.store.collection(&namespace).await?;
    let (images, record) = (arguments.images == Some(true), arguments.record_pre_images == Some(true));
    create::check_both_images(images, record)?;
    let Some(info) = info else {
        return match time_series::find(call, &namespace).await? {
            Some(series) => modify_series(call, &namespace, &series, &arguments, reply).await,
            None => modify_view(call, &namespace, &arguments).await,
        };
    };
    if arguments.has_time_series {
        let message = "option only supported on a time-series collection: isTimeseriesNamespace";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    if arguments.dry_run && arguments.index.as_ref().is_none_or(|index| !index.makes_unique()) {
        return Err(Error::new(Code::INVALID_OPTIONS, "dry run mode requires an valid index modification."));
    }
    if arguments.view_on == Some("") {
        return Err(Error::bad_value("'viewOn' cannot be empty"));
    }
    if arguments.pipeline.is_some() || arguments.view_on.is_some() {
        let option = if arguments.pipeline.is_some() { "pipeline" } else { "viewOn" };
        return Err(Error::new(Code::INVALID_OPTIONS, format!("option only supported on a view: {option}")));
    }
    let cluster = clustered::of(info.options.as_doc());
    let seconds = match arguments.expire_after_seconds {
        Some(_) if cluster.is_none() => {
            let message = "'expireAfterSeconds' option is only supported on collections clustered by _id";
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
        Some(value) => Some(seconds_to_live(value)?),
        None => None,
    };
    let options = changed_options(call, &namespace, &info, &arguments)?;
    let options = match seconds {
        Some(seconds) => Some(with_expiry(options.as_ref().unwrap_or(&info.options).as_doc(), seconds)),
        None => options,
    };
    create::check_images(&namespace, images, record)?;
    let options = match arguments.images.is_some() || arguments.record_pre_images.is_some() {
        true => Some(with_images(options.as_ref().unwrap_or(&info.options).as_doc(), &arguments)),
        false => options,
    };
    if let Some(index) = &arguments.index {
        if let Some(cluster) = cluster {
            index.check_for_cluster(clustered::name(cluster), &namespace)?;
        }
        index.apply(call, &namespace, arguments.dry_run, reply).await?;
    }
    if let Some(options) = options {
        call.worker.store.modify_collection(&namespace, in_order(options.as_doc()).as_doc()).await?;
    }
    Ok(Disposition::Reply)
}

async fn modify_view(call: &Call<'_>, namespace: &Namespace, arguments: &Arguments<'_>) -> Result<Disposition> {
    let Some(definition) = views::definition(call, namespace).await? else {
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, "ns does not exist"));
    };
    if let Some(option) = arguments.not_for_views {
        return Err(Error::new(Code::INVALID_OPTIONS, format!("option not supported on a view: {option}")));
    }
    let definition = definition.as_doc();
    let view_on = arguments.view_on.or(definition.get("viewOn").and_then(Value::as_str)).unwrap_or_default();
    definitions::check_base(view_on)?;
    let stages = arguments.pipeline.or(definition.get("pipeline").and_then(Value::as_array)).unwrap_or(Doc::EMPTY);
    definitions::modify(call, namespace, view_on, stages).await?;
    Ok(Disposition::Reply)
}

/// Reads `timeseries`: another granularity.
fn granularity(field: Element<'_>) -> Result<Option<Granularity>> {
    const WITHIN_SERIES: &str = "collMod.timeseries";
    let mut granularity = None;
    for field in arguments::document(WITHIN, field)?.elements() {
        match field.key() {
            "granularity" => granularity = Some(Granularity::read(WITHIN_SERIES, field)?),
            other => return Err(unknown_field(WITHIN_SERIES, other)),
        }
    }
    Ok(granularity)
}

/// Changes a time-series collection, that is, its buckets.
async fn modify_series(
    call: &Call<'_>,
    namespace: &Namespace,
    series: &time_series::Series,
    arguments: &Arguments<'_>,
    reply: &mut DocWriter<'_>,
) -> Result<Disposition> {
    let invalid = |message: String| Err(Error::new(Code::INVALID_OPTIONS, message));
    if let Some(option) = arguments.not_for_time_series {
        return invalid(format!("option not supported on a time-series collection: {option}"));
    }
    if arguments.pipeline.is_some() || arguments.view_on.is_some() {
        let option = if arguments.pipeline.is_some() { "pipeline" } else { "viewOn" };
        return invalid(format!("option only supported on a view: {option}"));
    }
    let Some(info) = series.options(call).await? else {
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, "ns does not exist"));
    };
    let mut options = info.options.clone();
    if let Some(value) = arguments.expire_after_seconds {
        options = with_expiry(options.as_doc(), seconds_to_live(value)?);
    }
    if let Some(granularity) = arguments.granularity {
        if granularity < Granularity::of(options.as_doc()) {
            return invalid(
                "Invalid transition for timeseries.granularity. Can only transition from 'seconds' to 'minutes' or \
                 'minutes' to 'hours'."
                    .to_owned(),
            );
        }
        options = time_series::options::with_granularity(options.as_doc(), granularity);
        time_series::widen(call, namespace, series, granularity).await?;
    }
    if let Some(index) = &arguments.index {
        index.apply_to_series(call, series, arguments.dry_run, reply).await?;
    }
    if options != info.options {
        call.worker.store.modify_collection(&series.buckets, in_order(options.as_doc()).as_doc()).await?;
    }
    Ok(Disposition::Reply)
}

/// Returns the options in the order in which MongoDB lists them.
fn in_order(options: Doc<'_>) -> DocBuf {
    const FIRST: &[&str] = &["capped", "size", "max", "autoIndexId", RECORD_PRE_IMAGES, IMAGES];
    const LAST: &[&str] = &["collation", CLUSTERED_INDEX, "expireAfterSeconds", time_series::OPTION];
    let of = |keys: &'static [&str]| keys.iter().filter_map(move |key| options.element(key));
    let others = options.elements().filter(|option| !FIRST.contains(&option.key()) && !LAST.contains(&option.key()));
    DocBuf::build(|writer| of(FIRST).chain(others).chain(of(LAST)).for_each(|option| writer.append_element(option)))
}

/// Returns the options with one of the two kinds of change images.
fn with_images(options: Doc<'_>, arguments: &Arguments<'_>) -> DocBuf {
    let (images, record) = (arguments.images, arguments.record_pre_images);
    let has = |key: &str| options.get(key).is_some();
    // Setting the newer option removes the older one.
    let record_now = record.unwrap_or_else(|| has(RECORD_PRE_IMAGES) && images.is_none());
    let images_now = images.unwrap_or_else(|| has(IMAGES) && record != Some(true));
    let mut changed = options::without(options, |key| matches!(key, IMAGES | RECORD_PRE_IMAGES));
    if record_now {
        changed.append(RECORD_PRE_IMAGES, true);
    }
    if images_now {
        changed.append(IMAGES, &document::doc! { "enabled": true });
    }
    changed
}

/// Reads `expireAfterSeconds`: a number, or `off`.
fn seconds<'a>(field: Element<'a>) -> Result<Value<'a>> {
    match field.value() {
        value @ (Value::String(_) | Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal128(_)) => {
            Ok(value)
        }
        _ => Err(arguments::wrong_types(WITHIN, field, "'[string, long']")),
    }
}

/// Returns the lifetime of documents in a clustered collection; `None` for `off`.
fn seconds_to_live(value: Value<'_>) -> Result<Option<i64>> {
    match value {
        Value::String("off") => Ok(None),
        Value::String(other) => Err(Error::new(
            Code::INVALID_OPTIONS,
            format!(
                "Invalid string value for the 'clusteredIndex::expireAfterSeconds' option. Got: '{other}'. Accepted value \
                 is 'off'"
            ),
        )),
        value => {
            let seconds = value.to_i64().unwrap_or_default();
            clustered::check_seconds(seconds).map(|()| Some(seconds))
        }
    }
}

fn with_expiry(options: Doc<'_>, seconds: Option<i64>) -> DocBuf {
    let mut changed = options::without(options, |key| key == "expireAfterSeconds");
    if let Some(seconds) = seconds {
        changed.append("expireAfterSeconds", seconds);
    }
    changed
}

/// Returns the changed options of the collection; `None` if none change.
fn changed_options(
    call: &Call<'_>,
    namespace: &Namespace,
    info: &CollectionInfo,
    arguments: &Arguments<'_>,
) -> Result<Option<DocBuf>> {
    let old = info.options.as_doc();
    let mut options = None;
    if arguments.capped_bytes.is_some() || arguments.capped_documents.is_some() {
        if !options::is_set(old, "capped") {
            return Err(Error::new(Code::INVALID_OPTIONS, "Collection must be capped."));
        }
        let number = |key: &str| old.get(key).and_then(arguments::number_to_i64);
        let bytes = arguments.capped_bytes.or(number("size")).unwrap_or(1);
        let documents = arguments.capped_documents.or(number("max"));
        options = Some(DocBuf::build(|writer| {
            write_cap(bytes, documents, writer);
            let others = old.elements().filter(|option| !matches!(option.key(), "capped" | "size" | "max"));
            others.for_each(|option| writer.append_element(option));
        }));
    }
    let validates =
        arguments.validator.is_some() || arguments.validation_level.is_some() || arguments.validation_action.is_some();
    if !validates {
        return Ok(options);
    }
    if let Some(validator) = arguments.validator {
        let during = "Parsing of collection validator failed :: caused by :: ";
        validation::check_validator(call, namespace, validator).map_err(|error| error.context(during))?;
    }
    let old = options.unwrap_or_else(|| old.to_owned());
    let old = old.as_doc();
    let validator = arguments.validator.or(old.get("validator").and_then(Value::as_document));
    let word = |given: Option<&str>, key: &str, default: &str| {
        given.or(old.get(key).and_then(Value::as_str)).unwrap_or(default).to_owned()
    };
    let changed = |key: &str| matches!(key, "validator" | "validationLevel" | "validationAction");
    let mut new = options::without(old, changed);
    if let Some(validator) = validator.filter(|validator| !validator.is_empty()) {
        new.append("validator", validator);
    }
    new.append("validationLevel", &*word(arguments.validation_level, "validationLevel", "strict"));
    new.append("validationAction", &*word(arguments.validation_action, "validationAction", "error"));
    Ok(Some(new))
}
