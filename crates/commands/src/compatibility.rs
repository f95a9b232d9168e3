//! Generates the page docs/compatibility.md: which parts of MongoDB 6.0's commands and language are
//! supported.
//!
//! The names are MongoDB's. The state of each is the outcome of parsing a sample, so the page
//! always agrees with the code.

use crate::pipeline::source_stage;
use crate::table::COMMANDS;
use aggregate::Pipeline;
use document::json::json_to_bson;
use document::{Doc, DocBuf, Value};
use error::{Error, Result};
use fulltext::TextIndexes;
use query::{Context, Expression, Predicate};
use std::fmt::Write;
use update::Update;

/// The commands of MongoDB 6.0 that clients send, without those of sharding, replication and Atlas.
const COMMAND_NAMES: &str = "_mergeAuthzCollections abortTransaction aggregate applyOps authenticate autoSplitVector buildInfo checkShardingIndex cleanupOrphaned \
    collMod collStats commitTransaction compact compactStructuredEncryptionData connectionStatus connPoolStats \
    convertToCapped count create createIndexes createRole createUser currentOp dataSize dbCheck dbHash dbStats \
    delete distinct drop dropAllRolesFromDatabase dropAllUsersFromDatabase dropConnections dropDatabase \
    dropIndexes dropRole dropUser endSessions explain filemd5 find findAndModify fsync fsyncUnlock getAuditConfig \
    getCmdLineOpts getDefaultRWConcern getDiagnosticData getLog getMore getnonce getParameter getShardMap \
    grantPrivilegesToRole grantRolesToRole grantRolesToUser hello hostInfo insert invalidateUserCache isMaster \
    killAllSessions killCursors killOp killSessions listCollections listCommands listDatabases listIndexes \
    lockInfo logout logRotate mapReduce ping planCacheClear planCacheClearFilters planCacheListFilters \
    planCacheSetFilter profile refreshSessions reIndex renameCollection revokePrivilegesFromRole \
    revokeRolesFromRole revokeRolesFromUser rolesInfo rotateCertificates saslContinue saslStart serverStatus \
    setDefaultRWConcern setFeatureCompatibilityVersion setFreeMonitoring setIndexCommitQuorum setParameter \
    setProfilingFilterGlobally setUserWriteBlockMode shutdown splitVector startRecordingTraffic startSession \
    stopRecordingTraffic top update updateRole updateUser usersInfo validate validateDBMetadata whatsmyuri";

const STAGE_NAMES: &str = "$addFields $bucket $bucketAuto $changeStream $collStats $count $currentOp $densify $documents $facet \
    $fill $geoNear $graphLookup $group $indexStats $limit $listCatalog $listLocalSessions $listSessions $lookup $match $merge $out \
    $planCacheStats $project $redact $replaceRoot $replaceWith $sample $search $set $setWindowFields $skip $sort $sortByCount \
    $unionWith $unset $unwind";

const EXPRESSION_NAMES: &str = "$abs $acos $acosh $add $allElementsTrue $and $anyElementTrue $arrayElemAt \
    $arrayToObject $asin $asinh $atan $atan2 $atanh $avg $binarySize $bsonSize $ceil $cmp $concat $concatArrays $cond $convert \
    $cos $cosh $dateAdd $dateDiff $dateFromParts $dateFromString $dateSubtract $dateToParts $dateToString $dateTrunc $dayOfMonth \
    $dayOfWeek $dayOfYear $degreesToRadians $divide $eq $exp $filter $first $firstN $floor $function $getField $gt $gte $hour \
    $ifNull $in $indexOfArray $indexOfBytes $indexOfCP $isArray $isNumber $isoDayOfWeek $isoWeek $isoWeekYear $last $lastN $let \
    $literal $ln $log $log10 $lt $lte $ltrim $map $max $maxN $mergeObjects $meta $millisecond $min $minN $minute $mod $month \
    $multiply $ne $not $objectToArray $or $pow $radiansToDegrees $rand $range $reduce $regexFind $regexFindAll $regexMatch \
    $replaceAll $replaceOne $reverseArray $round $rtrim $second $setDifference $setEquals $setField \
    $setIntersection $setIsSubset $setUnion $sin $sinh $size $slice $sortArray $split $sqrt $stdDevPop $stdDevSamp $strLenBytes \
    $strLenCP $strcasecmp $substr $substrBytes $substrCP $subtract $sum $switch $tan $tanh $toBool $toDate $toDecimal $toDouble \
    $toHashedIndexKey $toInt $toLong $toLower $toObjectId $toString $toUpper $trim $trunc $tsIncrement $tsSecond $type \
    $unsetField $week $year $zip";

const ACCUMULATOR_NAMES: &str = "$accumulator $addToSet $avg $bottom $bottomN $count $first $firstN $last $lastN $max $maxN \
    $mergeObjects $min $minN $push $stdDevPop $stdDevSamp $sum $top $topN";

const WINDOW_NAMES: &str = "$addToSet $avg $bottom $bottomN $count $covariancePop $covarianceSamp $denseRank $derivative \
    $documentNumber $expMovingAvg $first $firstN $integral $last $lastN $linearFill $locf $max $maxN $min $minN $push $rank $shift \
    $stdDevPop $stdDevSamp $sum $top $topN";

/// Filter operators, each with a sample.
const FILTERS: &[(&str, &str)] = &[
    ("$eq", r#"{"a": {"$eq": 1}}"#),
    ("$ne", r#"{"a": {"$ne": 1}}"#),
    ("$gt", r#"{"a": {"$gt": 1}}"#),
    ("$gte", r#"{"a": {"$gte": 1}}"#),
    ("$lt", r#"{"a": {"$lt": 1}}"#),
    ("$lte", r#"{"a": {"$lte": 1}}"#),
    ("$in", r#"{"a": {"$in": [1]}}"#),
    ("$nin", r#"{"a": {"$nin": [1]}}"#),
    ("$and", r#"{"$and": [{"a": 1}]}"#),
    ("$or", r#"{"$or": [{"a": 1}]}"#),
    ("$nor", r#"{"$nor": [{"a": 1}]}"#),
    ("$not", r#"{"a": {"$not": {"$gt": 1}}}"#),
    ("$exists", r#"{"a": {"$exists": true}}"#),
    ("$type", r#"{"a": {"$type": "int"}}"#),
    ("$expr", r#"{"$expr": {"$eq": ["$a", 1]}}"#),
    ("$jsonSchema", r#"{"$jsonSchema": {"required": ["a"]}}"#),
    ("$mod", r#"{"a": {"$mod": [2, 0]}}"#),
    ("$regex", r#"{"a": {"$regex": "x"}}"#),
    ("$text", r#"{"$text": {"$search": "x"}}"#),
    ("$where", r#"{"$where": "true"}"#),
    ("$all", r#"{"a": {"$all": [1]}}"#),
    ("$elemMatch", r#"{"a": {"$elemMatch": {"b": 1}}}"#),
    ("$size", r#"{"a": {"$size": 1}}"#),
    ("$bitsAllClear", r#"{"a": {"$bitsAllClear": 1}}"#),
    ("$bitsAllSet", r#"{"a": {"$bitsAllSet": 1}}"#),
    ("$bitsAnyClear", r#"{"a": {"$bitsAnyClear": 1}}"#),
    ("$bitsAnySet", r#"{"a": {"$bitsAnySet": 1}}"#),
    ("$geoIntersects", r#"{"a": {"$geoIntersects": {"$geometry": {"type": "Point", "coordinates": [1, 2]}}}}"#),
    ("$geoWithin", r#"{"a": {"$geoWithin": {"$box": [[0, 0], [1, 1]]}}}"#),
    ("$near", r#"{"a": {"$near": [0, 0]}}"#),
    ("$nearSphere", r#"{"a": {"$nearSphere": [0, 0]}}"#),
    ("$comment", r#"{"$comment": "x"}"#),
    ("$sampleRate", r#"{"$sampleRate": 0.5}"#),
];

/// Update operators, each with a sample.
const UPDATES: &[(&str, &str)] = &[
    ("$currentDate", r#"{"$currentDate": {"a": true}}"#),
    ("$inc", r#"{"$inc": {"a": 1}}"#),
    ("$min", r#"{"$min": {"a": 1}}"#),
    ("$max", r#"{"$max": {"a": 1}}"#),
    ("$mul", r#"{"$mul": {"a": 1}}"#),
    ("$rename", r#"{"$rename": {"a": "b"}}"#),
    ("$set", r#"{"$set": {"a": 1}}"#),
    ("$setOnInsert", r#"{"$setOnInsert": {"a": 1}}"#),
    ("$unset", r#"{"$unset": {"a": 1}}"#),
    ("$addToSet", r#"{"$addToSet": {"a": {"$each": [1]}}}"#),
    ("$pop", r#"{"$pop": {"a": 1}}"#),
    ("$pull", r#"{"$pull": {"a": 1}}"#),
    ("$push", r#"{"$push": {"a": {"$each": [1], "$position": 0, "$slice": 1, "$sort": 1}}}"#),
    ("$pullAll", r#"{"$pullAll": {"a": [1]}}"#),
    ("$bit", r#"{"$bit": {"a": {"and": 1}}}"#),
    ("positional $", r#"{"$set": {"a.$": 1}}"#),
    ("positional $[]", r#"{"$set": {"a.$[]": 1}}"#),
];

/// Parses JSON in which names may begin with `$`.
fn sample(text: &str) -> DocBuf {
    let mut escaped = String::new();
    let mut pieces = text.split('"');
    escaped.push_str(pieces.next().unwrap_or_default());
    while let (Some(name), Some(behind)) = (pieces.next(), pieces.next()) {
        let is_name = behind.trim_start().starts_with(':');
        let mark = if is_name && name.starts_with('$') { "$" } else { "" };
        write!(escaped, "\"{mark}{name}\"{behind}").unwrap();
    }
    let mut bytes = Vec::new();
    json_to_bson(escaped.as_bytes(), &mut bytes).unwrap();
    DocBuf::from_vec(bytes).unwrap()
}

/// The state of a name that a parser accepts.
const IMPLEMENTED: &str = "implemented";

fn state<T>(answer: Result<T>) -> String {
    answer.map_or_else(|error| refused(&error), |_| IMPLEMENTED.to_owned())
}

fn refused(error: &Error) -> String {
    format!("refused with error {} ({})", error.code().0, error.message().replace('|', "\\|"))
}

fn stage(name: &str, context: &Context) -> String {
    if name == "$changeStream" {
        return "[change streams](change-streams.md)".to_owned();
    }
    if source_stage::is_first_stage(name) {
        return IMPLEMENTED.to_owned();
    }
    let pipeline = sample(&format!(r#"{{"p": [{{"{name}": {{}}}}]}}"#));
    let stages = pipeline.as_doc().get("p").and_then(Value::as_array).unwrap_or(Doc::EMPTY);
    match Pipeline::parse(stages, context) {
        // The sample has no arguments; any other error is about those.
        Err(error) if matches!(error.code().0, 40324 | 40573) => refused(&error),
        _ => IMPLEMENTED.to_owned(),
    }
}

fn expression(name: &str, context: &Context) -> String {
    if Expression::is_operator(name) || name == "$meta" {
        return IMPLEMENTED.to_owned();
    }
    let spec = sample(&format!(r#"{{"{name}": {{}}}}"#));
    Expression::parse(Value::Document(spec.as_doc()), context)
        .map_or_else(|error| refused(&error), |_| IMPLEMENTED.to_owned())
}

/// Parses a stage with a function; only the error for an unknown function counts.
fn function_of(stage: &str, unknown: &[&str], context: &Context) -> String {
    let pipeline = sample(&format!(r#"{{"p": [{stage}]}}"#));
    let stages = pipeline.as_doc().get("p").and_then(Value::as_array).unwrap_or(Doc::EMPTY);
    match Pipeline::parse(stages, context) {
        Err(error) if unknown.iter().any(|text| error.message().contains(text)) => refused(&error),
        _ => IMPLEMENTED.to_owned(),
    }
}

/// Length of the lines of the page.
const COLUMNS_MAX: usize = 100;

fn section(page: &mut String, title: &str, rows: impl Iterator<Item = (String, String)>) {
    write!(page, "\n## {title}\n\n| name | state |\n| --- | --- |\n").unwrap();
    for (name, state) in rows {
        writeln!(page, "| `{name}` | {state} |").unwrap();
    }
}

/// Lists the names that are implemented, and a table of the others.
fn language(page: &mut String, title: &str, rows: impl Iterator<Item = (String, String)>) {
    let (implemented, refused): (Vec<_>, Vec<_>) = rows.partition(|(_, state)| state == IMPLEMENTED);
    write!(page, "\n## {title}\n\n").unwrap();
    let last = implemented.len().saturating_sub(1);
    let mut columns = 0;
    for (position, (name, _)) in implemented.iter().enumerate() {
        let text = format!("`{name}`{}", if position == last { "" } else { "," });
        let separator = if columns == 0 || columns + 1 + text.len() > COLUMNS_MAX { "\n" } else { " " };
        columns = if separator == " " { columns + 1 + text.len() } else { text.len() };
        page.push_str(if position == 0 { "" } else { separator });
        page.push_str(&text);
    }
    page.push('\n');
    if !refused.is_empty() {
        page.push_str("\n| name | state |\n| --- | --- |\n");
    }
    for (name, state) in refused {
        writeln!(page, "| `{name}` | {state} |").unwrap();
    }
}

fn names(list: &'static str, state: impl Fn(&str) -> String) -> impl Iterator<Item = (String, String)> {
    list.split_whitespace().map(move |name| (name.to_owned(), state(name)))
}

/// How time-series collections compare with MongoDB's.
const TIME_SERIES: &[(&str, &str)] = &[
    ("create", "`timeField`, `metaField`, `granularity`, `expireAfterSeconds`"),
    ("insert", "one bucket per measurement; MongoDB puts several into one"),
    (
        "find, aggregate, count, distinct",
        "implemented; the fields of a measurement have the order in which they were inserted",
    ),
    ("update, delete", "implemented for metadata, as in 6.0; refused with errors 72 and 20 for other fields"),
    ("createIndexes", "on metadata, the time and other fields of measurements"),
    ("geo indexes on measurements, $geoNear", "refused with errors 67 and 40603"),
    ("partial indexes with filters on measurements", "refused with error 67"),
    ("collMod", "`granularity`, `expireAfterSeconds`, hidden indexes"),
    ("collStats", "`bucketsNs`, `bucketCount`, `avgBucketSize`; no statistics of how buckets were filled"),
    ("renameCollection, findAndModify, $out, $merge", "refused with error 166, as in 6.0"),
];

/// Commands of MongoDB that are not in the table, by topic. All fail with error 59, as unknown
/// commands do.
const NOT_HERE: &[(&str, &str)] = &[
    (
        "_addShard, _configsvr…, _shardsvr…, _flush…, _recvChunk…, _migrateClone, _transferMods, _getNextSessionMods",
        "sent between servers of a sharded cluster",
    ),
    (
        "clusterAggregate, clusterFind, clusterInsert, clusterUpdate, clusterDelete, clusterGetMore, clusterCommitTransaction, clusterAbortTransaction",
        "for servers that are both router and shard",
    ),
    (
        "donor…, recipient…, abortShardSplit, commitShardSplit, forgetShardSplit",
        "move data between replica sets of a hosted service",
    ),
    (
        "prepareTransaction, coordinateCommitTransaction, voteCommitIndexBuild, getDatabaseVersion, internalRenameIfOptionsAndIndexesMatch",
        "sent between servers",
    ),
    ("_isSelf, _killOperations, _getUserCacheGeneration, waitForFailPoint", "internal to MongoDB's servers and tests"),
    ("dbCheck, checkShardingIndex", "about replicas and shards, which do not exist here"),
];

fn page() -> String {
    let context = Context { text_indexes: TextIndexes::placeholder(), ..Context::at(0) };
    let mut page = String::from(
        "# Compatibility\n\nThe commands and the query language of MongoDB 6.0, and their state in Selkie. `make compat`\n\
         measures how closely replies agree with MongoDB's ([testing](testing.md)). This page is generated:\n\
         `UPDATE_REFERENCE=1 cargo test -p commands compatibility` asks the parsers and writes it.\n",
    );
    section(
        &mut page,
        "Commands",
        names(COMMAND_NAMES, |name| match COMMANDS.named(name.as_bytes()) {
            Some(spec) => spec.help.to_owned(),
            None => format!("refused with error 59 (no such command: '{name}')"),
        }),
    );
    let stated = |(name, state): &(&str, &str)| ((*name).to_owned(), (*state).to_owned());
    section(&mut page, "Commands that are not implemented", NOT_HERE.iter().map(stated));
    language(
        &mut page,
        "Filter operators",
        FILTERS
            .iter()
            .map(|(name, text)| ((*name).to_owned(), state(Predicate::parse_query(sample(text).as_doc(), &context)))),
    );
    language(
        &mut page,
        "Update operators",
        UPDATES.iter().map(|(name, text)| {
            let update = sample(text);
            ((*name).to_owned(), state(Update::parse(Value::Document(update.as_doc()), None, &context)))
        }),
    );
    section(&mut page, "Time-series collections", TIME_SERIES.iter().map(stated));
    language(&mut page, "Stages", names(STAGE_NAMES, |name| stage(name, &context)));
    language(&mut page, "Expression operators", names(EXPRESSION_NAMES, |name| expression(name, &context)));
    language(
        &mut page,
        "Accumulators of $group",
        names(ACCUMULATOR_NAMES, |name| {
            let text = format!(r#"{{"$group": {{"_id": null, "x": {{"{name}": {{}}}}}}}}"#);
            function_of(&text, &["unknown group operator", "JavaScript", "globalScriptEngine"], &context)
        }),
    );
    language(
        &mut page,
        "Functions of $setWindowFields",
        names(WINDOW_NAMES, |name| {
            let text =
                format!(r#"{{"$setWindowFields": {{"sortBy": {{"a": 1}}, "output": {{"x": {{"{name}": {{}}}}}}}}}}"#);
            function_of(&text, &["Unrecognized window function", "Unrecognized pipeline stage"], &context)
        }),
    );
    page.push_str(DIFFERENCES);
    page
}

/// Supported features that differ because of a library or its version.
const DIFFERENCES: &str = "
## Differences of libraries

**Regular expressions** are those of PCRE 8, as in MongoDB 6.0, translated for PCRE2. These
differences remain:

- `\\K` within a lookaround is refused (51091).
- A recursive call without end (`(?R)?a`) fails when it runs (51156). MongoDB refuses it when it
  parses the expression (51091).
- Properties (`\\p{L}`), scripts and case are those of a Unicode version later than 7.
- In MongoDB, a class with a negated set beside a property (`[\\W\\p{Lu}]`) does not match letters
  above U+00FF. Here it matches them.

**Dates** in text (`$toDate`, `$dateFromString` without a format) are read as in MongoDB, including
words like `next month`.

**Collations** follow the Unicode Collation Algorithm with the tailorings of a later CLDR than that
of ICU 57 in MongoDB 6.0. Quotation marks compare as in ICU 57. These differences remain:

- Characters newer than Unicode 8, and the Hebrew marks \u{5f3} and \u{5f4}, have another order.
- The tailorings of `hy`, `kl`, `lv`, `mr`, `smn`, `th`, `zh` and some others have changed since.
  `kl` and `smn` sort as the root does.
- Han characters outside of `zh`, `ja` and `ko` sort by code point. MongoDB sorts them by radical
  and stroke.
- `en_US_POSIX` sorts as `en_US` does. MongoDB sorts it by code point.
- `da` and `mt` put upper case first even if a collection's default collation or `caseFirst: \"off\"`
  asks for another order.

Earlier builds of Selkie compared quotation marks as equal. Drop and create indexes of theirs that
have a collation and contain strings with such marks.
";

/// `UPDATE_REFERENCE=1 cargo test -p commands compatibility` rewrites the page.
#[test]
fn the_compatibility_page_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compatibility.md");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), page(), "see the test's comment");
}
