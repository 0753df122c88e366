import { defined } from "@konverge/core";
import { expect, test } from "vitest";
import { nextStatus, type DeploymentObject } from "./stand-in-deployments.ts";

const deployment = (image: string, status?: DeploymentObject["status"]): DeploymentObject => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", generation: 2 },
  spec: {
    replicas: 2,
    selector: {},
    template: { spec: { containers: [{ name: "web", image }] } },
  },
  ...defined({ status }),
});
const reasonOf = (status: DeploymentObject["status"]) =>
  status?.conditions?.find(({ type }) => type === "Progressing")?.reason;

test("a new template is rolled out pod by pod, and no pod is missing meanwhile", () => {
  const old = { replicas: 2, updatedReplicas: 2, availableReplicas: 2, readyReplicas: 2 };
  const first = nextStatus(deployment("web:2", old), true);
  expect(first).toMatchObject({ observedGeneration: 2, updatedReplicas: 1, availableReplicas: 2 });
  expect(reasonOf(first)).toBe("ReplicaSetUpdated");
  const second = nextStatus(deployment("web:2", first), false);
  expect(second).toMatchObject({ replicas: 2, updatedReplicas: 2, readyReplicas: 2 });
  expect(reasonOf(second)).toBe("NewReplicaSetAvailable");
  const { conditions: _, ...counts } = nextStatus(deployment("web:2", second), false);
  expect(second).toMatchObject(counts);
});

test("a new Deployment gets its pods one by one", () => {
  const first = nextStatus(deployment("web:1"), true);
  expect(first).toMatchObject({ updatedReplicas: 1, availableReplicas: 1, unavailableReplicas: 1 });
  expect(nextStatus(deployment("web:1", first), false)).toMatchObject({ availableReplicas: 2 });
});

test("pods of a broken image never come up, and the old ones stay", () => {
  const old = { replicas: 2, updatedReplicas: 2, availableReplicas: 2, readyReplicas: 2 };
  const status = nextStatus(deployment("web:broken", old), true);
  expect(status).toMatchObject({ updatedReplicas: 0, availableReplicas: 2 });
  expect(reasonOf(status)).toBe("ProgressDeadlineExceeded");
});
