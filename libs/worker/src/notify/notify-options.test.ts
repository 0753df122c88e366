import { inspect } from "node:util";
import { expect, test } from "vitest";
import { findNotifyIssues } from "./notify-options.ts";
import { webhook } from "./webhook.ts";

const SECRET = "canary-91c0";
const to = webhook(`https://hooks.example/${SECRET}`, { format: "slack" });

test("names the field and the fix of each invalid rule", () => {
  const rules = [
    { on: ["dead_letter"], to },
    { on: ["dead_letters"], to: webhook("http://a", { format: "json" }) },
    { on: ["approval"], to: { url: "http://a" } },
    { on: ["approval"], to },
    { on: ["approval"], to: webhook("http://a", { format: "json", name: "a" }), group: "2h" },
    { on: ["approval"], to: webhook("http://a", { format: "json", name: "b" }), deadline: "soon" },
  ];
  expect(findNotifyIssues(rules).map(({ detail }) => detail)).toEqual([
    'notify.1: on must be a list of dead_letter, run_blocked, approval, contention, breaker_open (got "dead_letters")',
    "notify.2: to must be the result of webhook(url, { format })",
    'notify.3: several receivers have the name "slack"; set name in webhook',
    'notify.4: group must be 0s to 1h (got "2h")',
    'notify.5: deadline must be a duration of 1s to 7d, such as "30s" (got "soon")',
  ]);
});

test.each([
  [`ftp://${SECRET}`, "url must be an http:// or https:// URL"],
  [SECRET, "url must be an absolute URL"],
  [`https://me:${SECRET}@a`, "url must not contain a user name or password"],
])("rejects a URL without showing it (%#)", (url, text) => {
  const make = () => webhook(url, { format: "json" });
  expect(make).toThrow(text);
  expect(make).not.toThrow(SECRET);
});

test("shows its address in no form of output", () => {
  expect(inspect(to, { depth: 9, showHidden: true }) + JSON.stringify(to)).not.toContain(SECRET);
});
