// What an application on Mongoose does. Usage: node mongoose.mjs URI DATABASE
import assert from "node:assert/strict";
import mongoose from "mongoose";

const [uri, dbName] = process.argv.slice(2);
await mongoose.connect(uri, { dbName });

const Comment = new mongoose.Schema({ text: String, at: { type: Date, default: Date.now } });
const Post = mongoose.model(
  "Post",
  new mongoose.Schema(
    {
      title: { type: String, required: true, index: true },
      slug: { type: String, unique: true },
      author: { type: mongoose.Schema.Types.ObjectId, ref: "Author" },
      tags: [String],
      comments: [Comment],
      price: mongoose.Schema.Types.Decimal128,
      meta: { type: Map, of: String },
    },
    { timestamps: true, optimisticConcurrency: true },
  ),
);
const Author = mongoose.model("Author", new mongoose.Schema({ name: String, age: Number }));
await Promise.all([Post.init(), Author.init()]);

async function saveAndPopulate() {
  const author = await Author.create({ name: "Ada", age: 36 });
  const post = await Post.create({ title: "Notes", slug: "notes", author, tags: ["math"], price: "9.90", meta: { k: "v" } });
  assert(post.createdAt instanceof Date);
  const found = await Post.findOne({ slug: "notes" }).populate("author");
  assert.equal(found.author.name, "Ada");
  assert.equal(found.price.toString(), "9.90");
  assert.equal(found.meta.get("k"), "v");
}

async function changeDocuments() {
  const post = await Post.findOne({ slug: "notes" });
  post.comments.push({ text: "first" }, { text: "second" });
  post.tags.addToSet("history");
  await post.save();
  post.comments.id(post.comments[0]._id).text = "changed";
  post.comments.pull(post.comments[1]);
  await post.save();
  const found = await Post.findOne({ slug: "notes" }).lean();
  assert.deepEqual(found.comments.map((comment) => comment.text), ["changed"]);
  assert.deepEqual(found.tags, ["math", "history"]);
}

async function twoWritersOfOneDocument() {
  const [one, two] = [await Post.findOne({ slug: "notes" }), await Post.findOne({ slug: "notes" })];
  one.title = "One";
  await one.save();
  two.title = "Two";
  await assert.rejects(two.save(), { name: "VersionError" });
}

async function duplicates() {
  await assert.rejects(Post.create({ title: "Again", slug: "notes" }), (error) => error.code === 11000);
  await assert.rejects(Post.create({ slug: "untitled" }), { name: "ValidationError" });
}

async function queries() {
  await Author.insertMany(Array.from({ length: 250 }, (_, n) => ({ name: `a${n}`, age: n % 50 })));
  assert.equal(await Author.countDocuments({ age: { $gte: 40 } }), 50);
  const page = await Author.find({ age: { $in: [1, 2] } }).sort("-age name").skip(2).limit(3).select("name -_id").lean();
  assert.deepEqual(page, [{ name: "a2" }, { name: "a202" }, { name: "a52" }]);
  let seen = 0;
  for await (const _ of Author.find().cursor({ batchSize: 20 })) seen += 1;
  assert.equal(seen, 251);
  const [oldest] = await Author.aggregate([{ $group: { _id: "$age", n: { $sum: 1 } } }, { $sort: { _id: -1 } }, { $limit: 1 }]);
  assert.deepEqual(oldest, { _id: 49, n: 5 });
  const changed = await Author.findOneAndUpdate({ name: "nobody" }, { age: 1 }, { upsert: true, returnDocument: "after" });
  assert.equal(changed.age, 1);
  assert.equal((await Author.deleteMany({ name: /^a1/ })).deletedCount, 111);
  assert.equal(await Author.exists({ name: "a1" }), null);
}

async function transactions() {
  const hello = await mongoose.connection.db.command({ hello: 1 });
  // A standalone server has none.
  if (!hello.msg && !hello.setName) return;
  // Mongoose repeats the function on conflicts, and sets changed documents back before it does.
  const author = await Author.create({ name: "counter", age: 0 });
  let attempts = 0;
  const increase = async () => {
    const own = await Author.findById(author._id);
    await mongoose.connection.transaction(async (session) => {
      attempts += 1;
      const current = await Author.findById(own._id).session(session);
      current.age += 1;
      await current.save({ session });
      await Post.create([{ title: "In a transaction", slug: `t${current.age}`, author: own }], { session });
      assert.equal(await Post.countDocuments({ author: own._id }).session(session), current.age);
    });
  };
  await Promise.all(Array.from({ length: 8 }, increase));
  assert.equal((await Author.findById(author._id)).age, 8);
  assert.equal(await Post.countDocuments({ author: author._id }), 8);
  assert(attempts >= 8);

  const failure = mongoose.connection.transaction(async (session) => {
    await Author.deleteOne({ _id: author._id }, { session });
    await Post.create([{ title: "Again", slug: "t1" }], { session });
  });
  await assert.rejects(failure, (error) => error.code === 11000);
  assert(await Author.exists({ _id: author._id }));
}

for (const step of [saveAndPopulate, changeDocuments, twoWritersOfOneDocument, duplicates, queries, transactions]) {
  await step();
  console.log("ok", step.name);
}
await mongoose.connection.dropDatabase();
await mongoose.disconnect();
