import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";

/**
 * Sends a few commands to a Redis over a connection of its own. Supports only the replies of a server check (the set-up
 * runs before any client library is installed): simple, error, integer and bulk replies.
 * @param {string} url `redis://` or `rediss://`, with user and password if need be
 * @param {readonly (readonly string[])[]} commands
 * @param {{ timeoutMs?: number }} [options] default 2,000 ms for all of it
 * @returns {Promise<string[]>} one reply per command
 * @throws {Error} nothing listens, no reply in time, or an error reply, whose text is the message
 */
export async function ask(url, commands, { timeoutMs = 2_000 } = {}) {
  const { hostname, port, username, password, protocol } = new URL(url);
  const secret = decodeURIComponent(password);
  const login = username === "" ? [secret] : [decodeURIComponent(username), secret];
  const all = secret === "" ? commands : [["AUTH", ...login], ...commands];
  // URL keeps the brackets of an IPv6 host, connect does not want them.
  const target = { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 6379) };
  const socket =
    protocol === "rediss:"
      ? connectTls({ ...target, servername: target.host })
      : connectTcp(target);
  try {
    const replies = await new Promise((resolve, reject) => {
      let received = Buffer.alloc(0);
      const timer = setTimeout(
        () => reject(new Error(`no response within ${timeoutMs} ms`)),
        timeoutMs,
      );
      socket.once("close", () => clearTimeout(timer));
      socket.once("error", reject);
      socket.once("end", () => reject(new Error("the connection was closed")));
      socket.on("data", (chunk) => {
        received = Buffer.concat([received, chunk]);
        try {
          const parsed = parseReplies(received, all.length);
          if (parsed !== undefined) resolve(parsed);
        } catch (error) {
          reject(error);
        }
      });
      socket.write(all.map(encode).join(""));
    });
    return replies.slice(all.length - commands.length);
  } finally {
    socket.on("error", () => {});
    socket.destroy();
  }
}

/** @param {readonly string[]} words @returns {string} */
function encode(words) {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}

/**
 * @param {Buffer} buffer @param {number} count
 * @returns {string[] | undefined} undefined while bytes are missing
 */
function parseReplies(buffer, count) {
  const replies = [];
  let at = 0;
  while (replies.length < count) {
    const end = buffer.indexOf("\r\n", at);
    if (end === -1) return undefined;
    const type = String.fromCharCode(buffer[at] ?? 0);
    const text = buffer.toString("utf8", at + 1, end);
    at = end + 2;
    if (type === "-") throw new Error(text);
    if (type === "$") {
      const length = Math.max(Number(text), 0);
      if (buffer.length < at + length + 2) return undefined;
      replies.push(buffer.toString("utf8", at, at + length));
      at += length + 2;
    } else if (type === "+" || type === ":") replies.push(text);
    else
      throw new Error(`not a Redis: it sent ${JSON.stringify(buffer.toString("latin1", 0, 40))}`);
  }
  return replies;
}
