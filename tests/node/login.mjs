// A login through the Node.js driver. Usage: node login.mjs URI USER
import assert from "node:assert/strict";
import { MongoClient } from "mongodb";

const [uri, user] = process.argv.slice(2);
const client = new MongoClient(uri, { serverSelectionTimeoutMS: 5000 });
const { authInfo } = await client.db().command({ connectionStatus: 1 });
assert.deepEqual(authInfo.authenticatedUsers.map((known) => known.user), [user]);
await client.close();

const wrong = new MongoClient(uri.replace(/:[^:@]*@/, ":wrong@"), { serverSelectionTimeoutMS: 5000 });
await assert.rejects(wrong.db().command({ find: "c" }), (error) => error.code === 18);
await wrong.close();
console.log("ok login");
