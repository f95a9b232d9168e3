// PLAIN through the Node.js driver, which sends it to $external whatever authSource is: MongoDB
// refuses that. Usage: node plain.mjs HOST CA USER PASSWORD
import assert from "node:assert/strict";
import { MongoClient } from "mongodb";

const [host, tlsCAFile, ...credentials] = process.argv.slice(2);
const [user, password] = credentials.map(encodeURIComponent);
const uri = (mechanism) => `mongodb://${user}:${password}@${host}/shop?authMechanism=${mechanism}&authSource=shop`;
const options = { tls: true, tlsCAFile, directConnection: true, serverSelectionTimeoutMS: 5000 };

const plain = new MongoClient(uri("PLAIN"), options);
await assert.rejects(plain.db().command({ find: "c" }), (error) => {
  return error.code === 334 && error.message === "Unsupported mechanism 'PLAIN' on authentication database '$external'";
});
await plain.close();

const scram = new MongoClient(uri("SCRAM-SHA-256"), options);
const { authInfo } = await scram.db().command({ connectionStatus: 1 });
assert.deepEqual(authInfo.authenticatedUsers, [{ user: credentials[0], db: "shop" }]);
await scram.close();
console.log("ok plain");
