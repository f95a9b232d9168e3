// Logs in as each line of the input says, through the Node.js driver. A line is a URI. The outcome
// is a line, too: "user NAME", or "error CODE".
import { createInterface } from "node:readline";
import { MongoClient } from "mongodb";

async function outcome(uri) {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: 5000 });
  try {
    await client.db("test").command({ find: "c" });
    const { authInfo } = await client.db("test").command({ connectionStatus: 1 });
    return `user ${authInfo.authenticatedUsers[0].user}`;
  } catch (error) {
    return error.code ? `error ${error.code}` : `error: ${error}`;
  } finally {
    await client.close();
  }
}

for await (const uri of createInterface({ input: process.stdin })) {
  console.log(await outcome(uri));
}
