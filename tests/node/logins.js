// Logs in as each line of the input says, in mongosh. Usage: mongosh --nodb --file logins.js < URIS
// A line is a URI. The outcome is a line, too: "user NAME", or "error CODE".
for (const uri of require("node:fs").readFileSync(0, "utf8").trim().split("\n")) {
  try {
    const test = new Mongo(uri).getDB("test");
    test.runCommand({ find: "c" });
    print("user " + test.runCommand({ connectionStatus: 1 }).authInfo.authenticatedUsers[0].user);
  } catch (error) {
    print(error.code ? "error " + error.code : "error: " + error);
  }
}
