// SQL clients of Node.js through the router `read-write-split`: text, prepared statements, batches,
// transactions, changes of the user. Usage: node sql.mjs PORT
import assert from "node:assert/strict";
import mariadb from "mariadb";
import mysql2 from "mysql2/promise";

const port = Number(process.argv[2]);
const account = { host: "127.0.0.1", port, user: "joe", password: "secret", database: "d" };

async function withMysql2() {
  const connection = await mysql2.createConnection(account);
  const one = async (sql, values) => (await connection.execute(sql, values))[0][0];
  for (let round = 0; round < 3; round++) {
    const read = await one("SELECT a, @@server_id AS server FROM t WHERE id = ?", [1]);
    assert.equal(read.a, 1);
    assert.notEqual(read.server, 1);
  }
  const [inserted] = await connection.execute("INSERT INTO written (a) VALUES (?)", [1000]);
  assert.ok(inserted.insertId > 0);
  const locked = await one("SELECT a, @@server_id AS server FROM written WHERE id = ? FOR UPDATE", [inserted.insertId]);
  assert.deepEqual({ ...locked }, { a: 1000, server: 1 });
  await connection.beginTransaction();
  await connection.execute("UPDATE written SET a = a + ? WHERE id = ?", [1, inserted.insertId]);
  assert.equal((await one("SELECT a FROM written WHERE id = ?", [inserted.insertId])).a, 1001);
  await connection.rollback();
  assert.equal((await one("SELECT a FROM written WHERE id = ? FOR UPDATE", [inserted.insertId])).a, 1000);
  await connection.query("START TRANSACTION READ ONLY");
  const servers = new Set();
  for (let id = 0; id < 4; id++) servers.add((await one("SELECT ?, @@server_id AS server", [id])).server);
  assert.equal(servers.size, 1);
  assert.ok(!servers.has(1));
  await connection.query("COMMIT");
  await assert.rejects(connection.execute("SELECT * FROM missing WHERE a = ?", [1]), { errno: 1146 });
  const prepared = await connection.prepare("SELECT a FROM t WHERE id = ?");
  assert.equal((await prepared.execute([1]))[0][0].a, 1);
  await prepared.close();
  await connection.changeUser({ user: "jim", password: "secret", database: "d" });
  assert.equal((await one("SELECT CURRENT_USER() AS name")).name, "jim@%");
  await connection.end();
}

async function withMariadb() {
  const connection = await mariadb.createConnection(account);
  const insert = await connection.prepare("INSERT INTO written (a) VALUES (?)");
  for (let value = 0; value < 3; value++) await insert.execute([value]);
  insert.close();
  const batch = await connection.batch("INSERT INTO written (a) VALUES (?)", [[2000], [2001], [2002]]);
  assert.equal(batch.affectedRows, 3);
  const [count] = await connection.execute("SELECT COUNT(*) AS n FROM written WHERE a BETWEEN ? AND ? FOR UPDATE", [2000, 2002]);
  assert.equal(Number(count.n), 3);
  await connection.beginTransaction();
  await connection.batch("UPDATE written SET a = ? WHERE a = ?", [[3000, 2000], [3001, 2001]]);
  await connection.rollback();
  const [read] = await connection.execute("SELECT a, @@server_id AS server FROM t WHERE id = ?", [1]);
  assert.equal(read.a, 1);
  assert.notEqual(Number(read.server), 1);
  let rows = 0;
  for await (const row of connection.queryStream("SELECT seq FROM seq_1_to_5000")) rows += row.seq > 0;
  assert.equal(rows, 5000);
  await connection.reset();
  await assert.rejects(connection.execute("SELECT nothing FROM t"), { errno: 1054 });
  assert.equal((await connection.query("SELECT DATABASE() AS name"))[0].name, "d");
  await connection.end();
}

await withMysql2();
await withMariadb();
console.log("ok sql");
