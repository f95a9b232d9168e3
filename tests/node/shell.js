// What a person types into mongosh. Usage: mongosh URI/DATABASE --file shell.js
const assert = require("node:assert");

print(db.version(), db.hello().isWritablePrimary);
db.things.insertMany(Array.from({ length: 200 }, (_, n) => ({ _id: n, kind: n % 2 ? "odd" : "even", n: NumberLong(String(n)) })));
assert.strictEqual(db.things.find({ kind: "odd" }).itcount(), 100);
assert.strictEqual(db.things.findOne({ _id: 7 }).kind, "odd");
assert.strictEqual(db.things.updateMany({ kind: "odd" }, { $set: { odd: true } }).modifiedCount, 100);
assert.strictEqual(db.things.deleteOne({ _id: 0 }).deletedCount, 1);
assert.strictEqual(db.things.createIndex({ kind: 1 }), "kind_1");
assert.strictEqual(db.things.getIndexes().length, 2);
assert.strictEqual(
  JSON.stringify(db.things.aggregate([{ $group: { _id: "$kind", n: { $sum: 1 } } }, { $sort: { _id: 1 } }]).toArray()),
  JSON.stringify([{ _id: "even", n: 99 }, { _id: "odd", n: 100 }]),
);
assert.strictEqual(db.things.countDocuments(), 199);
assert.strictEqual(db.things.stats().count, 199);
assert.ok(db.things.find({ kind: "odd" }).explain().queryPlanner.winningPlan);
assert.ok(db.getCollectionNames().includes("things"));
assert.ok(db.getMongo().getDBNames().includes(db.getName()));
assert.ok(db.serverStatus().uptime >= 0);
assert.ok(db.stats().collections >= 1);
assert.ok(db.things.validate().valid);
assert.ok(db.adminCommand({ listCommands: 1 }).commands.find);
assert.strictEqual(db.things.drop(), true);
db.dropDatabase();
print("ok shell");
