//! `count`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/count/>

use crate::arguments::count::Arguments;
use crate::arguments::options;
use crate::call::{Call, Disposition};
use crate::pipeline::config_lists;
use crate::pipeline::over_views;
use crate::read::index_filters;
use crate::read::table_scan;
use crate::read::{Visit, for_each};
use crate::views;
use cache::dependencies::Aspect;
use cache::{Dependencies, NotCached};
use document::{Doc, DocWriter};
use error::{Code, Result};
use query::Predicate;
use store::Query;
use store::explain::append_count;

pub async fn count(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let namespace = options::strict_namespace(call.database(), call.first())?;
    let arguments = Arguments::read(call.fields())?;
    let collation = options::effective_collation(call, &namespace, arguments.collation).await?;
    let context = query::Context { has_clock: false, ..options::context(call, None, collation)? };
    let predicate = match Predicate::parse_query(arguments.query.unwrap_or(Doc::EMPTY), &context) {
        // Errors about text search and JavaScript come from the pipeline of the view, if it is one.
        Err(error)
            if matches!(error.code(), Code::INDEX_NOT_FOUND | Code(6108304))
                && views::definition(call, &namespace).await?.is_some() =>
        {
            call.by_view = true;
            append_count("n", over_views::count(call, &namespace, &arguments).await?, reply);
            return Ok(Disposition::Reply);
        }
        parsed => parsed?,
    };
    call.worker.statistics().operations_command.add(1);
    if config_lists::is_list(call, &namespace) {
        append_count("n", config_lists::count(call, &namespace, &arguments).await?, reply);
        return Ok(Disposition::Reply);
    }
    call.dependencies.depend_on(|| Dependencies::matching(namespace.clone(), predicate.clone(), Aspect::Count));

    let store = &*call.worker.store;
    let counted_max = arguments.counted_max();
    let filter = match predicate.matches_everything() {
        // No index is used to count all documents.
        true => None,
        false => index_filters::find(call, &namespace, Some(&predicate), None, || None, arguments.collation).await?,
    };
    let hint = index_filters::hint(&filter, arguments.hint);
    let query = Query { predicate: &predicate, sort: None, limit: counted_max, hint, fields: None };
    let plan = store.plan(&namespace, query).await?;
    table_scan::check(&namespace, &predicate, &*plan)?;
    if call.bypasses_row_cache() {
        plan.bypass_caches();
    }
    if plan.facts().view {
        call.dependencies.refuse(NotCached::NotACollection);
        call.by_view = true;
        append_count("n", over_views::count(call, &namespace, &arguments).await?, reply);
        return Ok(Disposition::Reply);
    }
    let counted = match call.operation.run_interruptible(store.count(&*plan, counted_max)).await? {
        Some(counted) => {
            call.operation.stats.record_count(&plan);
            counted
        }
        None => {
            let mut counted = 0_u64;
            for_each(store, &plan, &predicate, false, call.operation, |_| {
                counted += 1;
                Ok(if Some(counted) == counted_max { Visit::Stop } else { Visit::Continue })
            })
            .await?;
            counted
        }
    };
    let n = counted_max.map_or(counted, |counted_max| counted.min(counted_max)).saturating_sub(arguments.skip);
    append_count("n", n, reply);
    Ok(Disposition::Reply)
}
