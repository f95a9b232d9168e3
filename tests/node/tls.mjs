// TLS through the Node.js driver. Usage: node tls.mjs URI CA CERTIFICATE-AND-KEY
import assert from "node:assert/strict";
import { MongoClient } from "mongodb";

const [uri, tlsCAFile, tlsCertificateKeyFile] = process.argv.slice(2);

for (const compressors of [[], ["zstd"], ["snappy"]]) {
  const client = new MongoClient(uri, { tls: true, tlsCAFile, tlsCertificateKeyFile, compressors });
  const large = client.db("node").collection("large");
  await large.deleteMany({});
  const text = "abcdefghij".repeat(100_000);
  await large.insertMany(Array.from({ length: 20 }, (_, n) => ({ _id: n, text })));
  const found = await large.find().toArray();
  assert.equal(found.length, 20);
  assert(found.every((document) => document.text === text));
  await Promise.all(Array.from({ length: 200 }, (_, n) => large.findOne({ _id: n % 20 })));
  await client.close();
  console.log("ok", compressors);
}

const stranger = new MongoClient(uri, { tls: true, tlsCAFile, serverSelectionTimeoutMS: 500 });
await assert.rejects(stranger.connect());
await stranger.close();
console.log("ok refused");
