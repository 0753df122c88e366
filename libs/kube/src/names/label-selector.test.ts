import { expect, test } from "vitest";
import { isNarrower, matchesLabels, parseLabelSelector } from "./label-selector.ts";

const parse = (text: string) => {
  const selector = parseLabelSelector(text);
  if (selector === undefined) throw new Error(`not parsed: ${text}`);
  return selector;
};

test.each<[string, Record<string, string> | undefined, boolean]>([
  ["", undefined, true],
  ["app=web", { app: "web" }, true],
  ["app==web", { app: "db" }, false],
  ["app=web", undefined, false],
  ["app!=web", undefined, true],
  ["app!=web", { app: "web" }, false],
  ["app=", { app: "" }, true],
  ["a.b/app in (web, db)", { "a.b/app": "db" }, true],
  ["app in (web,db)", {}, false],
  ["app notin (web,db)", {}, true],
  ["app notin (web,db),tier", { app: "db", tier: "1" }, false],
  ["app", { app: "" }, true],
  ["!app", {}, true],
  ["! app", { app: "x" }, false],
  ["constructor", {}, false],
])("%j with labels %j: %s", (text, labels, expected) => {
  expect(matchesLabels(parse(text), labels)).toBe(expected);
});

test.each(["app>1", "app=web,", "app in web", "=x", "app=a b", "app in (a,b"])(
  "leaves %j to the API server",
  (text) => {
    expect(parseLabelSelector(text)).toBeUndefined();
  },
);

test("compares selectors by their requirements", () => {
  expect(isNarrower(parse("tier=1, app in (b,a)"), parse("app in (a, b)"))).toBe(true);
  expect(isNarrower(parse("app=a"), parse(""))).toBe(true);
  expect(isNarrower(parse("app in (a)"), parse("app=a"))).toBe(true);
  expect(isNarrower(parse("app in (a,b)"), parse("app=a"))).toBe(false);
});
