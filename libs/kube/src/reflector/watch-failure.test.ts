import { defined, KonvergeError } from "@konverge/core";
import { expect, test } from "vitest";
import { KubeApiError } from "../errors/kube-api-error.ts";
import { StreamSilent } from "../wire/http-stream.ts";
import { recoverWatch } from "./watch-failure.ts";

const api = (status: number, reason: string, trait?: "resourceVersionTooLarge") =>
  new KubeApiError(reason, { status, reason, ...defined({ trait }) });
const lived = { lived: true, fresh: false, hasBookmarks: true };
const silent = new StreamSilent("https://server", 90_000, new Error("silent"));

test.each([
  [
    "expired after a while",
    api(410, "Expired"),
    lived,
    { next: "list", backOff: false, quiet: true },
  ],
  [
    "expired on resuming",
    api(410, "Gone"),
    { ...lived, lived: false },
    { next: "list", backOff: false, quiet: true },
  ],
  [
    "expired right after a list",
    api(410, "Expired"),
    { ...lived, lived: false, fresh: true },
    { next: "list", backOff: true, quiet: true },
  ],
  [
    "a future version",
    api(504, "Timeout", "resourceVersionTooLarge"),
    lived,
    { next: "list", backOff: true },
  ],
  ["silence", silent, lived, { next: "watch", backOff: false, quiet: false }],
  [
    "silence of a server without bookmarks",
    silent,
    { ...lived, hasBookmarks: false },
    { next: "watch", backOff: false, quiet: true },
  ],
  ["throttled", api(429, "TooManyRequests"), lived, { next: "watch", backOff: true }],
  ["an internal error", api(500, "InternalError"), lived, { next: "watch", backOff: true }],
  ["forbidden", api(403, "Forbidden"), lived, { next: "list", backOff: true, quiet: false }],
  [
    "a cut",
    new KonvergeError("kube_unreachable", "reset"),
    lived,
    { next: "watch", backOff: false },
  ],
  [
    "refused",
    new KonvergeError("kube_unreachable", "refused"),
    { ...lived, lived: false },
    { next: "watch", backOff: true },
  ],
  [
    "deferred by the gate",
    new KonvergeError("deferred", "open"),
    lived,
    { next: "watch", backOff: true },
  ],
])("recovers from a watch that ends with %s", (_title, error, history, expected) => {
  expect(recoverWatch(error, history)).toMatchObject(expected);
});
