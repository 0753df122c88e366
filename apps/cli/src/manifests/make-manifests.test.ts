import { readSettings, type SettingsInput } from "@konverge/contracts";
import type { ApiObject } from "@konverge/core";
import { defineConfig, kubeconfigSecrets } from "@konverge/worker";
import { defineController } from "@konverge/engine";
import { expect, test } from "vitest";
import { Pod } from "@konverge/kube/kinds";
import { makeChartValues } from "./make-chart-values.ts";
import { makeManifests } from "./make-manifests.ts";
import type { ManifestsOptions } from "./manifests-options.ts";

function options(settings: SettingsInput): ManifestsOptions {
  const pods = defineController({ name: "pods", for: Pod, reconcile: async () => undefined });
  return {
    config: defineConfig({ controllers: [pods], settings }),
    settings: readSettings({ file: settings, env: {} }),
    installation: { name: "ops", namespace: "tools", image: "registry.example/ops:7" },
    configInImage: "konverge.config.ts",
    replicas: 2,
    redisSecret: "redis",
    apiSecret: "api",
  };
}
const textOf = (objects: readonly ApiObject[], kind: string) =>
  objects.filter((object) => object.kind === kind).map((object) => JSON.stringify(object));

test.each([
  { shutdownGrace: "30s", seconds: 40, inValues: 30 },
  { shutdownGrace: "2m", seconds: 130, inValues: 120 },
  { shutdownGrace: "1500ms", seconds: 12, inValues: 2 },
])("a pod has longer to end than $drainGrace, which its work may take", (row) => {
  const given = options({ shutdownGrace: row.shutdownGrace });
  const [worker] = textOf(makeManifests(given), "Deployment");
  expect(worker).toContain(`"terminationGracePeriodSeconds":${row.seconds}`);
  expect(makeChartValues(given)).toMatchObject({ drainGraceSeconds: row.inValues });
});

test("uses the prefix for Leases and passes it to the API", () => {
  const objects = makeManifests(options({ prefix: "shop", cluster: "default" }));
  expect(textOf(objects, "Role")[0]).toContain(
    '"resourceNames":["shop-pods","shop-redis.progress"]',
  );
  const [worker, api] = textOf(objects, "Deployment");
  expect(api).toContain('{"name":"KONVERGE_PREFIX","value":"shop"}');
  expect(worker).not.toContain("KONVERGE_PREFIX");
});

test("names ClusterRoles after the namespace", () => {
  const objects = makeManifests(options({}));
  expect(textOf(objects, "ClusterRole")[0]).toContain('"name":"tools-ops"');
  expect(textOf(objects, "ClusterRoleBinding")[0]).toContain('"namespace":"tools"');
});

test("grants list and watch of Secrets only in the namespace of the kubeconfigs", () => {
  const given = options({});
  const clusters = kubeconfigSecrets({ namespace: "fleet" });
  const withSecrets = { ...given, config: { ...given.config, clusters } };
  const [role] = makeManifests(withSecrets).filter(
    ({ kind, metadata }) => kind === "Role" && metadata.namespace === "fleet",
  );
  expect(role).toMatchObject({
    metadata: { name: "tools-ops-clusters" },
    rules: [{ apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"] }],
  });
  const bindings = textOf(makeManifests(withSecrets), "RoleBinding");
  expect(bindings.filter((text) => text.includes("tools-ops-clusters"))).toHaveLength(1);
  expect(makeChartValues(withSecrets)).toMatchObject({ rbac: { secretsNamespace: "fleet" } });
  expect(JSON.stringify([makeManifests(given), makeChartValues(given)])).not.toContain('ecrets"]');
});

test("P12: omits the Redis URL from manifests and values", () => {
  const given = options({
    redisUrl: "redis://:hunter2@redis:6379",
    token: "hunter2-hunter2-hunter2-hunter2-hunter2",
  });
  expect(JSON.stringify([makeManifests(given), makeChartValues(given)])).not.toContain("hunter2");
});

test("passes the retention of runs to the API, which has no configuration file", () => {
  const given = options({ runRetention: "36h" });
  const [, api] = textOf(makeManifests(given), "Deployment");
  expect(api).toContain('{"name":"KONVERGE_RUN_RETENTION","value":"129600000ms"}');
  expect(makeChartValues(given)).toMatchObject({ runRetention: "129600000ms" });
});
