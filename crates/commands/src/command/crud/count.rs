//! `count`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/count/>

use crate::arguments;
use crate::arguments::options;
use crate::arguments::{non_negative, unknown_field};
use crate::call::{Call, Disposition};
use crate::pipeline::shard_list;
use crate::read::index_filters;
use crate::read::table_scan;
use crate::read::{Visit, for_each};
use crate::views;
use cache::dependencies::Aspect;
use cache::{Dependencies, NotCached};
use document::{Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use query::Predicate;
use store::Query;
use store::explain::append_count;

const WITHIN: &str = "count";

#[derive(Default)]
pub struct Arguments<'a> {
    pub query: Option<Doc<'a>>,
    pub skip: u64,
    /// Zero stands for none, except of a view, where it is refused.
    pub limit: Option<u64>,
    pub hint: Option<Value<'a>>,
    pub collation: Option<Doc<'a>>,
}

impl<'a> Arguments<'a> {
    pub fn read(fields: impl Iterator<Item = Element<'a>>) -> Result<Self> {
        let mut arguments = Arguments::default();
        for field in fields {
            match field.key() {
                _ if arguments::is_left_out(field, &["query", "skip", "collation"]) => {}
                "query" => arguments.query = Some(arguments::document(WITHIN, field)?),
                "skip" => arguments.skip = non_negative(WITHIN, field)?,
                "limit" => arguments.limit = limit(field)?,
                "hint" => arguments.hint = options::hint(field)?,
                "collation" => arguments.collation = options::collation(WITHIN, field)?,
                // Which fields to return has no bearing on how many documents there are, and may be anything.
                "fields" => {}
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        Ok(arguments)
    }

    /// How many documents have to be met at the most.
    pub fn enough(&self) -> Option<u64> {
        self.limit.filter(|limit| *limit > 0).map(|limit| limit.saturating_add(self.skip))
    }
}

/// A negative limit stands for the same number, as in the days when it asked for a single batch.
fn limit(field: Element<'_>) -> Result<Option<u64>> {
    if !field.kind.is_number() {
        return Err(Error::bad_value("limit value is not a valid number"));
    }
    let found = || {
        let found = options::display(DocBuf::build(|writer| writer.append_element(field)).as_doc());
        found.trim_matches(['{', '}', ' ']).to_owned()
    };
    let number = match field.value() {
        Value::Double(double)
            if double.is_nan() || double.is_finite() && double.fract() != 0.0 && double.abs() < 9e18 =>
        {
            return Err(Error::failed_to_parse(format!("Expected an integer: {}", found())));
        }
        value => values::integer::as_i64_exact(value),
    };
    let number =
        number.ok_or_else(|| Error::failed_to_parse(format!("Cannot represent as a 64-bit integer: {}", found())))?;
    if number == i64::MIN {
        return Err(Error::bad_value("limit value for count cannot be min long"));
    }
    Ok(Some(number.unsigned_abs()))
}

pub async fn count(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let namespace = options::strict_namespace(call.database(), call.first())?;
    let arguments = Arguments::read(call.fields())?;
    let collation = options::settle_collation(call, &namespace, arguments.collation).await?;
    let context = query::Context { has_clock: false, ..options::context(call, None, collation)? };
    let predicate = match Predicate::parse_query(arguments.query.unwrap_or(Doc::EMPTY), &context) {
        // What a view's stages make of a search by words, or by JavaScript, is said by the pipeline.
        Err(error)
            if matches!(error.code(), Code::INDEX_NOT_FOUND | Code(6108304))
                && views::definition(call, &namespace).await?.is_some() =>
        {
            call.by_view = true;
            append_count("n", views::count(call, &namespace, &arguments).await?, reply);
            return Ok(Disposition::Reply);
        }
        parsed => parsed?,
    };
    call.worker.statistics().operations_command.add(1);
    if shard_list::is_list(call, &namespace) {
        append_count("n", shard_list::count(call, &namespace, &arguments).await?, reply);
        return Ok(Disposition::Reply);
    }
    call.dependencies.depend_on(|| Dependencies::matching(namespace.clone(), predicate.clone(), Aspect::Count));

    let store = &*call.worker.store;
    let enough = arguments.enough();
    let filter = match predicate.matches_everything() {
        // Nothing is looked up to count all that there is.
        true => None,
        false => index_filters::find(call, &namespace, Some(&predicate), None, || None, arguments.collation).await?,
    };
    let hint = index_filters::hint(&filter, arguments.hint);
    let query = Query { predicate: &predicate, sort: None, limit: enough, hint, fields: None };
    let plan = store.plan(&namespace, query).await?;
    table_scan::check(&namespace, &predicate, &*plan)?;
    if call.bypasses_row_cache() {
        plan.bypass_caches();
    }
    if plan.facts().view {
        call.dependencies.refuse(NotCached::NotACollection);
        call.by_view = true;
        append_count("n", views::count(call, &namespace, &arguments).await?, reply);
        return Ok(Disposition::Reply);
    }
    let counted = match call.operation.run_interruptible(store.count(&*plan, enough)).await? {
        Some(counted) => {
            call.operation.stats.record_count(&plan);
            counted
        }
        None => {
            let mut counted = 0_u64;
            for_each(store, &plan, &predicate, false, call.operation, |_| {
                counted += 1;
                Ok(if Some(counted) == enough { Visit::Stop } else { Visit::Continue })
            })
            .await?;
            counted
        }
    };
    let n = enough.map_or(counted, |enough| counted.min(enough)).saturating_sub(arguments.skip);
    append_count("n", n, reply);
    Ok(Disposition::Reply)
}
