//! `$out` and `$merge`: write the results of a pipeline to a collection, in batches.

use super::{read_documents, target};
use crate::arguments::options;
use crate::call::Call;
use crate::read::{BLOCKING_BYTES_MAX, Reader};
use crate::views;
use crate::write::new_document::prepare_own;
use aggregate::joins::CrossCollectionStage;
use aggregate::joins::Merge;
use aggregate::joins::Out;
use aggregate::joins::WhenMatched;
use aggregate::joins::WhenNotMatched;
use document::{Doc, DocBuf, Kind, Value};
use error::{Code, Error, Result};
use query::{Context, Predicate};
use store::{Namespace, ReturnImage, StatementOutcome, Statements, UpdateStatement, WriteBatch};
use update::Update;

/// The number of documents written at a time.
const BATCH_DOCUMENTS: usize = 1000;

pub(super) async fn execute(call: &Call<'_>, foreign: &CrossCollectionStage, mut results: Reader) -> Result<()> {
    match foreign {
        CrossCollectionStage::Out(out) => replace_collection(call, out, &mut results).await,
        CrossCollectionStage::Merge(merge) => merge_all(call, merge, &mut results).await,
        CrossCollectionStage::Lookup(_) | CrossCollectionStage::GraphLookup(_) | CrossCollectionStage::UnionWith(_) => {
            Ok(())
        }
    }
}

/// Writes statements; fails with the first error. `ordered`: nothing is written after the first
/// error.
async fn write(
    call: &Call<'_>,
    namespace: &Namespace,
    statements: Statements,
    ordered: bool,
) -> Result<Vec<StatementOutcome>> {
    write_each(call, namespace, statements, ordered).await?.into_iter().collect()
}

/// Writes statements; returns the outcome of each.
async fn write_each(
    call: &Call<'_>,
    namespace: &Namespace,
    statements: Statements,
    ordered: bool,
) -> Result<Vec<Result<StatementOutcome>>> {
    let batch = WriteBatch {
        ordered,
        journal: call.envelope.durability.journal,
        bypass_validation: bypasses_validation(call),
        ..WriteBatch::new(namespace.clone(), statements)
    };
    Ok(crate::write::write(call, batch).await?.statements)
}

fn bypasses_validation(call: &Call<'_>) -> bool {
    call.fields().any(|field| field.key() == "bypassDocumentValidation" && field.value().is_truthy())
}

async fn insert(call: &Call<'_>, namespace: &Namespace, documents: &[DocBuf], ordered: bool) -> Result<()> {
    let prepared = documents.iter().map(|document| prepare_own(call, document)).collect::<Result<Vec<_>>>()?;
    write(call, namespace, Statements::Insert(prepared), ordered).await.map(drop)
}

/// `$out`: replaces the collection by a new one with the same indexes, once that is complete.
async fn replace_collection(call: &Call<'_>, out: &Out, results: &mut Reader) -> Result<()> {
    let store = &*call.worker.store;
    let namespace = target::of_out(call, out);
    views::refuse(call, &namespace).await?;
    let temporary = format!("tmp.agg_out.{}", call.worker.new_object_id(call.now_ms));
    let temporary = Namespace::new(&namespace.database, &temporary);
    let options = store.collection(&namespace).await?.map(|info| info.options).unwrap_or_default();
    if options::is_set(options.as_doc(), "capped") {
        let message = format!("namespace '{namespace}' is capped so it can't be used for $out");
        return Err(Error::new(Code(17152), message));
    }
    if store::sharding::is_sharded(store, &namespace).await? {
        let message = format!("namespace '{namespace}' is sharded so it can't be used for $out'");
        return Err(Error::new(Code(28769), message));
    }
    store.create_collection(&temporary, options.as_doc()).await?;
    let filled = async {
        let mut indexes = store.indexes(&namespace).await?.unwrap_or_default();
        indexes.retain(|index| index.name != "_id_");
        if !indexes.is_empty() {
            store.create_indexes(&temporary, indexes).await?;
        }
        while !results.is_done() {
            let documents = read_documents(call, results, BATCH_DOCUMENTS).await?;
            if !documents.is_empty() {
                insert(call, &temporary, &documents, true).await?;
            }
        }
        store.rename_collection(&temporary, &namespace, true).await
    };
    let filled = filled.await;
    if filled.is_err() {
        // The first error is the one to report; dropping a missing collection is harmless.
        drop(store.drop_collection(&temporary).await);
    }
    filled
}

async fn merge_all(call: &Call<'_>, merge: &Merge, results: &mut Reader) -> Result<()> {
    let namespace = target::of_merge(call, merge);
    views::refuse(call, &namespace).await?;
    let mut held = if reads(call, &namespace) { hold(call, results).await? } else { Vec::new() };
    loop {
        for chunk in held.chunks(BATCH_DOCUMENTS) {
            call.operation.check_interrupt()?;
            merge_into(call, merge, &namespace, chunk).await?;
        }
        if results.is_done() {
            return Ok(());
        }
        held = read_documents(call, results, BATCH_DOCUMENTS).await?;
    }
}

/// Returns whether the command reads the collection that it writes to.
fn reads(call: &Call<'_>, namespace: &Namespace) -> bool {
    &*namespace.database == call.database() && call.first().value().as_str() == Some(&*namespace.collection)
}

/// Reads ahead as much as fits into memory, mostly everything, so that written documents are not
/// read again.
async fn hold(call: &Call<'_>, results: &mut Reader) -> Result<Vec<DocBuf>> {
    let (mut held, mut bytes) = (Vec::new(), 0);
    while !results.is_done() && bytes < BLOCKING_BYTES_MAX {
        let some = read_documents(call, results, BATCH_DOCUMENTS).await?;
        bytes += some.iter().map(|document| document.as_bytes().len()).sum::<usize>();
        held.extend(some);
    }
    Ok(held)
}

async fn merge_into(call: &Call<'_>, merge: &Merge, namespace: &Namespace, documents: &[DocBuf]) -> Result<()> {
    for document in documents {
        identity(merge, document.as_doc(), Value::Null)?;
    }
    if let (WhenMatched::Fail, WhenNotMatched::Insert) = (&merge.when_matched, merge.when_not_matched) {
        let found = "$merge with whenMatched: fail found an existing document with the same values for the 'on' fields";
        return insert(call, namespace, documents, false).await.map_err(|error| match error.code() {
            Code::DUPLICATE_KEY => error.context(&format!("{found} :: caused by :: ")),
            _ => error,
        });
    }
    // As in MongoDB, the pipeline's collation decides only which indexes qualify; the matching
    // document is found with the target's default collation.
    let collation = call.worker.store.default_collation(namespace).await?;
    let context = Context { collation, ..call.context() };
    // An update that cannot be built fails at its position: earlier ones are still executed, and
    // may fail first.
    let (mut statements, mut mistake) = (Vec::with_capacity(documents.len()), None);
    for document in documents {
        match statement(call, merge, document, &context) {
            Ok(statement) => statements.push(statement),
            Err(error) => mistake = mistake.or(Some((statements.len(), error))),
        }
    }
    let mut outcomes = write_each(call, namespace, Statements::Update(statements), false).await?;
    if let Some((at, error)) = mistake {
        outcomes.insert(at.min(outcomes.len()), Err(error));
    }
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>>>().map_err(|error| match error.code() {
        Code::IMMUTABLE_FIELD => error.context(
            "$merge failed to update the matching document, did you attempt to modify the _id or the shard key? \
             :: caused by :: ",
        ),
        _ => error,
    })?;
    let is_unknown = |outcome: &StatementOutcome| outcome.matched == 0 && outcome.upserted.is_none();
    let unknown = documents.iter().zip(&outcomes).filter(|(_, outcome)| is_unknown(outcome));
    let unknown: Vec<&DocBuf> = unknown.map(|(document, _)| document).collect();
    match merge.when_not_matched {
        _ if unknown.is_empty() => Ok(()),
        WhenNotMatched::Discard => Ok(()),
        WhenNotMatched::Fail => {
            let message = "$merge could not find a matching document in the target collection for at least one \
                           document in the source collection";
            Err(Error::new(Code::MERGE_STAGE_NO_MATCHING_DOCUMENT, message))
        }
        WhenNotMatched::Insert => insert_or_update(call, merge, namespace, &unknown, &context).await,
    }
}

/// Inserts documents without a match. An earlier document or a concurrent write may have inserted
/// one meanwhile.
async fn insert_or_update(
    call: &Call<'_>,
    merge: &Merge,
    namespace: &Namespace,
    documents: &[&DocBuf],
    context: &Context,
) -> Result<()> {
    let prepared = documents.iter().map(|document| prepare_own(call, document)).collect::<Result<Vec<_>>>()?;
    let inserted = write_each(call, namespace, Statements::Insert(prepared), false).await?;
    for (document, outcome) in documents.iter().zip(inserted) {
        match outcome {
            Err(error) if error.code() == Code::DUPLICATE_KEY => {
                let again = Statements::Update(vec![statement(call, merge, document, context)?]);
                let outcomes = write(call, namespace, again, true).await?;
                if outcomes.iter().all(|outcome| outcome.matched == 0) {
                    return Err(error);
                }
            }
            outcome => drop(outcome?),
        }
    }
    Ok(())
}

/// Returns the update that merges one document into the collection.
fn statement(call: &Call<'_>, merge: &Merge, document: &DocBuf, context: &Context) -> Result<UpdateStatement> {
    let new_id = call.worker.new_object_id(call.now_ms);
    let filter = identity(merge, document.as_doc(), new_id.into())?;
    let (update, upsert) = update(merge, document, context)?;
    Ok(UpdateStatement {
        predicate: Predicate::parse(filter.as_doc(), context)?,
        sort: None,
        update,
        multi: false,
        upsert: upsert && merge.when_not_matched == WhenNotMatched::Insert,
        new_id,
        hint: None,
        image: ReturnImage::None,
    })
}

fn identity(merge: &Merge, document: Doc<'_>, new_id: Value<'_>) -> Result<DocBuf> {
    let mut filter = DocBuf::new();
    for field in &merge.on {
        let path = document::path::Path::new(field);
        let value = match path.get(document) {
            None if field == "_id" => new_id,
            Some(Value::Array(_)) => {
                let message = format!("$merge write error: 'on' field '{field}' is an array");
                return Err(Error::new(Code(51185), message));
            }
            None | Some(Value::Null | Value::Undefined) => {
                let message =
                    format!("$merge write error: 'on' field '{field}' cannot be missing, null, undefined or an array");
                return Err(Error::new(Code(51132), message));
            }
            Some(value) => value,
        };
        let mut equals = DocBuf::new();
        equals.append("$eq", value);
        filter.append(field, &equals);
    }
    Ok(filter)
}

/// Returns the update, and whether it may insert the document as well.
fn update(merge: &Merge, document: &DocBuf, context: &Context) -> Result<(Update, bool)> {
    let operator = |name: &str| {
        let mut spec = DocBuf::new();
        spec.append(name, document);
        Update::parse(Value::Document(spec.as_doc()), None, context)
    };
    Ok(match &merge.when_matched {
        WhenMatched::Replace => (Update::parse(document.into(), None, context)?, true),
        WhenMatched::Merge => (operator("$set")?, true),
        WhenMatched::KeepExisting => (operator("$setOnInsert")?, true),
        WhenMatched::Fail => (operator("$setOnInsert")?, false),
        WhenMatched::Pipeline { stages, variables, outer_variables: around } => {
            let mut context = Context { variables: values::Variables::default(), ..context.clone() };
            bind(variables, around.as_doc(), document, &mut context)?;
            debug_assert_eq!(stages.kind(), Kind::Array);
            (Update::parse(stages.as_value(), None, &context)?, false)
        }
    })
}

/// Binds the pipeline's variables. One without a value is not bound: it hides no other, and using
/// it is an error.
fn bind(
    variables: &[(String, query::Expression)],
    around: Doc<'_>,
    document: &DocBuf,
    context: &mut Context,
) -> Result<()> {
    for (name, expression) in variables {
        if let Some(value) = expression.evaluate(document.as_doc())?.value() {
            context.variables.append(name, value);
        }
    }
    for (name, value) in around.iter() {
        if context.variables.get(name).is_none() {
            context.variables.append(name, value);
        }
    }
    Ok(())
}
