// The drivers' path through the Node.js driver. Usage: node driver.mjs URI DATABASE
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import { Decimal128, Double, GridFSBucket, Int32, Long, MongoClient, ObjectId } from "mongodb";

const [uri, name] = process.argv.slice(2);
const client = new MongoClient(uri);
const db = client.db(name);

async function insertFindUpdateDelete() {
  const people = db.collection("people");
  const { insertedId } = await people.insertOne({ name: "Ada", born: new Date("1815-12-10") });
  assert(insertedId instanceof ObjectId);
  await people.insertMany(Array.from({ length: 1000 }, (_, n) => ({ _id: n, n, tags: ["a", `t${n % 3}`] })));
  assert.equal((await people.findOne({ name: "Ada" })).born.toISOString(), "1815-12-10T00:00:00.000Z");
  const ids = (await people.find({ n: { $gte: 10 } }).sort({ n: 1 }).batchSize(50).toArray()).map((d) => d._id);
  assert.deepEqual(ids, Array.from({ length: 990 }, (_, n) => n + 10));
  assert.equal(await people.countDocuments({ tags: "t1" }), 333);
  assert.equal((await people.updateMany({ tags: "t1" }, { $inc: { n: 1 }, $addToSet: { tags: "b" } })).modifiedCount, 333);
  assert.deepEqual((await people.findOne({ _id: 1 })).tags, ["a", "t1", "b"]);
  const upserted = await people.updateOne({ _id: "new" }, { $setOnInsert: { made: true } }, { upsert: true });
  assert.equal(upserted.upsertedId, "new");
  const after = await people.findOneAndUpdate({ _id: "new" }, { $set: { n: 5 } }, { returnDocument: "after" });
  assert.deepEqual(after, { _id: "new", made: true, n: 5 });
  assert.equal((await people.deleteMany({ n: { $exists: true } })).deletedCount, 1001);
  assert.equal(await people.countDocuments(), 1);
}

async function aggregateAndIndexes() {
  const sales = db.collection("sales");
  await sales.createIndexes([{ key: { shop: 1, amount: -1 } }, { key: { code: 1 }, unique: true }]);
  await sales.insertMany(Array.from({ length: 500 }, (_, n) => ({ shop: n % 5, amount: n, code: `c${n}` })));
  const groups = await sales
    .aggregate([{ $match: { amount: { $lt: 100 } } }, { $group: { _id: "$shop", sum: { $sum: "$amount" } } }, { $sort: { _id: 1 } }])
    .toArray();
  assert.deepEqual(groups, [0, 1, 2, 3, 4].map((shop) => ({ _id: shop, sum: 950 + 20 * shop })));
  assert.deepEqual((await sales.indexes()).map((index) => index.name).sort(), ["_id_", "code_1", "shop_1_amount_-1"]);
  await assert.rejects(sales.insertOne({ code: "c7" }), (error) => error.code === 11000 && error.keyValue.code === "c7");
  assert.deepEqual((await sales.distinct("shop")).sort(), [0, 1, 2, 3, 4]);
  assert.ok(await sales.drop());
}

async function bulkAndSessions() {
  const bulk = db.collection("bulk");
  const result = await bulk.bulkWrite([
    { insertOne: { document: { _id: 1 } } },
    { updateOne: { filter: { _id: 1 }, update: { $set: { x: 1 } } } },
    { replaceOne: { filter: { _id: 2 }, replacement: { y: 1 }, upsert: true } },
    { deleteOne: { filter: { _id: 1 } } },
  ]);
  assert.deepEqual([result.insertedCount, result.modifiedCount, result.upsertedCount, result.deletedCount], [1, 1, 1, 1]);
  await client.withSession(async (session) => {
    await bulk.insertOne({ _id: 3 }, { session });
    assert.equal((await bulk.find({}, { session }).toArray()).length, 2);
  });
}

async function transactions() {
  const hello = await db.command({ hello: 1 });
  // A standalone server has none.
  if (!hello.msg && !hello.setName) return;
  await client.withSession((session) =>
    session.withTransaction(() => db.collection("transactions").insertOne({ _id: 1 }, { session })),
  );
  assert.equal(await db.collection("transactions").countDocuments(), 1);
}

async function types() {
  const document = {
    _id: new ObjectId(),
    long: Long.fromString("9007199254740993"),
    smallLong: Long.fromNumber(5),
    decimal: Decimal128.fromString("1.10"),
    whole: new Double(5),
    int: new Int32(5),
    negativeZero: -0,
    nothing: null,
    regex: /^a.b$/i,
    bytes: randomBytes(100),
    nested: { list: [1, [2, { three: "drei" }]] },
  };
  const collection = db.collection("types");
  await collection.insertOne(document);
  const found = await collection.findOne({ _id: document._id }, { promoteValues: false });
  assert.equal(found.long.toString(), "9007199254740993");
  assert.equal(found.smallLong._bsontype, "Long");
  assert.equal(found.decimal.toString(), "1.10");
  assert.equal(found.whole._bsontype, "Double");
  assert.equal(found.int._bsontype, "Int32");
  assert(Object.is(found.negativeZero.valueOf(), -0));
  assert(Buffer.from(found.bytes.value()).equals(document.bytes));
}

async function gridfs() {
  const content = randomBytes(20 * 1024 * 1024);
  const bucket = new GridFSBucket(db);
  await pipeline(Readable.from([content]), bucket.openUploadStream("film.bin"));
  const pieces = await bucket.openDownloadStreamByName("film.bin").toArray();
  assert(Buffer.concat(pieces).equals(content));
}

async function manyAtOnce() {
  const counters = db.collection("counters");
  await Promise.all(
    Array.from({ length: 200 }, () => counters.updateOne({ _id: "c" }, { $inc: { n: 1 } }, { upsert: true })),
  );
  assert.equal((await counters.findOne({ _id: "c" })).n, 200);
}

for (const step of [insertFindUpdateDelete, aggregateAndIndexes, bulkAndSessions, transactions, types, gridfs, manyAtOnce]) {
  await step();
  console.log("ok", step.name);
}
await db.dropDatabase();
await client.close();
