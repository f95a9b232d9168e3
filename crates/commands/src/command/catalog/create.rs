//! `create`: collections with their options, and views.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/create/>

use crate::arguments;
use crate::arguments::options;
use crate::arguments::{is_absent, unknown_field};
use crate::call::{Call, Disposition};
use crate::collection_options::{clustered, validation};
use crate::command::sessions::transactions;
use crate::index_definition::specification;
use crate::time_series::options::Options as TimeSeries;
use crate::views::definitions;
use crate::{time_series, views};
use document::{Collation, Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use store::Namespace;
use store::rules::CLUSTERED_INDEX;

const WITHIN: &str = "create";

/// The options about images in change streams. They are stored and listed without effect: change
/// streams exist in replica sets only.
pub const RECORD_PRE_IMAGES: &str = "recordPreImages";
pub const IMAGES: &str = "changeStreamPreAndPostImages";

const MAY_BE_NULL: [&str; 20] = [
    "recordPreImages",
    "capped",
    "autoIndexId",
    "temp",
    "size",
    "max",
    "viewOn",
    "validator",
    "validationLevel",
    "validationAction",
    "collation",
    "timeseries",
    "changeStreamPreAndPostImages",
    "encryptedFields",
    "expireAfterSeconds",
    "storageEngine",
    "indexOptionDefaults",
    "idIndex",
    "flags",
    "comment",
];

const NOT_FOR_TIME_SERIES: [&str; 11] = [
    "capped",
    "autoIndexId",
    "idIndex",
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "clusteredIndex",
    "changeStreamPreAndPostImages",
    "recordPreImages",
    "flags",
];

/// The largest size of a capped collection in bytes, and the exclusive upper limit of its number of
/// documents.
const CAPPED_BYTES_MAX: i64 = 1 << 50;
const CAPPED_DOCUMENTS_END: i64 = 1 << 31;

/// Sizes of capped collections are rounded up to a multiple of this.
const CAPPED_UNIT_BYTES: i64 = 256;

/// The fields of a `create`.
#[derive(Default)]
struct Arguments<'a> {
    capped: bool,
    bytes: Option<i64>,
    documents: Option<i64>,
    view_on: Option<&'a str>,
    pipeline: Option<Doc<'a>>,
    validator: Option<Doc<'a>>,
    validation_level: Option<&'a str>,
    validation_action: Option<&'a str>,
    given_collation: Option<Doc<'a>>,
    /// The collation with its defaults; `None` for the simple one.
    collation: Option<DocBuf>,
    id_index: Option<Doc<'a>>,
    auto_index_id: Option<bool>,
    storage_engine: Option<Doc<'a>>,
    index_option_defaults: Option<Doc<'a>>,
    temporary: Option<bool>,
    clustered: Option<clustered::ClusteredOption>,
    expire_after_seconds: Option<i64>,
    encrypted: bool,
    record_pre_images: bool,
    time_series: Option<TimeSeries<'a>>,
    /// The first option that a time-series collection does not have.
    not_for_time_series: Option<&'a str>,
    pre_images: bool,
}

/// Parses the fields of a `create`.
pub fn parse(call: &Call<'_>) -> Result<()> {
    Arguments::read_all(call)?;
    call.check_namespace()
}

pub async fn create(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let mut arguments = Arguments::read_all(call)?;
    let namespace = arguments::namespace(call.database(), call.first())?;
    if namespace.collection.starts_with('.') {
        arguments::check_to_write(&namespace)?;
    }
    arguments.check(&namespace)?;
    if !matches!(&*namespace.collection, store::views::COLLECTION | "system.profile") {
        arguments::check_to_write(&namespace)?;
    }
    if arguments.time_series.is_some() {
        transactions::refuse_to_create(call, "time-series collection")?;
    }
    if arguments.view_on.is_some() {
        transactions::refuse_to_create(call, "view")?;
    }
    let is_plain = arguments.view_on.is_none() && arguments.time_series.is_none();
    // A store may let a transaction create a collection that an earlier attempt has left.
    let is_checked_here = is_plain && !call.envelope.in_transaction;
    if is_checked_here && call.worker.store.collection(&namespace).await?.is_some() {
        return Err(already_exists(call, &namespace).await?);
    }
    if let Err(error) = arguments.check_further(call, &namespace) {
        let is_taken = arguments.view_on.is_none()
            && (call.worker.store.collection(&namespace).await?.is_some()
                || views::definition(call, &namespace).await?.is_some());
        return Err(if is_taken { already_exists(call, &namespace).await? } else { error });
    }
    if let Some(view_on) = arguments.view_on {
        let stages = arguments.pipeline.unwrap_or(Doc::EMPTY);
        definitions::create(call, &namespace, view_on, stages, arguments.collation.as_ref().map(DocBuf::as_doc))
            .await?;
        note_auto_index_id(&arguments, reply);
        return Ok(Disposition::Reply);
    }
    if let Some(options) = &arguments.time_series {
        let others = time_series::options::Others {
            expire_after_seconds: arguments.expire_after_seconds,
            collation: arguments.collation.as_ref().map(DocBuf::as_doc),
            storage_engine: arguments.storage_engine,
        };
        time_series::create(call, &namespace, options, others).await?;
        return Ok(Disposition::Reply);
    }
    let created = call.worker.store.create_collection(&namespace, arguments.options().as_doc()).await;
    let is_taken = |error: &Error| matches!(error.code(), Code::COMMAND_NOT_SUPPORTED_ON_VIEW | Code::NAMESPACE_EXISTS);
    if created.as_ref().is_err_and(is_taken) {
        return Err(already_exists(call, &namespace).await?);
    }
    created?;
    note_auto_index_id(&arguments, reply);
    Ok(Disposition::Reply)
}

fn encrypted_view() -> Error {
    Error::new(Code(6346401), "Encrypted fields cannot be used with views or timeseries collections")
}

/// Returns error 48, which states whether the name belongs to a collection or a view.
async fn already_exists(call: &Call<'_>, namespace: &Namespace) -> Result<Error> {
    let message = if time_series::find(call, namespace).await?.is_some() {
        format!("A timeseries collection already exists. NS: {namespace}")
    } else if views::definition(call, namespace).await?.is_some() {
        format!("A view already exists. NS: {namespace}")
    } else {
        format!("Collection {namespace} already exists.")
    };
    Ok(Error::new(Code::NAMESPACE_EXISTS, message))
}

fn note_auto_index_id(arguments: &Arguments<'_>, reply: &mut DocWriter<'_>) {
    if arguments.auto_index_id.is_some() {
        reply.append("note", "The autoIndexId option is deprecated and will be removed in a future release");
    }
}

impl<'a> Arguments<'a> {
    fn read_all(call: &Call<'a>) -> Result<Self> {
        let mut arguments = Arguments::default();
        call.fields().try_for_each(|field| arguments.read(field))?;
        Ok(arguments)
    }

    /// Reads one option. Options that would change the collection's behavior, and are not
    /// implemented, are refused.
    fn read(&mut self, field: Element<'a>) -> Result<()> {
        if !is_absent(field) && NOT_FOR_TIME_SERIES.contains(&field.key()) {
            self.not_for_time_series.get_or_insert(field.key());
        }
        match field.key() {
            _ if arguments::is_left_out(field, &MAY_BE_NULL) => {}
            "capped" => self.capped = arguments::boolean_or_number(WITHIN, field)?,
            "autoIndexId" => self.auto_index_id = Some(arguments::boolean_or_number(WITHIN, field)?),
            "temp" => self.temporary = Some(arguments::boolean_or_number(WITHIN, field)?),
            "size" => self.bytes = Some(capped_bytes(WITHIN, field)?),
            "max" => self.documents = Some(capped_documents(WITHIN, field)?),
            "viewOn" => self.view_on = Some(view_on(field)?),
            "pipeline" => self.pipeline = Some(stages(WITHIN, field)?),
            "validator" => self.validator = Some(arguments::document(WITHIN, field)?),
            "validationLevel" => self.validation_level = Some(validation::level(WITHIN, field)?),
            "validationAction" => self.validation_action = Some(validation::action(WITHIN, field)?),
            "collation" => self.given_collation = Some(collation(field)?),
            "timeseries" => self.time_series = Some(TimeSeries::read(field)?),
            "clusteredIndex" => self.clustered = Some(clustered::read(field)?),
            "changeStreamPreAndPostImages" => self.pre_images = pre_and_post_images("create", field)?,
            // An option of an earlier version, without effect.
            "recordPreImages" => self.record_pre_images = arguments::boolean_or_number(WITHIN, field)?,
            "encryptedFields" => self.encrypted = encrypted_fields(field)?,
            "expireAfterSeconds" => self.expire_after_seconds = Some(arguments::integer(WITHIN, field)?),
            "storageEngine" => self.storage_engine = Some(arguments::document(WITHIN, field)?),
            "indexOptionDefaults" => self.index_option_defaults = Some(index_option_defaults(field)?),
            "idIndex" => self.id_index = Some(arguments::document(WITHIN, field)?),
            "flags" => drop(arguments::integer(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
        Ok(())
    }

    /// Checks the combination of options.
    fn check(&self, namespace: &Namespace) -> Result<()> {
        let invalid = |message: String| Err(Error::new(Code::INVALID_OPTIONS, message));
        if let Some(id_index) = self.id_index.filter(|_| self.view_on.is_none()) {
            specification::check_names_and_types(id_index)?;
            if self.auto_index_id.is_some() {
                let id_index = options::display(id_index);
                return invalid(format!("'idIndex' is not allowed with 'autoIndexId': {id_index}"));
            }
        }
        self.check_clustered()?;
        if let Some(series) = &self.time_series {
            if let Some(option) = self.not_for_time_series {
                return invalid(format!("{namespace}: 'timeseries' is not allowed with '{option}'"));
            }
            if self.encrypted {
                return Err(encrypted_view());
            }
            series.check(namespace)?;
            self.expire_after_seconds.map_or(Ok(()), clustered::check_seconds)?;
        }
        if self.capped && self.bytes.is_none() {
            return invalid("the 'size' field is required when 'capped' is true".into());
        }
        if !self.capped && (self.bytes.is_some() || self.documents.is_some()) {
            return invalid(
                "the 'capped' field needs to be true when either the 'size' or 'max' fields are present".into(),
            );
        }
        if self.temporary.is_some() {
            return invalid("the 'temp' field is an invalid option".into());
        }
        if self.pipeline.is_some() && self.view_on.is_none() {
            return invalid("'pipeline' requires 'viewOn' to also be specified".into());
        }
        if self.encrypted {
            return Err(match self.view_on {
                Some(_) => encrypted_view(),
                None => Error::new(Code(6346402), "Encrypted collections are not supported on standalone"),
            });
        }
        if self.clustered.is_none() && self.time_series.is_none() && self.expire_after_seconds.is_some() {
            return invalid(
                "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is \
                 specified"
                    .into(),
            );
        }
        check_both_images(self.pre_images, self.record_pre_images)?;
        if let (Some(id_index), Some(_)) = (self.id_index, self.view_on) {
            return invalid(format!("'idIndex' is not allowed with 'viewOn': {}", options::display(id_index)));
        }
        self.id_index.map_or(Ok(()), |id_index| self.check_id_index(id_index))
    }

    /// Checks the index on `_id`, which has the collation of the collection.
    fn check_id_index(&self, spec: Doc<'_>) -> Result<()> {
        specification::check_id_index(spec)?;
        let Some(collation) = spec.get("collation").and_then(Value::as_document) else { return Ok(()) };
        let of_collection = match self.given_collation {
            Some(given) => Collation::parse(given, WITHIN)?,
            None => Collation::SIMPLE,
        };
        match Collation::parse(collation, "")? == of_collection {
            true => Ok(()),
            false => Err(Error::bad_value("'idIndex' must have the same collation as the collection.")),
        }
    }

    fn check_clustered(&self) -> Result<()> {
        if self.clustered.is_none() {
            return Ok(());
        }
        let refuse = |code: i32, message: &str| Err(Error::new(Code(code), message));
        if self.capped {
            return refuse(
                6127800,
                "Clustered capped collection only available with 'enableTestCommands' server parameter",
            );
        }
        for (code, option, given) in [(6049200, "size", self.bytes), (6049204, "max", self.documents)] {
            if given.is_some() {
                let message = format!(
                    "'{option}' field for capped collections is not allowed on clustered collections. Did you mean \
                     'capped: true' with 'expireAfterSeconds'?"
                );
                return refuse(code, &message);
            }
        }
        Ok(())
    }

    /// Parses the collation. Fails for errors that MongoDB reports while it creates the collection.
    fn check_further(&mut self, call: &Call<'_>, namespace: &Namespace) -> Result<()> {
        self.check_kinds()?;
        if let Some(given) = self.given_collation {
            self.collation = Collation::parse(given, WITHIN)?.specification().cloned();
        }
        self.view_on.map_or(Ok(()), definitions::check_base)?;
        if self.pre_images && self.view_on.is_some() {
            let message = "option not supported on a view: changeStreamPreAndPostImages";
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
        if let Some(validator) = self.validator {
            validation::check_condition(call, validator)?;
            validation::check_validator(call, namespace, validator)?;
        }
        if self.auto_index_id == Some(false) && self.view_on.is_none() {
            let message =
                format!("autoIndexId:false is not allowed for collection {namespace} because it can be replicated");
            return Err(Error::new(Code(50001), message));
        }
        if self.view_on.is_none() {
            check_images(namespace, self.pre_images, self.record_pre_images)?;
        }
        Ok(())
    }

    fn check_kinds(&self) -> Result<()> {
        let refuse = |code: i32, message: &str| Err(Error::new(Code(code), message));
        if self.view_on.is_some()
            && matches!(&self.clustered, Some(option) if !matches!(option, clustered::ClusteredOption::Switch(false)))
        {
            return refuse(6026500, "The 'clusteredIndex' option is not supported with views");
        }
        if let Some(clustered::ClusteredOption::Index(_)) = self.clustered {
            if self.auto_index_id == Some(false) {
                return refuse(6026501, "The 'clusteredIndex' option does not support {autoIndexId: false}");
            }
            if self.id_index.is_some() {
                return refuse(72, "The 'clusteredIndex' option is not supported with the 'idIndex' option");
            }
        }
        match &self.clustered {
            Some(clustered::ClusteredOption::Switch(true)) => {
                return refuse(
                    5979703,
                    "The 'clusteredIndex' legacy format {clusteredIndex: <bool>} is only supported for specific internal \
                     collections and vice versa",
                );
            }
            Some(clustered::ClusteredOption::Index(index)) => {
                clustered::check(index.as_doc())?;
                self.expire_after_seconds.map_or(Ok(()), clustered::check_seconds)?;
            }
            _ => {}
        }
        self.storage_engine.map_or(Ok(()), check_engines)
    }

    /// Returns the options as they are stored, and as `listCollections` shows them.
    fn options(&self) -> DocBuf {
        DocBuf::build(|writer| {
            if let Some(bytes) = self.bytes.filter(|_| self.capped) {
                write_cap(bytes, self.documents, writer);
            }
            if let Some(auto_index_id) = self.auto_index_id {
                writer.append("autoIndexId", auto_index_id);
            }
            if self.record_pre_images {
                writer.append(RECORD_PRE_IMAGES, true);
            }
            if self.pre_images {
                writer.append(IMAGES, &document::doc! { "enabled": true });
            }
            let documents = [
                ("storageEngine", self.storage_engine),
                ("indexOptionDefaults", self.index_option_defaults),
                ("validator", self.validator),
            ];
            for (key, document) in documents {
                if let Some(document) = document.filter(|document| !document.is_empty()) {
                    writer.append(key, document);
                }
            }
            let words = [("validationLevel", self.validation_level), ("validationAction", self.validation_action)];
            for (key, word) in words {
                if let Some(word) = word {
                    writer.append(key, word);
                }
            }
            if let Some(collation) = &self.collation {
                writer.append("collation", collation);
            }
            if let Some(clustered::ClusteredOption::Index(index)) = &self.clustered {
                writer.append(CLUSTERED_INDEX, index);
            }
            if let Some(seconds) = self.expire_after_seconds {
                writer.append("expireAfterSeconds", seconds);
            }
        })
    }
}

/// Writes the options of a capped collection as they are stored: the size rounded up, and no limit
/// unless it is positive.
pub fn write_cap(bytes: i64, documents: Option<i64>, writer: &mut DocWriter<'_>) {
    writer.append("capped", true);
    store::explain::append_count("size", rounded(bytes), writer);
    if let Some(documents) = documents {
        let documents = i32::try_from(documents).ok().filter(|documents| *documents > 0);
        writer.append("max", documents.unwrap_or(i32::MAX));
    }
}

fn rounded(bytes: i64) -> u64 {
    (bytes.unsigned_abs()).next_multiple_of(CAPPED_UNIT_BYTES.unsigned_abs())
}

/// Reads the size of a capped collection.
pub fn capped_bytes(within: &str, field: Element<'_>) -> Result<i64> {
    let bytes = arguments::integer(within, field)?;
    match bytes {
        ..1 => Err(out_of_range(field.key(), ">= 1", bytes)),
        1..=CAPPED_BYTES_MAX => Ok(bytes),
        _ => Err(out_of_range(field.key(), &format!("<= {CAPPED_BYTES_MAX}"), bytes)),
    }
}

/// Reads the number of documents of a capped collection.
pub fn capped_documents(within: &str, field: Element<'_>) -> Result<i64> {
    let documents = arguments::integer(within, field)?;
    match documents < CAPPED_DOCUMENTS_END {
        true => Ok(documents),
        false => Err(out_of_range(field.key(), &format!("< {CAPPED_DOCUMENTS_END}"), documents)),
    }
}

fn out_of_range(field: &str, range: &str, value: i64) -> Error {
    Error::new(Code(51024), format!("BSON field '{field}' value must be {range}, actual value '{value}'"))
}

/// Reads a view's pipeline: an array of documents.
pub fn stages<'a>(within: &str, field: Element<'a>) -> Result<Doc<'a>> {
    let stages = arguments::array(within, field)?;
    let within = format!("{within}.pipeline");
    stages.elements().try_for_each(|stage| arguments::document(&within, stage).map(drop))?;
    Ok(stages)
}

/// Reads a collation and checks the types of its fields; their values are checked later.
fn collation<'a>(field: Element<'a>) -> Result<Doc<'a>> {
    let given = arguments::document(WITHIN, field)?;
    match Collation::parse(given, WITHIN) {
        Err(error) if matches!(error.code(), Code::TYPE_MISMATCH | Code(40414 | 40415)) => Err(error),
        _ => Ok(given),
    }
}

/// Checks that these are options of an existing storage engine.
pub fn check_engines(engines: Doc<'_>) -> Result<()> {
    for engine in engines.elements() {
        if engine.value().as_document().is_none() {
            let message = format!("'storageEngine.{}' has to be an embedded document.", engine.key());
            return Err(Error::bad_value(message));
        }
        if engine.key() != "wiredTiger" {
            let message = format!("{} is not a registered storage engine for this server", engine.key());
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
    }
    Ok(())
}

fn index_option_defaults<'a>(field: Element<'a>) -> Result<Doc<'a>> {
    let defaults = arguments::document(WITHIN, field)?;
    match defaults.elements().find(|option| option.key() != "storageEngine") {
        Some(option) => Err(unknown_field("create.indexOptionDefaults", option.key())),
        None => Ok(defaults),
    }
}

/// Fails with 72 if both kinds of change images are on.
pub fn check_both_images(images: bool, record: bool) -> Result<()> {
    let message = "'recordPreImages' and 'changeStreamPreAndPostImages.enabled' can not be set to true simultaneously";
    if images && record { Err(Error::new(Code::INVALID_OPTIONS, message)) } else { Ok(()) }
}

/// Fails with 72 if change images are requested in a database that has none.
pub fn check_images(namespace: &Namespace, images: bool, record: bool) -> Result<()> {
    let database = &*namespace.database;
    let option = match database {
        "admin" | "local" | "config" if images => IMAGES,
        "admin" | "local" if record => RECORD_PRE_IMAGES,
        _ => return Ok(()),
    };
    let message = format!("{option} collection option is not supported on the {database} database");
    Err(Error::new(Code::INVALID_OPTIONS, message))
}

/// Reads `changeStreamPreAndPostImages`; returns whether it is on.
pub fn pre_and_post_images(command: &str, field: Element<'_>) -> Result<bool> {
    let within = format!("{command}.changeStreamPreAndPostImages");
    let mut enabled = None;
    for field in arguments::document(command, field)?.elements() {
        match field.key() {
            "enabled" => enabled = Some(arguments::boolean(&within, field)?),
            other => return Err(unknown_field(&within, other)),
        }
    }
    enabled.ok_or_else(|| arguments::missing_field(&within, "enabled"))
}

/// Reads `encryptedFields`, which is always refused, but only if it is well-formed.
fn encrypted_fields(field: Element<'_>) -> Result<bool> {
    const WITHIN: &str = "create.encryptedFields";
    let mut fields = None;
    for field in arguments::document("create", field)?.elements() {
        match field.key() {
            "escCollection" | "eccCollection" | "ecocCollection" => drop(arguments::string(WITHIN, field)?),
            "fields" => fields = Some(arguments::array(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    fields.map(|_| true).ok_or_else(|| arguments::missing_field(WITHIN, "fields"))
}

fn view_on<'a>(field: Element<'a>) -> Result<&'a str> {
    let name = arguments::string(WITHIN, field)?;
    if name.is_empty() {
        return Err(Error::bad_value("'viewOn' cannot be empty"));
    }
    match name.contains('\0') {
        true => Err(Error::new(Code::INVALID_NAMESPACE, "namespaces cannot have embedded null characters")),
        false => Ok(name),
    }
}
