import { KonvergeError } from "@konverge/core";
import { expect, test } from "vitest";
import { onceAnswered } from "./once-answered.ts";

test("ends with its signal while Redis answers too late", async () => {
  const ending = new AbortController();
  const reason = new Error("the engagement ended");
  const late: string[] = [];
  const waiting = onceAnswered(
    () =>
      Promise.reject(
        new KonvergeError("redis_unavailable", "late", { cause: new Error("ETIMEDOUT") }),
      ),
    {
      onLate: ({ message }) => {
        late.push(message);
        ending.abort(reason);
      },
      signal: ending.signal,
    },
  );
  await expect(waiting).rejects.toBe(reason);
  expect(late).toEqual(["late"]);
});
