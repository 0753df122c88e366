import { expect, test } from "vitest";
import {
  ensureError,
  ERRORS,
  findCause,
  isKonvergeError,
  KonvergeError,
  TerminalError,
} from "./errors.ts";

test("every code has a title, a valid HTTP status and a documented exit code", () => {
  for (const [code, { title, httpStatus, exitCode }] of Object.entries(ERRORS)) {
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect(title, code).toMatch(/^[A-Z].*[^.]$/);
    expect(httpStatus, code).toBeGreaterThanOrEqual(400);
    expect(httpStatus, code).toBeLessThan(600);
    expect([1, 2, 3, 4, 5, 6, 7], code).toContain(exitCode);
  }
});

test("has its code, cause, retry delay and issues; terminal follows the table", () => {
  const cause = new Error("ECONNREFUSED");
  const issues = [{ pointer: "/redisUrl", detail: "start it" }];
  const error = new KonvergeError("redis_unavailable", "no answer", {
    cause,
    retryAfterMs: 1_000,
    issues,
  });
  expect(error).toMatchObject({
    name: "KonvergeError",
    code: "redis_unavailable",
    retryAfterMs: 1_000,
    issues,
    cause,
  });
  expect(error.terminal).toBe(ERRORS.redis_unavailable.terminal);
  expect(new TerminalError("no")).toMatchObject({
    name: "TerminalError",
    code: "terminal",
    terminal: true,
  });
});

test("has no cause member without a cause", () => {
  expect("cause" in new KonvergeError("internal", "x")).toBe(false);
});

test("recognizes errors of another copy of the package, unlike instanceof", async () => {
  // The query string makes Node and vitest load a second copy; the compiler ignores it.
  const second: string = "./errors.ts?copy=2";
  const copy = (await import(second)) as typeof import("./errors.ts");
  const foreign = new copy.TerminalError("from the other copy");
  expect(copy.KonvergeError).not.toBe(KonvergeError);
  expect(foreign).not.toBeInstanceOf(KonvergeError);
  expect(isKonvergeError(foreign)).toBe(true);
  expect(copy.isKonvergeError(new KonvergeError("internal", "x"))).toBe(true);
  expect(findCause(new Error("outer", { cause: foreign }), isKonvergeError)).toBe(foreign);
});

test.each([new Error("x"), { code: "terminal" }, "terminal", null, undefined, 1])(
  "%j is not a Konverge error",
  (other) => {
    expect(isKonvergeError(other)).toBe(false);
  },
);

test("findCause returns the outermost match within 16 levels", () => {
  const wrap = (error: Error, times: number): Error =>
    times === 0 ? error : wrap(new Error("wrapped", { cause: error }), times - 1);
  const inner = new TerminalError("inner");
  expect(findCause(wrap(inner, 15), isKonvergeError)).toBe(inner);
  expect(findCause(wrap(inner, 16), isKonvergeError)).toBeUndefined();
  const outer = new KonvergeError("internal", "outer", { cause: inner });
  expect(findCause(outer, isKonvergeError)).toBe(outer);
});

test("findCause stops on cycles and non-errors", () => {
  const loop: { cause?: unknown } = {};
  loop.cause = loop;
  expect(findCause(loop, isKonvergeError)).toBeUndefined();
  expect(findCause(undefined, isKonvergeError)).toBeUndefined();
  expect(findCause("text", isKonvergeError)).toBeUndefined();
});

test("ensureError converts any thrown value", () => {
  const error = new Error("x");
  expect(ensureError(error)).toBe(error);
  expect(ensureError("plain").message).toBe("plain");
  expect(ensureError(undefined).message).toBe("thrown: undefined");
  expect(ensureError(Symbol("s")).message).toBe("thrown: Symbol(s)");
  expect(ensureError(Object.create(null)).message).toBe("thrown: an object without text");
});
