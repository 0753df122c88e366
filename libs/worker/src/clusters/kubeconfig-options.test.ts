import { isKonvergeError } from "@konverge/core";
import { expect, test } from "vitest";
import { findClusterIssues } from "../config/cluster-options.ts";
import { checkProvided } from "./check-provided.ts";
import { kubeconfigDirectory } from "./kubeconfig-directory.ts";
import { kubeconfigSecrets } from "./kubeconfig-secrets.ts";
import { withHome } from "./with-home.ts";

function detailsOf(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (error) {
    if (isKonvergeError(error)) return error.issues.map(({ detail }) => detail);
    throw error;
  }
  return [];
}

test("rejects labels of a cluster that Kubernetes would reject, and names each", () => {
  const labels = {
    tier: "prod",
    "example.com/zone": "",
    "a b": "x",
    "x/y/z": "x",
    size: 3,
    n: "-",
  };
  expect(findClusterIssues({ west: { labels } })).toEqual([
    {
      pointer: "/clusters/west/labels/a b",
      detail:
        'clusters.west.labels: "a b" is not a label name: 1 to 63 letters, digits, -, _ and ., after an optional DNS name and a slash; rename it',
    },
    {
      pointer: "/clusters/west/labels/x~1y~1z",
      detail: expect.stringContaining('"x/y/z" is not a label name') as string,
    },
    {
      pointer: "/clusters/west/labels/size",
      detail:
        'clusters.west.labels: "size" must be a text of at most 63 letters, digits, -, _ and ., such as "prod" (got 3)',
    },
    {
      pointer: "/clusters/west/labels/n",
      detail: expect.stringContaining('(got "-")') as string,
    },
  ]);
  expect(findClusterIssues({ west: { labels: ["tier"] } }).map(({ detail }) => detail)).toEqual([
    'clusters.west.labels: must be an object such as { tier: "prod" }',
  ]);
});

test.each([
  ["no object", undefined, "clusters.west: must be an object; use {} for the defaults"],
  ["invalid labels", { labels: { tier: "a b" } }, /^clusters\.west\.labels: "tier" must be/],
  ["a kubeconfig", { kubeconfig: "x" }, /^clusters\.west\.kubeconfig: is read by the provider/],
])("rejects options of a provided cluster with %s", (_what, options, detail) => {
  const cluster = { kubeconfig: { text: "" }, options: options as object };
  expect(detailsOf(() => checkProvided("west", cluster))).toEqual([
    typeof detail === "string" ? detail : (expect.stringMatching(detail) as string),
  ]);
});

test("kubeconfigSecrets reports all invalid options together", () => {
  const wrong = { labels: "tier in", key: "", options: {}, allowExec: "yes", label: "tier=prod" };
  expect(detailsOf(() => kubeconfigSecrets(wrong as never))).toEqual([
    expect.stringMatching(/^clusters\.label: is unknown; valid options: namespace, labels, /),
    "clusters.namespace: must be the namespace of the Secrets",
    'clusters.labels: must be a label selector such as "tier=prod" or "tier in (prod, test)"',
    "clusters.key: must be a key in the data of the Secrets",
    "clusters.options: must be a function (name, labels) => options",
    "clusters.allowExec: must be true or false",
  ]);
  expect(detailsOf(() => kubeconfigDirectory({ path: "x", options: {} as never }))).toEqual([
    "clusters.options: must be a function (name) => options",
  ]);
});

test("rejects a cluster with the name of the home cluster", () => {
  const found = new Map([["default", { kubeconfig: { text: "" }, options: {} }]]);
  const message =
    'cluster "default" of the Secrets in namespace fleet has the name of the home cluster "default" (setting cluster); rename it, or set KONVERGE_CLUSTER to another name';
  const idle = withHome(kubeconfigSecrets({ namespace: "fleet" }), found, "default");
  expect(idle.clusters.get("default")).toMatchObject({ code: "invalid_config", message });
  const home = { engage: true, rate: 7 };
  const engaged = withHome(kubeconfigSecrets({ namespace: "fleet", home }), found, "default");
  expect(engaged.clusters.get("default")).toEqual({ kubeconfig: undefined, options: { rate: 7 } });
  expect(engaged.rejected).toMatchObject({ message });
  const other = withHome(kubeconfigSecrets({ namespace: "fleet" }), found, "hub");
  expect(other).toEqual({ clusters: found });
});
