import type { Dispatcher } from "undici";
import { expect, test } from "vitest";
import { exchange } from "./http-exchange.ts";

const REQUEST = {
  origin: "http://api",
  method: "GET",
  path: "/",
  headers: {},
  deadlineMs: 60_000,
} as const;

/** Ends the response twice, as undici does if the end of a response throws. */
const endsTwice = (chunk: Buffer): Dispatcher =>
  ({
    dispatch(_options: unknown, handler: Required<Dispatcher.DispatchHandler>) {
      const controller = {} as Dispatcher.DispatchController;
      handler.onRequestStart(controller, {});
      handler.onResponseStart(controller, 200, {}, "");
      handler.onResponseData(controller, chunk);
      handler.onResponseEnd(controller, {});
      handler.onResponseError(controller, new Error("after the end"));
      return true;
    },
  }) as unknown as Dispatcher;

test("frees the connection once, also if the response ends twice", async () => {
  let ends = 0;
  const answer = exchange(
    () => endsTwice(Buffer.from("{}")),
    REQUEST,
    () => ends++,
  );
  await expect(answer).resolves.toMatchObject({ status: 200, body: "{}" });
  expect(ends).toBe(1);
});

test.each([
  ["is not sent", () => ({ dispatch: fails }) as unknown as Dispatcher],
  ["has no dispatcher", fails],
])("frees the connection of a request that %s", async (_title, open) => {
  let ends = 0;
  await expect(exchange(open, REQUEST, () => ends++)).rejects.toThrow("invalid url");
  expect(ends).toBe(1);
});
function fails(): never {
  throw new TypeError("invalid url");
}

test("names a response that is too long for a string", async () => {
  let ends = 0;
  const chunk = Object.assign(Buffer.alloc(7), {
    toString: () => {
      throw new RangeError("Cannot create a string longer than 0x1fffffe8 characters");
    },
  });
  const answer = exchange(
    () => endsTwice(chunk),
    REQUEST,
    () => ends++,
  );
  await expect(answer).rejects.toMatchObject({
    code: "kube_unreachable",
    message: "API server http://api returned 7 bytes, more than one string can hold; read in pages",
  });
  expect(ends).toBe(1);
});
