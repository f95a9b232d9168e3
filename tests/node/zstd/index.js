// What the driver asks of `@mongodb-js/zstd` on Node.js before 22.15: two functions that give promises of buffers.
const zstd = require("@bokuweb/zstd-wasm");

const ready = zstd.init();

exports.compress = async (buffer, level) => {
  await ready;
  return Buffer.from(zstd.compress(buffer, level ?? 3));
};

exports.decompress = async (buffer) => {
  await ready;
  return Buffer.from(zstd.decompress(buffer));
};
