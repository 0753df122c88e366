import { expect, test } from "vitest";
import { sumSeries } from "./worker-metrics.ts";

test("adds up the series of one metric and of no other", () => {
  const text = [
    "# TYPE konverge_reconcile_total counter",
    'konverge_reconcile_total{controller="a",result="success"} 3',
    'konverge_reconcile_total{controller="b",result="error"} 4',
    "konverge_reconcile_total_other 100",
    "konverge_reconcile_total 1",
  ].join("\n");
  expect(sumSeries(text, "konverge_reconcile_total")).toBe(8);
});
