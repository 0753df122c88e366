import { expect, test } from "vitest";
import { toText } from "./log-text.ts";

test("shows the frames of an error below its line", () => {
  const err = {
    type: "TypeError",
    message: "no size",
    frames: ["at resize (/app/pools.ts:3:9)", "caused by\u001B[31m Error"],
  };
  const line = JSON.stringify({ level: "warn", msg: "reconcile failed", key: "pools/web", err });
  expect(toText(line)).toBe(
    "warn reconcile failed key=pools/web : no size\n    at resize (/app/pools.ts:3:9)\n    caused by?[31m Error",
  );
});
