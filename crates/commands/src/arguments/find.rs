//! The arguments of `find`.

use crate::arguments::{self, non_negative, options, plain_boolean, unknown_field};
use crate::call::Call;
use crate::envelope::collection_uuid;
use crate::read::index_bounds;
use crate::read::spec::ReadSpec;
use document::{Collation, Doc, Element, Kind, Value};
use error::{Code, Error, Result};
use query::{Meta, Needs, Predicate, Projection, ReadFields, Sort};

/// What MongoDB's messages call the fields of `find`.
const WITHIN: &str = "FindCommandRequest";

/// The fields of a `find`, not yet parsed further.
#[derive(Default)]
pub struct Arguments<'a> {
    pub filter: Option<Doc<'a>>,
    pub sort: Option<Doc<'a>>,
    pub projection: Option<Doc<'a>>,
    pub variables: Option<Doc<'a>>,
    pub hint: Option<Value<'a>>,
    pub skip: u64,
    pub limit: Option<u64>,
    pub batch_size: Option<u64>,
    pub single_batch: bool,
    pub no_cursor_timeout: bool,
    pub tailable: bool,
    pub await_data: bool,
    pub allow_disk_use: Option<bool>,
    pub min: Option<Doc<'a>>,
    pub max: Option<Doc<'a>>,
    return_key: bool,
    show_record_id: bool,
    pub collation: Option<Doc<'a>>,
    /// An option that pipelines do not have, so that a view cannot be read with it.
    pub not_in_aggregation: Option<&'static str>,
}

impl<'a> Arguments<'a> {
    pub fn read(fields: impl Iterator<Item = Element<'a>>) -> Result<Self> {
        let mut arguments = Arguments::default();
        for field in fields {
            match field.key_bytes() {
                b"filter" => arguments.filter = Some(specification(field)?),
                b"sort" => arguments.sort = Some(specification(field)?),
                b"projection" => arguments.projection = Some(specification(field)?),
                b"min" => {
                    arguments.min = Some(specification(field)?).filter(|min| !min.is_empty());
                    arguments.note(arguments.min.is_some(), "min");
                }
                b"max" => {
                    arguments.max = Some(specification(field)?).filter(|max| !max.is_empty());
                    arguments.note(arguments.max.is_some(), "max");
                }
                _ if arguments::is_left_out(field, &["limit", "skip", "batchSize", "let", "ntoreturn"]) => {}
                b"limit" => arguments.limit = Some(non_negative(WITHIN, field)?).filter(|limit| *limit > 0),
                b"skip" => arguments.skip = non_negative(WITHIN, field)?,
                b"batchSize" => arguments.batch_size = Some(non_negative(WITHIN, field)?),
                b"singleBatch" => arguments.single_batch = plain_boolean(field)?,
                b"hint" => arguments.hint = options::hint(field)?,
                b"let" => arguments.variables = Some(arguments::document(WITHIN, field)?),
                b"noCursorTimeout" => {
                    arguments.no_cursor_timeout = plain_boolean(field)?;
                    arguments.note(arguments.no_cursor_timeout, "noCursorTimeout");
                }
                b"readOnce" => arguments.note(plain_boolean(field)?, "readOnce"),
                b"allowPartialResults" => arguments.note(plain_boolean(field)?, "allowPartialResults"),
                b"tailable" => arguments.tailable = plain_boolean(field)?,
                b"awaitData" => arguments.await_data = plain_boolean(field)?,
                b"collation" => {
                    specification(field)?;
                    arguments.collation = options::collation(WITHIN, field)?;
                }
                b"allowDiskUse" => arguments.allow_disk_use = Some(plain_boolean(field)?),
                b"returnKey" => {
                    arguments.return_key = plain_boolean(field)?;
                    arguments.note(arguments.return_key, "returnKey");
                }
                b"showRecordId" => {
                    arguments.show_record_id = plain_boolean(field)?;
                    arguments.note(arguments.show_record_id, "showRecordId");
                }
                b"collectionUUID" => drop(collection_uuid::read(WITHIN, field)?),
                _ => check_known(field)?,
            }
        }
        Ok(arguments)
    }

    fn note(&mut self, given: bool, option: &'static str) {
        if given {
            self.not_in_aggregation.get_or_insert(option);
        }
    }

    /// Parses the arguments with the collation in effect.
    pub fn prepare(&self, call: &Call<'_>, collation: Collation) -> Result<ReadSpec<'a>> {
        if self.await_data && !self.tailable {
            return Err(Error::failed_to_parse("Cannot set 'awaitData' without also setting 'tailable'"));
        }
        if self.tailable {
            self.check_tailable()?;
        }
        let context = options::context(call, self.variables, collation)?;
        index_bounds::check_fields(self.min, self.max)?;
        let filter = self.filter.unwrap_or(Doc::EMPTY);
        let predicate = Predicate::parse_query(filter, &context)?;
        if predicate.near().is_some() && self.tailable {
            return Err(Error::bad_value("Tailable cursors and geo $near cannot be used together"));
        }
        // A filter cannot use metadata, which exists only after the match.
        context.metadata_requests.take();
        let sort = match self.sort.filter(|sort| !sort.is_empty()) {
            Some(sort) => Some(Sort::parse(sort, &context)?),
            None => None,
        };
        check_natural(sort.as_ref(), self.hint)?;
        let projection = match self.projection.filter(|projection| !projection.is_empty()) {
            Some(projection) => Some(Projection::parse(projection, filter, &context)?),
            None => None,
        };
        let needs = context.metadata_requests.take();
        needs.check(Needs::given_by(filter))?;
        if needs.contains(Meta::SortKey) && sort.is_none() {
            return Err(aggregate::no_sort_key());
        }
        let projection = match (self.return_key, self.show_record_id) {
            (true, _) => Some(projection.unwrap_or_default().into_index_key()),
            (false, true) => Some(projection.unwrap_or_default().with_record_id()),
            (false, false) => projection,
        };
        let needs = projection.as_ref().map_or(needs, |projection| needs.and(projection.needs()));
        // Bounds also read the fields of their index.
        let order = self.sort.unwrap_or(Doc::EMPTY);
        let is_bounded = self.min.is_some() || self.max.is_some();
        let fields = self.projection.filter(|_| !is_bounded && !self.return_key);
        let fields = fields.and_then(|projection| ReadFields::of_find(filter, order, projection));
        let compared = if is_bounded { None } else { ReadFields::of_filter_and_sort(filter, order) };
        Ok(ReadSpec {
            fields,
            compared,
            needs,
            predicate: Some(predicate),
            budget: sort.is_some().then(|| options::budget(call, self.allow_disk_use)),
            sort,
            skip: self.skip,
            limit: self.limit.or(self.matches_at_most_one(&context.collation).then_some(1)),
            projection,
            hint: self.hint,
            bypass_row_cache: call.bypasses_row_cache(),
            ..ReadSpec::default()
        })
    }

    fn check_tailable(&self) -> Result<()> {
        let mut sort = self.sort.unwrap_or(Doc::EMPTY).iter();
        let natural = match (sort.next(), sort.next()) {
            (None, _) => true,
            (Some(("$natural", direction)), None) => arguments::number_to_i64(direction) == Some(1),
            _ => false,
        };
        if !natural {
            let message = "cannot use tailable option with a sort other than {$natural: 1}";
            return Err(Error::bad_value(message));
        }
        if self.single_batch {
            return Err(Error::bad_value("cannot use tailable option with the 'singleBatch' option"));
        }
        Ok(())
    }

    /// Returns whether the filter is `{_id: <value>}`: at most one document matches, so the scan
    /// can stop at the first.
    fn matches_at_most_one(&self, collation: &Collation) -> bool {
        let mut elements = self.filter.unwrap_or(Doc::EMPTY).elements();
        let id = elements.next().filter(|element| element.key_bytes() == b"_id" && elements.next().is_none());
        id.is_some_and(|id| {
            !collation.concerns(id.kind)
                && !matches!(id.kind, Kind::Document | Kind::Array | Kind::Regex | Kind::Null | Kind::Undefined)
        }) && self.skip == 0
    }
}

/// Fails with 2 if a sort by `$natural` is combined with an index hint, or with a hint of the other
/// direction.
fn check_natural(sort: Option<&Sort>, hint: Option<Value<'_>>) -> Result<()> {
    let (Some(forward), Some(hint)) = (sort.and_then(Sort::natural), hint) else { return Ok(()) };
    let pattern = hint.as_document();
    match pattern.map(|pattern| pattern.get("$natural").and_then(arguments::number_to_i64)) {
        Some(_) if pattern.is_some_and(Doc::is_empty) => Ok(()),
        Some(Some(direction)) if (direction > 0) == forward => Ok(()),
        Some(Some(_)) => Err(Error::bad_value("$natural hint must be in the same direction as $natural sort order")),
        _ => Err(Error::bad_value("index hint not allowed with $natural sort order")),
    }
}

fn specification<'a>(field: Element<'a>) -> Result<Doc<'a>> {
    // The missing space is MongoDB's.
    let wrong_type = || Error::type_mismatch(format!("Expected field {}to be of type object", field.key()));
    field.value().as_document().ok_or_else(wrong_type)
}

/// Checks the fields that have no effect here: one server answers, and it reads from no replica.
fn check_known(field: Element<'_>) -> Result<()> {
    match field.key() {
        "oplogReplay" | "allowPartialResults" | "allowDiskUse" | "returnKey" | "showRecordId" | "readOnce" => {
            plain_boolean(field).map(drop)
        }
        "limit" | "skip" | "batchSize" | "singleBatch" | "hint" | "let" | "noCursorTimeout" | "tailable"
        | "awaitData" | "collation" | "min" | "max" => Ok(()),
        "options" => arguments::document(WITHIN, field).map(drop),
        "ntoreturn" => {
            let message = "the ntoreturn find command parameter is not supported when FCV >= 5.1";
            Err(Error::new(Code(5746102), message))
        }
        other => Err(unknown_field(WITHIN, other)),
    }
}
