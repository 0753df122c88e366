import { expect, test } from "vitest";
import { framesOf, typeOfError } from "./error-frames.ts";
import { KonvergeError } from "./errors.ts";

class PoolError extends Error {}

function resize(): never {
  throw new PoolError("too small");
}
function thrownBy(run: () => unknown): Error {
  try {
    run();
  } catch (error) {
    return error as Error;
  }
  throw new Error("it did not throw");
}

test("names function, file and line, and nothing else", () => {
  const [frame] = framesOf(thrownBy(resize));
  expect(frame).toMatch(/^at resize \(\/.*\/error-frames\.test\.ts:\d+:\d+\)$/);
});

test("P12: a message never becomes a frame, whatever it contains", () => {
  const secret = "c4n4ry";
  const frame = `    at ${secret} (/etc/${secret}:1:1)`;
  const message = [secret, frame, "", `    at (${secret})`, frame].join("\n");
  const error = thrownBy(() => {
    throw new Error(message);
  });
  expect(framesOf(error)).not.toHaveLength(0);
  expect(framesOf(error).join("\n")).not.toContain(secret);
});

test.each([
  ["data URL", "    at f (data:text/javascript,c4n4ry:1:1)"],
  ["code", "    at eval (eval at c4n4ry (/a.js:1:1), <anonymous>:1:1)"],
  ["odd name", "    at {c4n4ry: 1} (/a.js:1:1)"],
  ["no place", "    at c4n4ry"],
])("P12: omits a frame with a %s", (_, line) => {
  const error = Object.assign(new Error("x"), { stack: `Error: x\n${line}` });
  expect(framesOf(error)).toEqual([]);
});

test("adds the causes, omits Konverge's own frames and the query of a reload", () => {
  const own = new URL("errors.ts", import.meta.url).pathname;
  const cause = Object.assign(new TypeError("inner"), {
    stack: "TypeError: inner\n    at read (file:///app/src/dns.ts?v=2:3:4)",
  });
  const error = Object.assign(new KonvergeError("kube_api", "x", { cause }), {
    stack: `Error: x\n    at call (${own}:1:1)\n    at async reconcile (/app/src/pools.ts:9:7)`,
  });
  expect(framesOf(error)).toEqual([
    "at async reconcile (/app/src/pools.ts:9:7)",
    "caused by TypeError",
    "at read (/app/src/dns.ts:3:4)",
  ]);
  error.stack = `Error: x\n    at call (${own}:1:1)`;
  error.cause = error;
  expect(framesOf(error)).toEqual([]);
});

test("adds messages of causes on one line, also without frames, only if they are asked for", () => {
  const inner = Object.assign(new TypeError("no\n  host"), { stack: "TypeError: no\n  host" });
  const error = Object.assign(new Error("x", { cause: inner }), {
    stack: "Error: x\n    at f (/app/src/pools.ts:9:7)",
  });
  expect(framesOf(error)).toEqual(["at f (/app/src/pools.ts:9:7)"]);
  const messageOf = ({ message }: Error) => message.replace("host", "(redacted)");
  expect(framesOf(error, { messageOf })).toEqual([
    "at f (/app/src/pools.ts:9:7)",
    "caused by TypeError: no (redacted)",
  ]);
});

test("bounds lines and their length", () => {
  const deep = Array.from({ length: 50 }, (_, at) => `    at f (/${"x".repeat(400)}.ts:${at}:1)`);
  const frames = framesOf(
    Object.assign(new Error("x"), { stack: ["Error: x", ...deep].join("\n") }),
  );
  expect(frames).toHaveLength(8);
  expect(Math.max(...frames.map(({ length }) => length))).toBe(200);
});

test.each([
  ["PoolError", new PoolError("x")],
  ["TypeError", new TypeError("x")],
  ["Own", Object.assign(new Error("x"), { name: "Own" })],
  ["Error", Object.assign(new Error("x"), { name: "a secret text" })],
  ["Error", Object.assign(new Error("x"), { name: 7 })],
])("the type is %s", (type, error) => {
  expect(typeOfError(error)).toBe(type);
});

test("survives an error that throws when read", () => {
  const error = new Error("x");
  Object.defineProperty(error, "stack", {
    get() {
      throw new Error("no");
    },
  });
  expect(framesOf(error)).toEqual([]);
  expect(framesOf("text")).toEqual([]);
});
