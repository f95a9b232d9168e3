// Change streams, and the oplog as Meteor reads it. Usage: node streams.mjs URI DATABASE
import assert from "node:assert/strict";
import { MongoClient, Timestamp } from "mongodb";

const [uri, name] = process.argv.slice(2);
const client = new MongoClient(uri, { directConnection: true });
const db = client.db(name);

async function watchACollection() {
  const things = db.collection("things");
  await db.createCollection("things", { changeStreamPreAndPostImages: { enabled: true } });
  const stream = things.watch([], { fullDocument: "updateLookup", fullDocumentBeforeChange: "whenAvailable" });
  assert.equal(await stream.tryNext(), null);
  await things.insertOne({ _id: 1 });
  assert.equal((await stream.next()).operationType, "insert");
  await things.updateOne({ _id: 1 }, { $set: { a: 1 } });
  const update = await stream.next();
  assert.deepEqual(update.fullDocument, { _id: 1, a: 1 });
  assert.deepEqual(update.fullDocumentBeforeChange, { _id: 1 });
  assert.deepEqual(update.updateDescription.updatedFields, { a: 1 });
  await stream.close();
  await things.deleteOne({ _id: 1 });
  const resumed = things.watch([{ $match: { operationType: "delete" } }], { resumeAfter: update._id });
  assert.deepEqual((await resumed.next()).documentKey, { _id: 1 });
  await resumed.close();
}

/// The queries of Meteor's oplog driver.
async function tailTheOplog() {
  const log = client.db("local").collection("oplog.rs");
  const [last] = await log.find({}, { projection: { ts: 1 } }).sort({ $natural: -1 }).limit(1).toArray();
  assert(last.ts instanceof Timestamp);
  assert((await client.db("admin").command({ hello: 1 })).setName);
  assert((await log.options()).capped);
  const query = {
    ns: new RegExp(`^(?:${name}\\.|admin\\.\\$cmd)`),
    $or: [
      { op: { $in: ["i", "u", "d"] } },
      { op: "c", "o.drop": { $exists: true } },
      { op: "c", "o.dropDatabase": 1 },
      { op: "c", "o.applyOps": { $exists: true } },
    ],
    ts: { $gt: last.ts },
  };
  const tail = log.find(query, { tailable: true, awaitData: true });
  const things = db.collection("tailed");
  const entries = [];
  const reading = (async () => {
    while (entries.length < 4) entries.push(await tail.next());
  })();
  await things.insertOne({ _id: 1, text: "x".repeat(100) });
  await things.updateOne({ _id: 1 }, { $set: { "a.b": 1 } });
  await things.deleteOne({ _id: 1 });
  await things.drop();
  await reading;
  await tail.close();
  assert.deepEqual(entries.map((entry) => entry.op), ["i", "u", "d", "c"]);
  assert.deepEqual(entries[1].o, { $v: 2, diff: { i: { a: { b: 1 } } } });
  assert.deepEqual(entries[1].o2, { _id: 1 });
  assert.equal(entries[3].o.drop, "tailed");
  assert(entries.every((entry) => entry.ns.startsWith(`${name}.`)));
}

for (const test of [watchACollection, tailTheOplog]) {
  await test();
  console.log(`ok ${test.name}`);
}
await db.dropDatabase();
await client.close();
