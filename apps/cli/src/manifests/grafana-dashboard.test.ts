import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { dashboardConfigMap, dashboardText, grafanaDashboard } from "./grafana-dashboard.ts";

const { panels } = grafanaDashboard();
const queries = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr })),
);

// `vitest -u` writes the file.
test("infra/grafana has the generated dashboard", async () => {
  await expect(dashboardText()).toMatchFileSnapshot(resolve("infra/grafana/konverge.json"));
});

test("a ConfigMap with the label of Grafana's sidecar has the dashboard", () => {
  const found = dashboardConfigMap({ name: "shop", namespace: "ops", image: "shop:1" });
  expect(found).toMatchObject({
    metadata: { name: "shop-dashboard", namespace: "ops", labels: { grafana_dashboard: "1" } },
    data: { "konverge.json": dashboardText() },
  });
});

/** The HTTP API reports it, for all clusters. */
const WITHOUT_CLUSTER = ["konverge_audit_stream_lag_seconds", "konverge_audit_entries_lost_total"];

test("every query selects documented series and labels of the chosen installation and clusters", () => {
  const rows = readFileSync("docs/metrics.md", "utf8").matchAll(
    /^\| `(konverge_\w+)(?:\{([\w,]+)\})?`/gm,
  );
  const documented = new Map([...rows].map(([, name = "", labels = ""]) => [name, labels]));
  expect(queries.length).toBeGreaterThan(30);
  for (const { title, expr } of queries) {
    const selectors = [...expr.matchAll(/(konverge_\w+)(\{[^}]*\})?/g)];
    expect(selectors, title).not.toEqual([]);
    const known = selectors.flatMap(([, name = "", matchers = ""]) => {
      const base = name.replace(/_(?:bucket|count)$/, "");
      expect([...documented.keys()], title).toContain(base);
      expect(matchers, title).toMatch(
        WITHOUT_CLUSTER.includes(base)
          ? /^\{installation="\$installation"\}$/
          : /^\{installation="\$installation",cluster=~"\$cluster"/,
      );
      const own = ["installation", "cluster", ...(documented.get(base) ?? "").split(",")];
      for (const [, label] of matchers.matchAll(/(\w+)\s*[=!]/g))
        expect(own, title).toContain(label);
      return own;
    });
    for (const [, list = ""] of expr.matchAll(/\b(?:by|on) \((.*?)\)/g)) {
      for (const label of list.split(", ")) expect([...known, "le"], title).toContain(label);
    }
  }
});

test("no panel overlaps another, and ids and titles are unique", () => {
  const cells = panels.flatMap(({ gridPos }) => {
    const { x, y, w, h } = gridPos as Record<"x" | "y" | "w" | "h", number>;
    expect(x + w).toBeLessThanOrEqual(24);
    return Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`);
  });
  expect(new Set(cells).size).toBe(cells.length);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
});
