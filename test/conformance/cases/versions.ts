import { versionIn, type Case } from "../case.ts";
import { deployment, deployments, widget, widgets } from "../objects.ts";
import { get, mergePatch, post, put } from "../steps.ts";

const widgetPath = `${widgets}/{o}`;
const deploymentPath = `${deployments}/{o}`;
const make = (path: string, body: typeof widget) =>
  post(path, { code: 201, generation: 1 }, body(), { as: "made" });
const merge = (path: string, body: Parameters<typeof widget>[0] & object, generation: number) =>
  mergePatch(path, { code: 200, version: { newSince: "made" }, generation } as const, body, {
    as: "changed",
  });

/** resourceVersion changes with every write, generation with the desired state: edits of each kind. */
export const versions: readonly Case[] = [
  {
    name: "custom resource: a label moves the version, not the generation",
    steps: [make(widgets, widget), merge(widgetPath, { metadata: { labels: { a: "b" } } }, 1)],
  },
  {
    name: "custom resource: an annotation moves the version, not the generation",
    steps: [make(widgets, widget), merge(widgetPath, { metadata: { annotations: { a: "b" } } }, 1)],
  },
  {
    name: "custom resource: spec moves both",
    steps: [make(widgets, widget), merge(widgetPath, { spec: { size: "l" } }, 2)],
  },
  {
    name: "custom resource: status moves the version, not the generation",
    steps: [
      make(widgets, widget),
      merge(`${widgetPath}/status`, { status: { phase: "Ready" } }, 1),
    ],
  },
  {
    name: "custom resource: no edit moves neither",
    steps: [
      make(widgets, widget),
      mergePatch(
        widgetPath,
        { code: 200, version: { sameAs: "made" }, generation: 1 },
        { spec: { size: "s" } },
      ),
      mergePatch(
        `${widgetPath}/status`,
        { code: 200, version: { sameAs: "made" }, generation: 1 },
        {},
      ),
    ],
  },
  {
    name: "Deployment: a label moves the version, not the generation",
    steps: [
      make(deployments, deployment),
      merge(deploymentPath, { metadata: { labels: { a: "b" } } }, 1),
    ],
  },
  {
    name: "Deployment: an annotation moves both",
    steps: [
      make(deployments, deployment),
      merge(deploymentPath, { metadata: { annotations: { a: "b" } } }, 2),
    ],
  },
  {
    name: "Deployment: spec moves both",
    steps: [make(deployments, deployment), merge(deploymentPath, { spec: { replicas: 3 } }, 2)],
  },
  {
    name: "Deployment: status moves the version, not the generation, and keeps an annotation",
    steps: [
      make(deployments, deployment),
      mergePatch(
        `${deploymentPath}/status`,
        {
          code: 200,
          version: { newSince: "made" },
          generation: 1,
          body: {
            spec: { replicas: 1 },
            status: { replicas: 1 },
            metadata: { annotations: { kept: "yes" } },
          },
          absent: ["metadata.labels"],
        },
        {
          metadata: { annotations: { kept: "yes" }, labels: { dropped: "yes" } },
          spec: { replicas: 7 },
          status: { replicas: 1, observedGeneration: 1 },
        },
      ),
    ],
  },
  {
    name: "Deployment: no edit moves neither",
    steps: [
      make(deployments, deployment),
      mergePatch(
        deploymentPath,
        { code: 200, version: { sameAs: "made" }, generation: 1 },
        { spec: { replicas: 1 } },
      ),
    ],
  },
  {
    name: "a status write makes a spec write with the old version conflict",
    steps: [
      make(widgets, widget),
      merge(`${widgetPath}/status`, { status: { phase: "Ready" } }, 1),
      put(widgetPath, { code: 409, reason: "Conflict" }, (seen) =>
        widget({ spec: { size: "l" } }, { resourceVersion: versionIn(seen, "made") }),
      ),
    ],
  },
  {
    name: "a spec write makes a status write with the old version conflict",
    steps: [
      make(widgets, widget),
      merge(widgetPath, { spec: { size: "l" } }, 2),
      put(`${widgetPath}/status`, { code: 409, reason: "Conflict" }, (seen) =>
        widget({ status: { phase: "Ready" } }, { resourceVersion: versionIn(seen, "made") }),
      ),
      put(
        `${widgetPath}/status`,
        {
          code: 200,
          generation: 2,
          body: { spec: { size: "l" }, status: { phase: "Ready" } },
          absent: ["metadata.labels"],
        },
        (seen) =>
          widget(
            { spec: { size: "m" }, status: { phase: "Ready" } },
            { resourceVersion: versionIn(seen, "changed"), labels: { dropped: "yes" } },
          ),
      ),
    ],
  },
  {
    name: "a write of the main resource ignores status",
    steps: [
      post(widgets, { code: 201, absent: ["status"] }, widget({ status: { phase: "Ready" } }), {
        as: "made",
      }),
      merge(`${widgetPath}/status`, { status: { phase: "Pending" } }, 1),
      merge(widgetPath, { spec: { size: "m" }, status: { phase: "Ready" } }, 2),
      get(widgetPath, { code: 200, body: { spec: { size: "m" }, status: { phase: "Pending" } } }),
    ],
  },
  {
    name: "a client cannot set the generation",
    steps: [
      post(widgets, { code: 201, generation: 1 }, widget({}, { generation: 7 }), { as: "made" }),
      merge(widgetPath, { metadata: { generation: 9 }, spec: { size: "l" } }, 2),
    ],
  },
];
