import { globSync } from "node:fs";
import { basename, resolve } from "node:path";
import { dump } from "js-yaml";
import { expect, test } from "vitest";
import { alertGroups, alertTemplates, BACKLOG_AGE_QUERY } from "./alert-rules.ts";

const CHART = resolve("infra/helm/konverge/files");
const yaml = (groups: readonly object[]) => dump(groups, { noRefs: true, lineWidth: -1 });
const { installation, cluster } = alertTemplates();

// `vitest -u` writes the files of the chart.
test.each([
  ["alerts.yaml", yaml([installation])],
  ["cluster-alerts.yaml", yaml([cluster])],
  ["backlog-age.promql", `${BACKLOG_AGE_QUERY}\n`],
])("the chart has the generated %s", async (file, text) => {
  await expect(text).toMatchFileSnapshot(`${CHART}/${file}`);
});

test("every alert has a severity, a summary and a runbook of its own", () => {
  const pages = globSync("docs/runbooks/Konverge*.md").map((path) => basename(path, ".md"));
  expect(installation.rules.map(({ alert }) => alert).toSorted()).toEqual(pages.toSorted());
  for (const { alert, labels, annotations } of [...installation.rules, ...cluster.rules]) {
    expect(pages).toContain(alert);
    expect(annotations.runbook_url).toBe(`RUNBOOKS/${alert}.md`);
    expect(annotations.summary).not.toBe("");
    expect(labels.severity).toMatch(/^(?:critical|warning|info)$/);
  }
});

test("every rule selects one installation and keeps the labels of the cluster", () => {
  const runbooks = "https://wiki.example/konverge";
  const groups = alertGroups({ installation: "shop", clusters: ["a", "b"], runbooks });
  expect(groups.map(({ name }) => name)).toEqual([
    "konverge-shop",
    "konverge-shop-a",
    "konverge-shop-b",
  ]);
  for (const { expr } of groups.flatMap(({ rules }) => rules)) {
    const selectors = [...expr.matchAll(/konverge_\w+(\{[^}]*\})?/g)].map(([, found]) => found);
    expect(selectors).not.toEqual([]);
    for (const selector of selectors) expect(selector).toMatch(/^\{installation="shop"/);
    for (const [, labels] of expr.matchAll(/\b(?:by|on) \((.*?)\)/g)) {
      expect(labels).toMatch(/^installation, cluster\b/);
    }
    expect(expr).not.toMatch(/INSTALLATION|CLUSTER/);
  }
  for (const { alert, annotations } of groups.flatMap(({ rules }) => rules)) {
    expect(annotations.runbook_url).toBe(`${runbooks}/${alert}.md`);
  }
});
